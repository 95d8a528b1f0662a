//! The loss of a training run as a small curve, from the metrics it wrote.

use std::path::Path;

use super::style::sparkline;

/// What a training node calls its metrics.
pub const METRICS: &str = "metrics.jsonl";

/// Every loss in a file of metrics, in order; a loss that is no number is NaN. Lines of another form are passed over.
pub fn losses(path: &Path) -> Vec<f64> {
    let text = std::fs::read(path).unwrap_or_default();
    let values = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    values.filter_map(|value| value.get("loss").map(|loss| loss.as_f64().unwrap_or(f64::NAN))).collect()
}

/// `7.012 █▆▅▃▂▁ 3.214`, or nothing if there is no loss.
pub fn line(path: &Path, width: usize) -> Option<String> {
    let losses = losses(path);
    let (first, last) = (losses.first()?, losses.last()?);
    Some(format!("{first:.3} {} {last:.3}", sparkline(&losses, width)))
}
