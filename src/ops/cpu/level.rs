//! Which instruction set the kernels use: the widest one this CPU has, found once.
//!
//! `REPRO_SIMD=avx2` or `=portable` asks for less, to compare them on one machine. Results of two sets differ in their last bits,
//! so that the set is part of a node's key (`numerics` of the train kind).

use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Avx512,
    Avx2,
    Portable,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Avx512 => "avx512",
            Level::Avx2 => "avx2",
            Level::Portable => "portable",
        }
    }

    /// Numbers in one vector register.
    pub fn lanes(self) -> usize {
        match self {
            Level::Avx512 => 16,
            Level::Avx2 => 8,
            Level::Portable => 4,
        }
    }
}

pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let most = match std::env::var("REPRO_SIMD").as_deref() {
            Ok("portable") => Level::Portable,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        widest(most)
    })
}

#[cfg(target_arch = "x86_64")]
fn widest(most: Level) -> Level {
    use std::arch::is_x86_feature_detected as has;
    let fused = has!("avx2") && has!("fma");
    if most == Level::Avx512 && fused && has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") {
        Level::Avx512
    } else if most != Level::Portable && fused {
        Level::Avx2
    } else {
        Level::Portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest(_: Level) -> Level {
    Level::Portable
}
