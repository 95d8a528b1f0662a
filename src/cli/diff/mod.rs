//! `repro diff`: verdicts, metrics and figures of two results, side by side.

mod numbers;
mod sides;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::style::Style;
use super::{CliError, Exit, Global, print};
use crate::render::report::compare::{Difference, FigurePair, Likeness, VerdictPair, page};
use crate::render::report::{Figure, Verdicts, read_figure};
use sides::Side;

/// Compare verdicts, metrics and figures of two profiles, runs or checkouts.
///
/// Each side is a profile (`quick`), a profile before its last run (`quick~1`, or `quick~2` for the run before that), a checkout
/// (`../other`, with `../other:workstation` for another profile than its default), or a folder of results (`out/quick`).
#[derive(clap::Args)]
pub struct Args {
    /// The one side
    a: String,
    /// The other side
    b: String,
    /// Write the comparison with both sides' figures to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// List what is the same, too
    #[arg(long)]
    all: bool,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let (left, right) = (Side::find(global, &args.a)?, Side::find(global, &args.b)?);
    let difference = compare(&left, &right)?;
    if let Some(file) = &args.html {
        let written = std::fs::write(file, page(&difference));
        written.map_err(|source| CliError::Io { what: format!("`{}` cannot be written", file.display()), source })?;
    }
    if global.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&difference).expect("plain data")));
    } else {
        print(&text::of(&difference, args.all, Style::of_stdout()));
        if let Some(file) = &args.html {
            print(&format!("\n{}\n", file.display()));
        }
    }
    Ok(Exit::Ok)
}

fn compare(left: &Side, right: &Side) -> Result<Difference, CliError> {
    let (old, new) = (verdicts(left)?, verdicts(right)?);
    Ok(Difference {
        left: left.label.clone(),
        right: right.label.clone(),
        left_scale: old.scale.clone(),
        right_scale: new.scale.clone(),
        verdicts: pair_verdicts(&old, &new),
        metrics: numbers::compare(left, right)?,
        figures: pair_figures(left, right)?,
    })
}

fn verdicts(side: &Side) -> Result<Verdicts, CliError> {
    let path = side.files.get("verify/verdicts.json");
    Ok(path.map(|path| Verdicts::read(path)).transpose().map_err(CliError::failed)?.unwrap_or_default())
}

/// In the order of the right side; what only the left one has comes last.
fn pair_verdicts(left: &Verdicts, right: &Verdicts) -> Vec<VerdictPair> {
    let find = |all: &Verdicts, id: &str| all.verdicts.iter().find(|verdict| verdict.id == id).cloned();
    let known: BTreeSet<&str> = right.verdicts.iter().map(|verdict| verdict.id.as_str()).collect();
    let gone = left.verdicts.iter().filter(|verdict| !known.contains(verdict.id.as_str()));
    let both = right.verdicts.iter().map(|verdict| VerdictPair { left: find(left, &verdict.id), right: Some(verdict.clone()) });
    both.chain(gone.map(|verdict| VerdictPair { left: Some(verdict.clone()), right: None })).collect()
}

fn pair_figures(left: &Side, right: &Side) -> Result<Vec<FigurePair>, CliError> {
    let read = |side: &Side| -> Result<BTreeMap<String, Figure>, CliError> {
        let files = side.below("figures").into_iter().filter(|(name, _)| name.ends_with(".svg"));
        let found = files.map(|(name, path)| {
            let name = name.trim_end_matches(".svg").to_string();
            let about = side.files.get(&format!("figures/{name}.json")).map(PathBuf::as_path);
            Ok((name.clone(), read_figure(&name, path, about).map_err(CliError::failed)?))
        });
        found.collect()
    };
    let (mut old, mut new) = (read(left)?, read(right)?);
    let names: BTreeSet<String> = old.keys().chain(new.keys()).cloned().collect();
    let pair = |name: String| {
        let (left, right) = (old.remove(&name), new.remove(&name));
        let likeness = match (&left, &right) {
            (Some(left), Some(right)) if left.svg == right.svg => Likeness::Same,
            (Some(_), Some(_)) => Likeness::Differs,
            (Some(_), None) => Likeness::OnlyLeft,
            _ => Likeness::OnlyRight,
        };
        FigurePair { name, likeness, left, right }
    };
    Ok(names.into_iter().map(pair).collect())
}
