//! Reads pipeline.yaml and stages/*.yaml. Everything about files, positions in them and their raw form; what a stage means is decided in `graph`.

pub mod grid;
pub mod ids;
pub mod locate;
pub mod raw;
pub mod template;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use locate::{Seg, locate};
use raw::{RawPipeline, RawStage};

/// A mistake in a file of the project: where, what, and what next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Relative to the project.
    pub file: String,
    pub place: Option<(usize, usize)>,
    pub message: String,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// A file as it was read, kept for the places of later mistakes.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
}

impl Source {
    /// A mistake at `path` in this file.
    pub fn error(&self, path: &[Seg], at_key: bool, message: impl fmt::Display) -> ConfigError {
        ConfigError { file: self.name.clone(), place: locate(&self.text, path, at_key), message: message.to_string() }
    }
}

/// A stage as written, and where.
#[derive(Debug)]
pub struct StageSource {
    pub name: String,
    pub raw: RawStage,
    pub source: usize,
    /// The path from the file's root to the stage.
    pub prefix: Vec<Seg>,
}

/// A project's files, parsed and not yet understood.
#[derive(Debug)]
pub struct Project {
    pub root: PathBuf,
    pub pipeline: RawPipeline,
    pub stages: Vec<StageSource>,
    /// Stage files that a profile puts in place of a stage's own, by file name.
    pub variants: BTreeMap<String, StageSource>,
    pub sources: Vec<Source>,
}

impl Project {
    pub fn load(root: &Path) -> Result<Project, ConfigError> {
        let text = read(root, "pipeline.yaml").map_err(|error| match error.message.as_str() {
            "there is no such file" => ConfigError {
                message: "there is no such file; run in a project's folder or name it with `-C DIR`".into(),
                ..error
            },
            _ => error,
        })?;
        let mut pipeline: RawPipeline = parse("pipeline.yaml", &text)?;
        let mut sources = vec![Source { name: "pipeline.yaml".into(), text }];
        let mut stages = Vec::new();
        for (name, entry) in std::mem::take(&mut pipeline.stages.0) {
            let at = [Seg::from("stages"), Seg::from(name.as_str())];
            check_name(&name).map_err(|message| sources[0].error(&at, true, message))?;
            let entry = entry.unwrap_or_default();
            if entry.kind.is_some() {
                if entry.file.is_some() {
                    return Err(sources[0].error(&at, true, "a stage has a `kind` here or a `file`, not both"));
                }
                stages.push(StageSource { name, raw: entry, source: 0, prefix: at.to_vec() });
                continue;
            }
            let file = entry.file.clone().unwrap_or_else(|| format!("stages/{name}.yaml"));
            check_inside(&file).map_err(|message| sources[0].error(&at, true, message))?;
            if !root.join(&file).exists() {
                let message = format!("stage `{name}` has no `kind` here, and {file} does not exist; write one of the two");
                return Err(sources[0].error(&at, true, message));
            }
            let only_needs = RawStage { needs: Vec::new(), file: None, ..entry.clone() };
            if format!("{only_needs:?}") != format!("{:?}", RawStage::default()) {
                let message = format!("stage `{name}` is defined in {file}; only `file` and `needs` may stand beside it here");
                return Err(sources[0].error(&at, true, message));
            }
            let text = read(root, &file)?;
            let mut raw: RawStage = parse(&file, &text)?;
            raw.needs.extend(entry.needs);
            sources.push(Source { name: file, text });
            stages.push(StageSource { name, raw, source: sources.len() - 1, prefix: Vec::new() });
        }
        let mut variants = BTreeMap::new();
        for (profile, change) in pipeline.profiles.iter() {
            for (stage, file) in change.stages.iter().filter_map(|(stage, change)| Some((stage, change.file.as_ref()?))) {
                let at: [Seg; 5] = ["profiles".into(), profile.into(), "stages".into(), stage.into(), "file".into()];
                check_inside(file).map_err(|message| sources[0].error(&at, false, message))?;
                if !root.join(file).exists() {
                    return Err(sources[0].error(&at, false, format!("{file} does not exist")));
                }
                let text = read(root, file)?;
                let mut raw: RawStage = parse(file, &text)?;
                if let Some(own) = stages.iter().find(|own| own.name == stage) {
                    raw.needs.extend(own.raw.needs.iter().cloned());
                }
                sources.push(Source { name: file.clone(), text });
                let source = sources.len() - 1;
                variants.insert(file.clone(), StageSource { name: stage.to_string(), raw, source, prefix: Vec::new() });
            }
        }
        Ok(Project { root: root.to_path_buf(), pipeline, stages, variants, sources })
    }

