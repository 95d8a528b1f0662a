//! Tokens for threads, memory and GPUs: what a node takes, what the machine has, and whether one fits in what is left of the other.

use super::config::ids::text_of;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An amount of each resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub threads: usize,
    pub memory_bytes: u64,
    pub gpus: usize,
}

impl Resources {
    /// What this machine has.
    pub fn of_machine() -> Resources {
        Resources { threads: cores(), memory_bytes: memory_bytes().unwrap_or(u64::MAX), gpus: gpus() }
    }

    /// A node that wants more than there is runs alone instead of never.
    pub fn capped(self, most: Resources) -> Resources {
        Resources {
            threads: self.threads.min(most.threads),
            memory_bytes: self.memory_bytes.min(most.memory_bytes),
            gpus: self.gpus.min(most.gpus),
        }
    }

    pub fn fits(&self, free: &Resources) -> bool {
        self.threads <= free.threads && self.memory_bytes <= free.memory_bytes && self.gpus <= free.gpus
    }

    pub fn take(&mut self, part: &Resources) {
        self.threads -= part.threads;
        self.memory_bytes -= part.memory_bytes;
        self.gpus -= part.gpus;
    }

    pub fn give_back(&mut self, part: &Resources) {
        self.threads += part.threads;
        self.memory_bytes += part.memory_bytes;
        self.gpus += part.gpus;
    }
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// The memory that may be used: what is available now, or the control group's limit if that is less.
pub fn memory_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let available = line.split_whitespace().next()?.parse::<u64>().ok()? * 1024;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(available, |limit: u64| limit.min(available)))
}

/// NVIDIA GPUs the driver shows, or those that CUDA_VISIBLE_DEVICES leaves.
pub fn gpus() -> usize {
    let present = std::fs::read_dir("/proc/driver/nvidia/gpus").map_or(0, |dir| dir.flatten().count());
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(list) => list.split(',').filter(|id| !id.trim().is_empty() && id.trim() != "-1").count().min(present),
        Err(_) => present,
    }
}

/// `512MiB`, `4 GB`, `1.5GiB`, or a plain number of bytes.
pub fn parse_bytes(value: &Value) -> Result<u64, String> {
    let text = text_of(value).unwrap_or_default();
    let wrong = || format!("`{text}` is not an amount of memory; write it as `512MiB` or `4GiB`");
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| wrong())?;
    let unit = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024f64.powi(2),
        "mb" => 1e6,
        "g" | "gib" => 1024f64.powi(3),
        "gb" => 1e9,
        "t" | "tib" => 1024f64.powi(4),
        "tb" => 1e12,
        _ => return Err(wrong()),
    };
    Ok((number * unit) as u64)
}

/// `90s`, `10m`, `2h`, `1h30m`; a plain number is seconds.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a time; write it as `90s`, `10m` or `1h30m`");
    let (mut total, mut number) = (0.0, String::new());
    for c in text.trim().chars() {
        let unit = match c {
            '0'..='9' | '.' => {
                number.push(c);
                continue;
            }
            's' => 1.0,
            'm' => 60.0,
            'h' => 3600.0,
            'd' => 86400.0,
            _ => return Err(wrong()),
        };
        total += number.parse::<f64>().map_err(|_| wrong())? * unit;
        number.clear();
    }
    if !number.is_empty() {
        total += number.parse::<f64>().map_err(|_| wrong())?;
    }
    if total > 0.0 { Ok(total) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!(parse_bytes(&json!("4GiB")), Ok(4 << 30));
        assert_eq!(parse_bytes(&json!("1.5 MB")), Ok(1_500_000));
        assert_eq!(parse_bytes(&json!(1024)), Ok(1024));
        assert!(parse_bytes(&json!("four")).is_err());
        assert_eq!(parse_seconds("1h30m"), Ok(5400.0));
        assert_eq!(parse_seconds("0.5"), Ok(0.5));
        assert!(parse_seconds("soon").is_err());
        assert!(parse_seconds("0s").is_err());
    }

    #[test]
    fn a_node_larger_than_the_machine_is_cut_to_it() {
        let machine = Resources { threads: 2, memory_bytes: 100, gpus: 0 };
        let node = Resources { threads: 8, memory_bytes: 1000, gpus: 0 }.capped(machine);
        assert!(node.fits(&machine));
    }
}
