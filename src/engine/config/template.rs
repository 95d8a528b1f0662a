//! `${{ name }}` in strings: finds it, replaces it, and says so when the name is unknown. Where names come from is the caller's business.

use serde_json::Value;

use super::ids::text_of;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TemplateError {
    #[error("`${{{{` has no closing `}}}}` in `{text}`")]
    Unclosed { text: String },
    #[error("unknown variable `{name}`{}", super::known(names, name))]
    Unknown { name: String, names: Vec<String> },
    #[error("`{name}` is a {kind} and cannot stand inside a longer text; use it alone as `${{{{ {name} }}}}`")]
    NotText { name: String, kind: &'static str },
}

/// Looks a name up.
pub trait Scope {
    fn get(&self, name: &str) -> Option<Value>;
    /// Every name there is, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// Replaces every template below `value`. A string that is one template alone takes the variable's type.
pub fn fill(value: &Value, scope: &dyn Scope) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) => fill_text(text, scope)?,
        Value::Array(list) => list.iter().map(|item| fill(item, scope)).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| Ok((key.clone(), fill(item, scope)?)))
            .collect::<Result<serde_json::Map<_, _>, TemplateError>>()?
            .into(),
        plain => plain.clone(),
    })
}

/// As [`fill`], where the result has to be text.
pub fn fill_string(text: &str, scope: &dyn Scope) -> Result<String, TemplateError> {
    match fill_text(text, scope)? {
        Value::String(text) => Ok(text),
        other => text_of(&other).ok_or(TemplateError::NotText { name: text.to_string(), kind: kind_of(&other) }),
    }
}

fn fill_text(text: &str, scope: &dyn Scope) -> Result<Value, TemplateError> {
    if !text.contains("${{") {
        return Ok(text.into());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${{") {
        out.push_str(&rest[..start]);
        let inside = &rest[start + 3..];
        let end = inside.find("}}").ok_or_else(|| TemplateError::Unclosed { text: text.to_string() })?;
        let name = inside[..end].trim();
        rest = &inside[end + 2..];
        // `${{ '${{' }}` is how a literal `${{` is written.
        if name.len() >= 2 && name.starts_with('\'') && name.ends_with('\'') {
            out.push_str(&name[1..name.len() - 1]);
            continue;
        }
        let value = scope.get(name).ok_or_else(|| TemplateError::Unknown { name: name.to_string(), names: scope.names() })?;
        if start == 0 && rest.is_empty() && out.is_empty() {
            return Ok(value);
        }
        match text_of(&value) {
            Some(value) => out.push_str(&value),
            None => return Err(TemplateError::NotText { name: name.to_string(), kind: kind_of(&value) }),
        }
    }
    out.push_str(rest);
    Ok(out.into())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "list",
        Value::Object(_) => "mapping",
        Value::Null => "null",
        _ => "plain value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Fixed;
    impl Scope for Fixed {
        fn get(&self, name: &str) -> Option<Value> {
            match name {
                "lr" => Some(json!(2e-3)),
                "rates" => Some(json!([1, 2])),
                "rule" => Some(json!("linear")),
                _ => None,
            }
        }
        fn names(&self) -> Vec<String> {
            vec!["lr".into(), "rates".into(), "rule".into()]
        }
    }

    #[test]
    fn a_template_alone_keeps_its_type() {
        assert_eq!(fill(&json!({"a": ["${{ lr }}", "${{rates}}"]}), &Fixed).unwrap(), json!({"a": [2e-3, [1, 2]]}));
    }

    #[test]
    fn a_template_inside_text_becomes_text() {
        assert_eq!(fill(&json!("r=${{ rule }} lr=${{ lr }}"), &Fixed).unwrap(), json!("r=linear lr=2e-3"));
    }

    #[test]
    fn a_literal_opening_can_be_written_and_shell_variables_are_left_alone() {
        assert_eq!(fill(&json!("${{ '${{' }} ${HOME}"), &Fixed).unwrap(), json!("${{ ${HOME}"));
    }

    #[test]
    fn mistakes_are_named() {
        let unknown = fill(&json!("${{ ruel }}"), &Fixed).unwrap_err().to_string();
        assert_eq!(unknown, "unknown variable `ruel`; did you mean `rule`?");
        assert!(fill(&json!("x ${{ lr "), &Fixed).unwrap_err().to_string().contains("no closing"));
        assert!(fill(&json!("x ${{ rates }}"), &Fixed).unwrap_err().to_string().contains("`rates` is a list"));
    }
}
