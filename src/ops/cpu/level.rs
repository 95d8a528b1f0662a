//! Which instruction set the kernels use: the widest one this CPU has, found once.
//!
//! `REPRO_SIMD=avx512`, `=avx2` or `=portable` asks for less, to compare them on one machine. Results of two sets differ in their last bits,
//! so that the set is part of a node's key (`numerics` of the train kind).

use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// AVX-512, and large products on AMX tiles.
    Amx,
    Avx512,
    Avx2,
    Portable,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Amx => "amx",
            Level::Avx512 => "avx512",
            Level::Avx2 => "avx2",
            Level::Portable => "portable",
        }
    }

    /// Numbers in one vector register.
    pub fn lanes(self) -> usize {
        match self {
            Level::Amx | Level::Avx512 => 16,
            Level::Avx2 => 8,
            Level::Portable => 4,
        }
    }

    /// What plain vectors use.
    pub fn vectors(self) -> Level {
        if self == Level::Amx { Level::Avx512 } else { self }
    }
}

pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let most = match std::env::var("REPRO_SIMD").as_deref() {
            Ok("portable") => Level::Portable,
            Ok("avx2") => Level::Avx2,
            Ok("avx512") => Level::Avx512,
            _ => Level::Amx,
        };
        widest(most)
    })
}

#[cfg(target_arch = "x86_64")]
fn widest(most: Level) -> Level {
    use std::arch::is_x86_feature_detected as has;
    let fused = has!("avx2") && has!("fma");
    let wide = fused && has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw");
    match most {
        Level::Amx if wide && super::amx::there() => Level::Amx,
        Level::Amx | Level::Avx512 if wide => Level::Avx512,
        Level::Portable => Level::Portable,
        _ if fused => Level::Avx2,
        _ => Level::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest(_: Level) -> Level {
    Level::Portable
}
