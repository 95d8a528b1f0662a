//! How values look in node ids and in text: short, readable, safe in a file name.

use serde_json::Value;

/// A plain value as text: `2e-3` for 0.002, `12` for 12. `None` for lists and mappings.
pub fn text_of(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(float)) => float_text(float),
            (None, None) => number.to_string(),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    })
}

/// The shortest text that reads back as the same number: scientific below 0.01 and from 1e6 on.
pub fn float_text(float: f64) -> String {
    if float != 0.0 && (float.abs() < 0.01 || float.abs() >= 1e6) { format!("{float:e}") } else { format!("{float}") }
}

/// The name of a grid point made of all its axes: `L12-N8-linear-lr2e-3`. Text stands alone, numbers carry their axis' name.
pub fn point_id<'a>(point: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let mut id = String::new();
    for (axis, value) in point {
        if !id.is_empty() {
            id.push('-');
        }
        if !value.is_string() {
            id.push_str(axis);
        }
        id.push_str(&text_of(value).unwrap_or_default());
    }
    safe(&id)
}

/// Replaces what a file name or a shell pattern cannot hold.
pub fn safe(id: &str) -> String {
    let cleaned: String =
        id.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '=' | ',') { c } else { '_' }).collect();
    cleaned.trim_start_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn learning_rates_read_as_people_write_them() {
        for (value, text) in [(2e-3, "2e-3"), (1.25e-3, "1.25e-3"), (0.5, "0.5"), (12.0, "12"), (1e-4, "1e-4"), (3e7, "3e7")] {
            assert_eq!(float_text(value), text);
            assert_eq!(text.parse::<f64>().unwrap(), value);
        }
    }

    #[test]
    fn a_point_id_names_numbers_and_leaves_words_alone() {
        let point = [("L", json!(12)), ("N", json!(8)), ("rule", json!("linear")), ("lr", json!(2e-3)), ("ok", json!(true))];
        assert_eq!(point_id(point.iter().map(|(axis, value)| (*axis, value))), "L12-N8-linear-lr2e-3-oktrue");
    }

    #[test]
    fn an_id_is_safe_in_a_path() {
        assert_eq!(safe("../a b/c*"), "_a_b_c_");
    }
}
