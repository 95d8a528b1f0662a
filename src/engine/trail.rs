//! The trail of a run: what happened to its nodes, one JSON object a line in `.repro/runs/<profile>/`, for those who look on from
//! another process. Nothing depends on it: a trail that cannot be written or read is as good as none.
//!
//! A run holds the kernel's lock on its trail while it lives, so a reader can tell a running node from one whose run was killed.
//! Cached nodes leave no trace, and a run that starts nothing leaves no trail.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::attempt::now_ms;
use super::events::{Event, Progress, Sink, Summary};

/// The least time between two words of progress of a node in the trail.
const BETWEEN: Duration = Duration::from_millis(400);
/// How many trails of a profile are kept.
const KEPT: usize = 8;
/// The most values of a loss that are kept of a running node.
const POINTS: usize = 400;

/// Passes all events on and leaves a trail of them.
pub struct Trailing<'a> {
    sink: &'a dyn Sink,
    folder: PathBuf,
    jobs: usize,
    state: Mutex<Writing>,
}

#[derive(Default)]
struct Writing {
    file: Option<File>,
    /// Tried once, and could not.
    hopeless: bool,
    spoke: HashMap<String, Instant>,
}

impl<'a> Trailing<'a> {
    pub fn new(sink: &'a dyn Sink, store: &Path, profile: &str, jobs: usize) -> Trailing<'a> {
        Trailing { sink, folder: folder(store, profile), jobs, state: Mutex::new(Writing::default()) }
    }

    fn write(&self, event: &Event) {
        let mut state = self.state.lock().expect("no thread panics while it writes the trail");
        match event {
            Event::RunStarted { .. } | Event::NodeCached { .. } | Event::NodeRestored { .. } | Event::Warning { .. } => return,
            Event::NodeProgress { node, .. } => {
                if state.spoke.get(*node).is_some_and(|last| last.elapsed() < BETWEEN) {
                    return;
                }
                state.spoke.insert(node.to_string(), Instant::now());
            }
            Event::RunFinished { .. } if state.file.is_none() => return,
            _ => {}
        }
        if state.file.is_none() && !state.hopeless {
            state.file = self.begin();
            state.hopeless = state.file.is_none();
        }
        if let Some(file) = &mut state.file {
            append(file, event);
        }
    }

    fn begin(&self) -> Option<File> {
        fs::create_dir_all(&self.folder).ok()?;
        let old = trails(&self.folder);
        for path in old.iter().take((old.len() + 1).saturating_sub(KEPT)) {
            let _ = fs::remove_file(path);
        }
        // Twenty digits: names sort as times do.
        let path = self.folder.join(format!("{:020}-{}.jsonl", now_ms(), std::process::id()));
        let mut file = OpenOptions::new().create_new(true).append(true).open(path).ok()?;
        file.try_lock().ok()?;
        writeln!(file, "{}", serde_json::json!({"event": "run_began", "at_ms": now_ms(), "jobs": self.jobs})).ok()?;
        Some(file)
    }
}

fn append(file: &mut File, event: &Event) {
    #[derive(Serialize)]
    struct Line<'a> {
        at_ms: u64,
        #[serde(flatten)]
        event: &'a Event<'a>,
    }
    let mut line = serde_json::to_vec(&Line { at_ms: now_ms(), event }).expect("an event is plain data");
    line.push(b'\n');
    let _ = file.write_all(&line);
}

impl Sink for Trailing<'_> {
    fn event(&self, event: &Event) {
        self.write(event);
        self.sink.event(event);
    }
}

fn folder(store: &Path, profile: &str) -> PathBuf {
    store.join("runs").join(profile)
}

fn trails(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
    found.sort();
    found
}

/// What a trail tells.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// Milliseconds since 1970.
    pub began_ms: u64,
    pub jobs: usize,
    /// Whether the run is going on.
    pub lives: bool,
    pub running: BTreeMap<String, RunningNode>,
    pub ran: BTreeSet<String>,
    pub failed: BTreeMap<String, String>,
    pub blocked: BTreeSet<String>,
    pub summary: Option<Summary>,
}

/// A node that was started and has not ended.
#[derive(Clone, Debug, Default)]
pub struct RunningNode {
    pub since_ms: u64,
    pub progress: Progress,
    /// Every loss it told, in order.
    pub losses: Vec<f64>,
    /// Where its output goes while it runs.
    pub log: Option<PathBuf>,
}

/// A line as it is read back; what is not asked for is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Read {
    event: String,
    at_ms: u64,
    jobs: usize,
    node: String,
    what: String,
    log: Option<PathBuf>,
    progress: Progress,
    summary: Option<Summary>,
}

impl Trail {
    /// The trails of a profile, the oldest first.
    pub fn all(store: &Path, profile: &str) -> Vec<Trail> {
        trails(&folder(store, profile)).iter().filter_map(|path| Trail::read(path)).collect()
    }

    /// The runs that go on, or else the last one, as one trail.
    pub fn latest(store: &Path, profile: &str) -> Option<Trail> {
        let mut all = Trail::all(store, profile);
        let last = all.pop()?;
        // Two runs of a profile at once share its nodes between them.
        Some(all.into_iter().filter(|trail| trail.lives).fold(last, Trail::with))
    }

