//! Decides why a node must run again. Compares the parts of two keys; reads no files itself.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::config::ids::text_of;

/// Why a node runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Why {
    /// Nothing is known of it in this profile.
    NeverRan,
    /// It was named with `--force`.
    Forced,
    /// A part of its key differs from the last time; the first of them, and how many more.
    Changed { part: String, old: String, new: String, more: usize },
    /// Same key as the last time, and that time failed.
    FailedBefore { what: String },
    /// It was done, but what it made is gone from the store.
    Lost { what: String },
    /// The key was seen before and its record is gone, removed by `gc` or damaged.
    NoRecord,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Why::NeverRan => f.write_str("never ran"),
            Why::Forced => f.write_str("forced"),
            Why::Changed { part, old, new, more } => {
                write!(f, "{part} changed {old} -> {new}")?;
                if *more > 0 { write!(f, " (and {more} more)") } else { Ok(()) }
            }
            Why::FailedBefore { what } => write!(f, "failed last time: {what}"),
            Why::Lost { what } => write!(f, "{what}"),
            Why::NoRecord => f.write_str("its record is gone"),
        }
    }
}

/// One part that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub part: String,
    pub old: String,
    pub new: String,
}

/// All parts in which two keys differ, the most telling first: parameters, then inputs, code, and the rest.
pub fn differences(old: &str, new: &str) -> Vec<Difference> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let mut found = Vec::new();
    compare("", &parse(old), &parse(new), &mut found);
    let rank = |part: &str| match part.split('.').next().unwrap_or_default() {
        "params" => 0,
        "inputs" => 1,
        "code" => 2,
        _ => 3,
    };
    found.sort_by_key(|difference| rank(&difference.part));
    for difference in &mut found {
        if let Some(short) = difference.part.strip_prefix("params.") {
            difference.part = short.to_string();
        } else if let Some(input) = difference.part.strip_prefix("inputs.") {
            difference.part = format!("input {}", input.replacen('.', " ", 1));
        }
    }
    found
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    match (old, new) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (left, right) if left == right => {}
        (left, right) => found.push(Difference { part: path.to_string(), old: shown(left), new: shown(right) }),
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_string(),
        Value::String(text) if is_digest(text) => text[..12].to_string(),
        Value::String(text) => format!("`{text}`"),
        plain => text_of(plain).unwrap_or_else(|| plain.to_string()),
    };
    if text.chars().count() > 120 { text.chars().take(117).chain("...".chars()).collect() } else { text }
}

fn is_digest(text: &str) -> bool {
    (text.len() == 64 || text.len() == 32) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A kind's code as JSON: `{"crates": {name: version}, "files": {path: digest}}`.
pub fn code_listing(code: &super::kind::Code) -> String {
    let pairs = |list: &[(&str, &str)]| -> Value {
        list.iter().map(|(name, value)| (name.to_string(), Value::from(*value))).collect::<serde_json::Map<_, _>>().into()
    };
    serde_json::json!({"crates": pairs(code.crates), "files": pairs(code.files)}).to_string()
}

/// The first difference as a reason, or `None` where there is none.
pub fn changed(old: &str, new: &str) -> Option<Why> {
    let all = differences(old, new);
    let first = all.first()?.clone();
    Some(Why::Changed { part: first.part, old: first.old, new: first.new, more: all.len() - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_parameter_comes_first_with_old_and_new_value() {
        let old = r#"{"code":"a","inputs":{"data":{"x.txt":"1"}},"params":{"lr":0.001,"steps":5}}"#;
        let new = r#"{"code":"b","inputs":{"data":{"x.txt":"2"}},"params":{"lr":0.002,"steps":5}}"#;
        assert_eq!(changed(old, new).unwrap().to_string(), "lr changed 1e-3 -> 2e-3 (and 2 more)");
        let parts: Vec<String> = differences(old, new).into_iter().map(|difference| difference.part).collect();
        assert_eq!(parts, ["lr", "input data x.txt", "code"]);
    }

    #[test]
    fn a_new_input_is_a_change_from_nothing() {
        let why = changed(r#"{"inputs":{}}"#, r#"{"inputs":{"a":{"a.txt":"0f"}}}"#).unwrap();
        assert_eq!(why.to_string(), "input a changed nothing -> {\"a.txt\":\"0f\"}");
        assert_eq!(changed("{}", "{}"), None);
    }
}
