//! The arrows between rooms: `cli -> stage -> {engine, paper, render}`, `paper -> ops -> dfdx`. Reads the imports and fails on a wrong one.

use std::fs;
use std::path::{Path, PathBuf};

/// What each room may import of ours, besides itself.
const ARROWS: [(&str, &[&str]); 6] = [
    ("cli", &["stage", "engine", "paper", "render"]),
    ("stage", &["engine", "paper", "render"]),
    ("engine", &[]),
    ("paper", &["ops"]),
    ("render", &[]),
    ("ops", &[]),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    found
}

/// The rooms named after `crate::` in a file, comments aside.
fn imports(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, word) in code.match_indices("crate::") {
        let rest = code[at + word.len()..].trim_start();
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap().split(',').collect(),
            None => vec![rest],
        };
        for name in names {
            let name: String = name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push(name);
        }
    }
    found
}

#[test]
fn no_room_imports_what_it_must_not_know() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    for (room, allowed) in ARROWS {
        for path in sources(&src.join(room)) {
            for import in imports(&fs::read_to_string(&path).unwrap()) {
                let known = ARROWS.iter().any(|(name, _)| *name == import);
                let fine = !known || import == room || allowed.contains(&import.as_str());
                assert!(fine, "{} imports `{import}`, but {room} may only import {allowed:?}", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} imports were found: is the reader broken?");
    let engine: String = sources(&src.join("engine")).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(!engine.contains("dfdx"), "the engine has never heard of a tensor");
}

#[test]
fn every_file_says_why_it_exists() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&src) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not open with what it is for", path.display());
    }
}
