//! Table of verdicts, from verdicts.json. Fields it does not know are left alone.

use serde::Deserialize;

use super::{Column, Sheet, significant};

/// verdicts.json as `verify` writes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Verdicts {
    #[serde(default)]
    pub scale: String,
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Verdict {
    pub id: String,
    #[serde(default)]
    pub claim: String,
    pub verdict: String,
    #[serde(default)]
    pub measured: Option<f64>,
    #[serde(default)]
    pub measured_text: String,
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
    #[serde(default)]
    pub unit: String,
    #[serde(default)]
    pub paper: String,
    #[serde(default)]
    pub why: String,
}

pub fn verdicts(found: &Verdicts) -> Sheet {
    let scale = if found.scale.is_empty() { String::new() } else { format!(" Scale: {}.", found.scale) };
    let mut sheet = Sheet::new(
        "verdicts",
        format!("Claims of the paper and their verdicts.{scale}"),
        vec![
            Column::left("id"),
            Column::text("claim", 0.24),
            Column::text("paper", 0.14),
            Column::text("measured", 0.16),
            Column::left("verdict"),
            Column::text("why", 0.26),
        ],
    );
    sheet.wide = true;
    for verdict in &found.verdicts {
        let mut measured = match (&verdict.measured_text, verdict.measured) {
            (text, _) if !text.is_empty() => text.clone(),
            (_, Some(value)) => significant(value, 4),
            _ => "—".to_string(),
        };
        if let Some([low, high]) = verdict.interval {
            measured += &format!(" [{}, {}]", significant(low, 3), significant(high, 3));
        }
        sheet.push(vec![
            verdict.id.clone().into(),
            verdict.claim.clone().into(),
            verdict.paper.clone().into(),
            measured.into(),
            verdict.verdict.clone().into(),
            verdict.why.clone().into(),
        ]);
    }
    sheet
}