    /// The names of all profiles. A pipeline that declares none has just the default one.
    pub fn profiles(&self) -> Vec<&str> {
        let declared: Vec<&str> = self.pipeline.profiles.keys().collect();
        if declared.is_empty() { vec![self.default_profile()] } else { declared }
    }

    pub fn default_profile(&self) -> &str {
        self.pipeline.default_profile.as_deref().unwrap_or("quick")
    }
}

fn read(root: &Path, name: &str) -> Result<String, ConfigError> {
    let fail = |message: String| ConfigError { file: name.to_string(), place: None, message };
    match std::fs::read(root.join(name)) {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|error| fail(format!("is not UTF-8: byte {} is wrong", error.utf8_error().valid_up_to()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(fail("there is no such file".into())),
        Err(error) => Err(fail(format!("cannot be read: {error}"))),
    }
}

fn parse<T: serde::de::DeserializeOwned + Default>(file: &str, text: &str) -> Result<T, ConfigError> {
    // An empty file is an empty mapping.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(T::default());
    }
    serde_yaml::from_str(text).map_err(|error| {
        let place = error.location().map(|place| (place.line(), place.column()));
        let mut text = error.to_string();
        if let Some((line, column)) = place {
            // The position stands in front of the message.
            text = text.replacen(&format!(" at line {line} column {column}"), "", 1);
        }
        ConfigError { file: file.to_string(), place, message: explain(&text) }
    })
}

/// serde_yaml's words, with the nearest valid name.
fn explain(text: &str) -> String {
    let Some((before, list)) = text.split_once("`, expected one of ").or_else(|| text.split_once("`, expected ")) else {
        return text.to_string();
    };
    let Some((_, wrong)) = before.rsplit_once("unknown field `") else { return text.to_string() };
    let names: Vec<String> = list.split('`').skip(1).step_by(2).map(str::to_string).collect();
    match nearest(&names, wrong) {
        Some(name) => format!("{text}; did you mean `{name}`?"),
        None => text.to_string(),
    }
}

/// The name most like `wrong`, if any is close enough to be meant.
pub fn nearest<'n>(names: &'n [String], wrong: &str) -> Option<&'n str> {
    let low = wrong.to_lowercase();
    names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &low), name))
        .filter(|(distance, name)| *distance <= 1 + name.chars().count().max(wrong.chars().count()) / 4)
        .min()
        .map(|(_, name)| name.as_str())
}

/// The end of a message about an unknown name: the nearest one there is, or else all of them.
pub fn known(names: &[String], wrong: &str) -> String {
    const MOST: usize = 12;
    match nearest(names, wrong) {
        Some(name) => format!("; did you mean `{name}`?"),
        None if names.is_empty() => "; there are none".to_string(),
        None => {
            let listed: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
            let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
            format!("; there is {}{more}", listed.join(", "))
        }
    }
}

/// A stage's name is a folder's name and part of node ids.
fn check_name(name: &str) -> Result<(), String> {
    let fine = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if name.is_empty() || !fine || name == "all" {
        return Err(format!("`{name}` cannot name a stage; use letters, digits, `-` and `_`, and not `all`"));
    }
    Ok(())
}

/// A path that stays below the folder it is relative to, whatever links there are.
pub fn check_inside(path: &str) -> Result<(), String> {
    use std::path::Component;
    if path.is_empty() {
        return Err("an empty path names nothing".into());
    }
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => return Err(format!("`{path}` leaves the project with `..`; name a path inside it")),
            Component::RootDir | Component::Prefix(_) => {
                return Err(format!("`{path}` is absolute; name a path inside the project"));
            }
            Component::CurDir | Component::Normal(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_names_the_nearest_one() {
        let error = parse::<RawPipeline>("pipeline.yaml", "stages:\n  a:\n    kind: command\n    ouputs: {}\n").unwrap_err();
        assert_eq!(error.place, Some((4, 5)));
        assert!(error.message.ends_with("did you mean `outputs`?"), "{}", error.message);
    }

    #[test]
    fn a_duplicate_key_is_refused() {
        let error = parse::<RawPipeline>("pipeline.yaml", "stages:\n  a: {kind: x}\n  a: {kind: x}\n").unwrap_err();
        assert!(error.message.contains("duplicate key `a`"), "{}", error.message);
    }

    #[test]
    fn a_yaml_bomb_is_refused_at_once() {
        let mut text = String::from("vars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let alias = format!("*a{}", level - 1);
            text += &format!("  a{level}: &a{level} [{}]\n", vec![alias; 9].join(", "));
        }
        let error = parse::<RawPipeline>("pipeline.yaml", &text).unwrap_err();
        assert!(error.message.contains("repetition limit exceeded"), "{}", error.message);
    }
}