    fn with(mut self, other: Trail) -> Trail {
        self.lives |= other.lives;
        self.began_ms = self.began_ms.min(other.began_ms);
        self.jobs += other.jobs;
        self.running.extend(other.running);
        self.ran.extend(other.ran);
        self.failed.extend(other.failed);
        self.blocked.extend(other.blocked);
        self
    }

    fn read(path: &Path) -> Option<Trail> {
        let file = File::open(path).ok()?;
        let lives = matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
        drop(file);
        let bytes = fs::read(path).ok()?;
        let mut trail = Trail { lives, ..Trail::default() };
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(read) = serde_json::from_slice::<Read>(line) {
                trail.learn(read);
            }
        }
        if !lives {
            trail.running.clear();
        }
        Some(trail)
    }

    fn learn(&mut self, read: Read) {
        match read.event.as_str() {
            "run_began" => (self.began_ms, self.jobs) = (read.at_ms, read.jobs),
            "node_started" => {
                self.failed.remove(&read.node);
                self.running.insert(read.node, RunningNode { since_ms: read.at_ms, ..RunningNode::default() });
            }
            "node_working" => {
                if let Some(running) = self.running.get_mut(&read.node) {
                    running.log = read.log;
                }
            }
            "node_progress" => {
                if let Some(running) = self.running.get_mut(&read.node) {
                    running.losses.extend(loss_in(&read.progress.note));
                    if running.losses.len() > POINTS {
                        // Every other value: the curve keeps its whole length.
                        let mut nth = 0;
                        running.losses.retain(|_| {
                            nth += 1;
                            nth % 2 == 1
                        });
                    }
                    running.progress = read.progress;
                }
            }
            "node_done" => {
                self.running.remove(&read.node);
                self.ran.insert(read.node);
            }
            "node_retried" => {
                self.running.remove(&read.node);
            }
            "node_failed" => {
                self.running.remove(&read.node);
                self.failed.insert(read.node, read.what);
            }
            "node_blocked" => {
                self.blocked.insert(read.node);
            }
            "run_finished" => self.summary = read.summary,
            _ => {}
        }
    }
}

/// The number after the word `loss` in a note such as `loss 3.210`.
fn loss_in(note: &str) -> Option<f64> {
    let mut words = note.split_whitespace().skip_while(|word| *word != "loss");
    words.nth(1)?.trim_end_matches(',').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::why::Why;

    struct Deaf;
    impl Sink for Deaf {
        fn event(&self, _event: &Event) {}
    }

    fn started(node: &str) -> Event<'_> {
        Event::NodeStarted { node, stage: "s", key: "k".into(), why: &Why::NeverRan, attempt: 1 }
    }

    #[test]
    fn a_run_that_starts_nothing_leaves_no_trail() {
        let store = tempfile::tempdir().unwrap();
        let trailing = Trailing::new(&Deaf, store.path(), "quick", 2);
        trailing.event(&Event::NodeCached { node: "s", stage: "s", key: "k".into() });
        trailing.event(&Event::RunFinished { summary: &Summary::default() });
        assert!(Trail::latest(store.path(), "quick").is_none());
    }

    #[test]
    fn a_reader_sees_what_runs_and_a_dead_run_runs_nothing() {
        let store = tempfile::tempdir().unwrap();
        let trailing = Trailing::new(&Deaf, store.path(), "quick", 2);
        trailing.event(&started("s/1"));
        trailing.event(&started("s/2"));
        let progress = Progress { done: 3, total: 9, note: "loss 3.25".into() };
        trailing.event(&Event::NodeProgress { node: "s/1", stage: "s", progress: &progress });
        trailing.event(&Event::NodeDone { node: "s/2", stage: "s", key: "k".into(), seconds: 1.0 });
        let trail = Trail::latest(store.path(), "quick").unwrap();
        assert!(trail.lives);
        assert_eq!(trail.ran.iter().collect::<Vec<_>>(), ["s/2"]);
        assert_eq!((trail.running["s/1"].progress.done, trail.running["s/1"].losses.as_slice()), (3, [3.25].as_slice()));
        drop(trailing);
        let trail = Trail::latest(store.path(), "quick").unwrap();
        assert!(!trail.lives && trail.running.is_empty() && trail.ran.contains("s/2"));
    }

    #[test]
    fn only_the_last_trails_are_kept() {
        let store = tempfile::tempdir().unwrap();
        for number in 0..KEPT + 3 {
            let path = folder(store.path(), "quick");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(format!("{number:020}-1.jsonl")), "").unwrap();
        }
        Trailing::new(&Deaf, store.path(), "quick", 1).event(&started("s"));
        assert_eq!(trails(&folder(store.path(), "quick")).len(), KEPT);
    }

    #[test]
    fn a_loss_is_read_from_what_a_trainer_says() {
        assert_eq!(loss_in("loss 3.210"), Some(3.21));
        assert_eq!(loss_in("step 4, loss 2.5, fast"), Some(2.5));
        assert!(loss_in("loss NaN").is_some_and(f64::is_nan));
        assert_eq!(loss_in("reading"), None);
    }
}
