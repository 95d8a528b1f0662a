//! Keys: blake3 over canonical JSON of all that determines a node's bytes.
//!
//! | part | enters the key | left out on purpose |
//! |---|---|---|
//! | kind | its name | |
//! | code | digest of the sources behind the kind and of the crates they use | comments, tests, the pipeline's own code |
//! | params | after defaults, checks and templates | thread count, memory, timeout, retries |
//! | inputs | name, place in the working directory, content digest | paths outside it, times, owners |
//! | outputs | name and path | |
//! | seed, numerics | as given by the stage and its kind | host, profile name, clock |

use serde_json::Value;

use super::digest::Digest;
use super::graph::{Node, Origin};

/// The parts of a key as canonical JSON text, and the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub digest: Digest,
    pub parts: String,
}

/// The content of one input: digests in the order of the graph's own listing.
pub enum InputContent {
    Path(Digest),
    Nodes(Vec<Digest>),
}

/// The key of a node whose inputs have these contents.
pub fn key(node: &Node, kind: &str, code: &str, contents: &[InputContent]) -> Key {
    let mut out = String::with_capacity(512);
    out.push_str("{\"code\":");
    text(code, &mut out);
    out.push_str(",\"inputs\":{");
    let mut order: Vec<usize> = (0..node.inputs.len()).collect();
    order.sort_unstable_by(|left, right| node.inputs[*left].name.cmp(&node.inputs[*right].name));
    for (nth, at) in order.into_iter().enumerate() {
        let input = &node.inputs[at];
        separate(nth, &mut out);
        text(&input.name, &mut out);
        out.push_str(":{");
        match (&input.origin, &contents[at]) {
            (Origin::Path(_), InputContent::Path(digest)) => {
                text(&input.mount, &mut out);
                out.push(':');
                text(&digest.hex(), &mut out);
            }
            (Origin::Nodes(list), InputContent::Nodes(digests)) => {
                let mut pairs: Vec<(&str, &Digest)> = list.iter().map(|from| from.mount.as_str()).zip(digests).collect();
                pairs.sort_unstable();
                for (nth, (mount, digest)) in pairs.into_iter().enumerate() {
                    separate(nth, &mut out);
                    text(mount, &mut out);
                    out.push(':');
                    text(&digest.hex(), &mut out);
                }
            }
            _ => unreachable!("contents are listed in the order of the inputs"),
        }
        out.push('}');
    }
    out.push_str("},\"kind\":");
    text(kind, &mut out);
    out.push_str(",\"numerics\":");
    text(node.numerics, &mut out);
    out.push_str(",\"outputs\":{");
    let mut outputs: Vec<_> = node.outputs.iter().collect();
    outputs.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    for (nth, output) in outputs.into_iter().enumerate() {
        separate(nth, &mut out);
        text(&output.name, &mut out);
        out.push(':');
        if output.directory { text(&format!("{}/", output.path), &mut out) } else { text(&output.path, &mut out) }
    }
    out.push_str("},\"params\":");
    canonical(&node.params, &mut out);
    out.push_str(",\"seed\":");
    match node.seed {
        Some(seed) => out.push_str(&seed.to_string()),
        None => out.push_str("null"),
    }
    out.push('}');
    Key { digest: Digest::of(out.as_bytes()), parts: out }
}

fn separate(nth: usize, out: &mut String) {
    if nth > 0 {
        out.push(',');
    }
}

fn text(value: &str, out: &mut String) {
    let plain = value.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push('"');
        out.push_str(value);
        out.push('"');
    } else {
        out.push_str(&serde_json::to_string(value).expect("text is JSON"));
    }
}

/// JSON with sorted keys and no white space; numbers in the shortest form that reads back the same.
pub fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (nth, key) in keys.into_iter().enumerate() {
                separate(nth, out);
                text(key, out);
                out.push(':');
                canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (nth, item) in list.iter().enumerate() {
                separate(nth, out);
                canonical(item, out);
            }
            out.push(']');
        }
        Value::String(string) => text(string, out),
        plain => out.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_does_not_depend_on_the_order_of_keys() {
        let (mut left, mut right) = (String::new(), String::new());
        canonical(&serde_json::from_str(r#"{"b": [1, 2.50, "x\n"], "a": {"d": null, "c": true}}"#).unwrap(), &mut left);
        canonical(&json!({"a": {"c": true, "d": null}, "b": [1, 2.5, "x\n"]}), &mut right);
        assert_eq!(left, r#"{"a":{"c":true,"d":null},"b":[1,2.5,"x\n"]}"#);
        assert_eq!(left, right);
    }
}
