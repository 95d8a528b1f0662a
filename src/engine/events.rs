//! What a run says while it goes on. Whoever shows it (a terminal, a log, a program) implements [`Sink`].

use serde::Serialize;

use super::why::Why;

/// Something that happened. As JSON, one object a line, with `event` saying which.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The plan is made and work begins.
    RunStarted {
        profile: &'a str,
        nodes: usize,
        stages: Vec<StageCount<'a>>,
    },
    /// Nothing had to be done.
    NodeCached {
        node: &'a str,
        stage: &'a str,
        key: String,
    },
    /// Published files were put back from the store.
    NodeRestored {
        node: &'a str,
        stage: &'a str,
        key: String,
        why: &'a str,
    },
    NodeStarted {
        node: &'a str,
        stage: &'a str,
        key: String,
        why: &'a Why,
        attempt: u32,
    },
    /// Its worker lives; what it prints goes to this file until it ends.
    NodeWorking {
        node: &'a str,
        stage: &'a str,
        pid: u32,
        log: &'a std::path::Path,
    },
    /// What the worker last said of its progress.
    NodeProgress {
        node: &'a str,
        stage: &'a str,
        progress: &'a Progress,
    },
    /// Another process is making this very node.
    NodeWaits {
        node: &'a str,
        stage: &'a str,
        holder: &'a str,
    },
    NodeDone {
        node: &'a str,
        stage: &'a str,
        key: String,
        seconds: f64,
    },
    /// It failed and will be tried again.
    NodeRetried {
        node: &'a str,
        stage: &'a str,
        what: &'a str,
        attempt: u32,
    },
    NodeFailed {
        node: &'a str,
        stage: &'a str,
        what: &'a str,
        log: Option<String>,
        tail: Vec<String>,
    },
    /// It cannot run because something before it failed.
    NodeBlocked {
        node: &'a str,
        stage: &'a str,
        by: &'a str,
    },
    Warning {
        what: &'a str,
    },
    RunFinished {
        summary: &'a Summary,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct StageCount<'a> {
    pub stage: &'a str,
    pub nodes: usize,
}

/// A worker's progress, as it leaves it for the display.
#[derive(Clone, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    /// Such as `loss 3.21`.
    #[serde(default)]
    pub note: String,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
pub struct Summary {
    pub ran: usize,
    pub cached: usize,
    pub restored: usize,
    pub failed: usize,
    pub blocked: usize,
    /// Not reached, because the run was interrupted or stopped at the first failure.
    pub left: usize,
    pub interrupted: bool,
    pub seconds: f64,
    /// What the cached and restored nodes took when they ran.
    pub saved_seconds: f64,
}

pub trait Sink: Sync {
    fn event(&self, event: &Event);
}

/// Says nothing.
pub struct Silent;

impl Sink for Silent {
    fn event(&self, _: &Event) {}
}
