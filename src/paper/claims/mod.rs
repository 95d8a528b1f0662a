//! Claims and verdicts. A claims file says what is claimed and how it is checked; tidy tables say what was measured; here the one is
//! judged by the other. Knows nothing of stages or of the store: it is given tables and text.
//!
//! `yaml` text with places -> `file` claims, all names checked -> `measure` estimates -> `judge` verdicts -> `text` for people.

mod expect;
mod expression;
mod facts;
mod file;
mod judge;
mod measure;
pub mod plan;
mod select;
pub mod text;
mod vocabulary;
mod yaml;

pub use file::{Claim, ClaimsFile, parse};
pub use judge::{Artefact, Judgement, Part, Point, judge};
pub use vocabulary::{Vocabulary, known};

use serde::Serialize;
use std::fmt;

/// The table of what the `paper` profile would train.
pub const PLAN: &str = "paper-plan";

/// A mistake in a claims file: where, what, and what next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimsError {
    pub file: String,
    pub place: (usize, usize),
    pub message: String,
}

impl ClaimsError {
    fn at(file: &str, place: (usize, usize), message: impl Into<String>) -> ClaimsError {
        ClaimsError { file: file.to_string(), place, message: message.into() }
    }
}

impl std::error::Error for ClaimsError {}

impl fmt::Display for ClaimsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.place.0, self.place.1, self.message)
    }
}

/// From good to bad: the verdict of a claim is the worst of its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    Pass,
    Inconclusive,
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Pass => "PASS",
            Verdict::Inconclusive => "INCONCLUSIVE",
            Verdict::Fail => "FAIL",
        })
    }
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    Configuration,
    Empirical,
    Theory,
    /// A user's.
    Own,
}

impl Group {
    pub const ALL: [Group; 4] = [Group::Configuration, Group::Empirical, Group::Theory, Group::Own];

    pub fn name(self) -> &'static str {
        match self {
            Group::Configuration => "configuration",
            Group::Empirical => "empirical",
            Group::Theory => "theory",
            Group::Own => "own",
        }
    }

    /// The group of an id as in the list of the paper's claims: CFG-1, E1, T1.
    fn of(id: &str) -> Group {
        let numbered = |prefix: &str| id.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
        match () {
            () if numbered("CFG-") => Group::Configuration,
            () if numbered("E") => Group::Empirical,
            () if numbered("T") => Group::Theory,
            () => Group::Own,
        }
    }
}
