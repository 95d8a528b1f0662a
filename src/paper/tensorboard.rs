//! TensorBoard event files with scalars: records of length, masked CRC-32C, and a small protobuf message.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub struct EventWriter {
    out: BufWriter<File>,
}

impl EventWriter {
    /// Begins a new event file in `dir`; TensorBoard shows all files of a folder as one run.
    pub fn create(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let now = now();
        let path = dir.join(format!("events.out.tfevents.{:010}.{:09}.repro", now as u64, (now.fract() * 1e9) as u64));
        let mut writer = Self { out: BufWriter::new(File::create(path)?) };
        let mut event = wall_time(now);
        field_bytes(&mut event, 3, b"brain.Event:2");
        writer.record(&event)?;
        Ok(writer)
    }

    pub fn scalar(&mut self, step: u64, name: &str, value: f32) -> io::Result<()> {
        self.record(&scalar_event(now(), step, name, value))
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        self.out.write_all(&length)?;
        self.out.write_all(&masked_crc(&length).to_le_bytes())?;
        self.out.write_all(data)?;
        self.out.write_all(&masked_crc(data).to_le_bytes())
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// Event { double wall_time = 1; .. }
fn wall_time(seconds: f64) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(seconds.to_le_bytes());
    event
}

/// Event { wall_time = 1, int64 step = 2, Summary summary = 5 { Value value = 1 { tag = 1, float simple_value = 2 } } }
fn scalar_event(seconds: f64, step: u64, name: &str, value: f32) -> Vec<u8> {
    let mut inner = Vec::new();
    field_bytes(&mut inner, 1, name.as_bytes());
    inner.push(2 << 3 | 5);
    inner.extend(value.to_le_bytes());
    let mut summary = Vec::new();
    field_bytes(&mut summary, 1, &inner);
    let mut event = wall_time(seconds);
    event.push(2 << 3);
    varint(&mut event, step);
    field_bytes(&mut event, 5, &summary);
    event
}

fn field_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The mask that record files put on a CRC, because a CRC of data that holds CRCs is weak.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: events are a few dozen bytes.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_gives_the_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
    }

    #[test]
    fn a_scalar_is_encoded_as_protobuf() {
        let event = scalar_event(1.5, 300, "loss", 2.0);
        let mut expected = vec![0x09];
        expected.extend(1.5_f64.to_le_bytes());
        expected.extend([0x10, 0xac, 0x02, 0x2a, 13, 0x0a, 11, 0x0a, 4]);
        expected.extend(b"loss");
        expected.push(0x15);
        expected.extend(2.0_f32.to_le_bytes());
        assert_eq!(event, expected);
    }
}
