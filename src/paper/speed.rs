//! How fast this machine trains: measurements that `repro bench` left, and what they say about a run that was never measured.

use super::config::ModelConfig;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// GFLOP/s of one core where nothing was ever measured: a modest processor of the last ten years.
pub const ASSUMED_GFLOPS_PER_THREAD: f64 = 20.0;

/// Below the narrowest measured width GFLOP/s fall with this power of the width: 0.62 at half of 64 was measured on AVX-512.
const NARROWER: f64 = 0.7;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub width: usize,
    pub threads: usize,
    pub gflops: f64,
}

/// What is known of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The processor it was measured on; another one's numbers say nothing here.
    pub processor: String,
    pub measurements: Vec<Measurement>,
}

/// A speed, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub gflops: f64,
    /// Nothing was measured on this machine.
    pub assumed: bool,
}

impl Speed {
    /// What was stored for this machine; nothing if it is another one's, or not there.
    pub fn load() -> Speed {
        let here = Speed { processor: processor(), measurements: Vec::new() };
        let Some(path) = path() else { return here };
        let found: Option<Speed> = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        found.filter(|found| found.processor == here.processor).unwrap_or(here)
    }

    /// Adds a measurement in place of an older one of the same sizes, and stores all of them.
    pub fn remember(&mut self, new: Measurement) -> io::Result<Option<PathBuf>> {
        self.measurements.retain(|old| (old.width, old.threads) != (new.width, new.threads));
        self.measurements.push(new);
        self.measurements.sort_by_key(|m| (m.threads, m.width));
        let Some(path) = path() else { return Ok(None) };
        write(&path, self)?;
        Ok(Some(path))
    }

    /// For a model of this width on so many threads: between the nearest measured widths, in proportion of the logarithms; slower
    /// below the narrowest, as fast above the widest.
    /// Threads that were not measured scale from those that were.
    pub fn estimate(&self, model: &ModelConfig, threads: usize) -> Estimate {
        let threads = threads.max(1);
        let measured = self.measurements.iter().map(|m| m.threads).min_by_key(|&have| have.abs_diff(threads));
        let Some(have) = measured else {
            return Estimate { gflops: ASSUMED_GFLOPS_PER_THREAD * threads as f64, assumed: true };
        };
        let mut points: Vec<(f64, f64)> =
            self.measurements.iter().filter(|m| m.threads == have).map(|m| ((m.width as f64).ln(), m.gflops)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = (model.width as f64).ln();
        let gflops = match points.iter().position(|&(x, _)| x >= at) {
            Some(0) => points[0].1 * (NARROWER * (at - points[0].0)).exp(),
            None => points[points.len() - 1].1,
            Some(i) => {
                let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
                y0 + (y1 - y0) * (at - x0) / (x1 - x0)
            }
        };
        Estimate { gflops: gflops * threads as f64 / have as f64, assumed: false }
    }

    /// Whether one run on all threads is about as fast as runs of one thread each side by side: then it is done sooner and needs
    /// less memory. Where it was not measured, a model whose layers are wide enough to share is.
    pub fn prefers_all_threads(&self, model: &ModelConfig, all: usize) -> bool {
        const ABOUT: f64 = 0.95;
        const WIDE: usize = 512;
        let measured = |threads: usize| self.measurements.iter().any(|m| m.threads == threads);
        if all > 1 && measured(1) && measured(all) {
            let side_by_side = self.estimate(model, 1).gflops * all as f64;
            return self.estimate(model, all).gflops >= ABOUT * side_by_side;
        }
        all > 1 && model.width >= WIDE
    }
}

fn write(path: &Path, speed: &Speed) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut bytes = serde_json::to_vec_pretty(speed).expect("plain numbers and names");
    bytes.push(b'\n');
    // Complete or not at all, also when two benchmarks end together.
    let half = path.with_extension(format!("{}.half", std::process::id()));
    std::fs::write(&half, bytes)?;
    std::fs::rename(half, path)
}

/// `REPRO_SPEED`, or `repro/speed.json` in the user's cache.
pub fn path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("REPRO_SPEED") {
        return Some(PathBuf::from(path));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.map(|cache| cache.join("repro").join("speed.json"))
}

/// Name of the processor, its cores and the instructions in use.
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map_or("", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let name = if name.is_empty() { std::env::consts::ARCH } else { name };
    format!("{name}, {cores} cores, {}", crate::ops::cpu::level::level().name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::config::{RawModel, Sharing};

    fn model(width: usize) -> ModelConfig {
        let raw = RawModel {
            width,
            depth: 1,
            loops: 1,
            sharing: Sharing::Looped,
            heads: 1,
            mlp: 8,
            vocabulary: 8,
            rope_theta: 1e4,
            norm_eps: 1e-5,
        };
        raw.check().unwrap()
    }

    #[test]
    fn a_speed_lies_between_those_of_the_nearest_measured_widths() {
        let at = |width, threads, gflops| Measurement { width, threads, gflops };
        let speed = Speed { processor: String::new(), measurements: vec![at(64, 1, 40.0), at(256, 1, 60.0), at(64, 2, 70.0)] };
        let of = |width, threads| speed.estimate(&model(width), threads).gflops;
        assert_eq!((of(64, 1), of(256, 1), of(1024, 1)), (40.0, 60.0, 60.0));
        assert!((of(32, 1) / 40.0 - 0.5_f64.powf(0.7)).abs() < 1e-9);
        assert!((of(128, 1) - 50.0).abs() < 1e-9);
        assert_eq!((of(64, 2), of(64, 4)), (70.0, 140.0));
    }

    #[test]
    fn small_models_run_side_by_side_and_large_ones_on_all_threads_unless_measured_otherwise() {
        let never = Speed::default();
        assert!(!never.prefers_all_threads(&model(64), 2) && never.prefers_all_threads(&model(768), 2));
        assert!(!never.prefers_all_threads(&model(768), 1), "there is nothing to share");
        let at = |width, threads, gflops| Measurement { width, threads, gflops };
        let measurements = vec![at(64, 1, 40.0), at(64, 2, 60.0), at(256, 1, 50.0), at(256, 2, 99.0)];
        let speed = Speed { processor: String::new(), measurements };
        assert!(!speed.prefers_all_threads(&model(64), 2) && speed.prefers_all_threads(&model(256), 2));
    }

    #[test]
    fn a_machine_never_measured_gets_the_stated_assumption() {
        let none = Speed::default().estimate(&model(64), 2);
        assert_eq!(none, Estimate { gflops: 2.0 * ASSUMED_GFLOPS_PER_THREAD, assumed: true });
    }
}
