//! The report: one HTML page made of verdicts, figures, tables and deviations. It asks for nothing outside itself.
//!
//! The page has two parts. What is here follows from the files it is given, and is the same bytes for the same files. What is
//! known only about a run (keys, times, states of nodes) is written into the page afterwards by [`complete`], as JSON which the
//! page's own script shows. See docs/adr/0007-a-page-in-two-parts.md.

pub mod compare;
mod figures;
mod markdown;
mod page;
mod svg;
mod tables;
mod verdicts;

use std::io;
use std::path::{Path, PathBuf};

pub use figures::{Figure, read_one as read_figure};
pub use page::{complete, main_part, page};
pub use tables::Table;
pub use verdicts::{Counts, Ruling, Verdict, Verdicts, digits};

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("`{}` cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` is not what `verify` writes", path.display())]
    Verdicts { path: PathBuf, source: serde_json::Error },
    #[error("`{}` does not describe a figure", path.display())]
    Figure { path: PathBuf, source: serde_json::Error },
    #[error("`{}` is no SVG picture", path.display())]
    Svg { path: PathBuf, source: roxmltree::Error },
}

/// Where the parts of a report lie. What is absent is left out of the page.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub verdicts: Option<PathBuf>,
    pub figures: Option<PathBuf>,
    pub tables: Option<PathBuf>,
    pub deviations: Option<PathBuf>,
}

/// What a report says.
#[derive(Clone, Debug, Default)]
pub struct Content {
    pub title: String,
    pub verdicts: Verdicts,
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
    /// Markdown.
    pub deviations: String,
}

impl Content {
    pub fn read(title: &str, places: &Places) -> Result<Content, ReportError> {
        Ok(Content {
            title: title.to_string(),
            verdicts: places.verdicts.as_deref().map(Verdicts::read).transpose()?.unwrap_or_default(),
            figures: places.figures.as_deref().map(figures::read).transpose()?.unwrap_or_default(),
            tables: places.tables.as_deref().map(tables::read).transpose()?.unwrap_or_default(),
            deviations: places.deviations.as_deref().map(read_text).transpose()?.unwrap_or_default(),
        })
    }
}

fn read_text(path: &Path) -> Result<String, ReportError> {
    let bytes = std::fs::read(path).map_err(|source| ReportError::Read { path: path.to_path_buf(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files of a folder with one of these endings, by name.
fn list(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, ReportError> {
    let unreadable = |source| ReportError::Read { path: folder.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| endings.contains(&ending)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A name as an id in the page: letters, digits, `-` and `_`.
fn anchor(prefix: &str, name: &str) -> String {
    let safe: String = name.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect();
    format!("{prefix}-{safe}")
}
