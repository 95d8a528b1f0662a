//! The scheduler: starts every node whose inputs are known as soon as there is room, and says what happens. One thread decides, one thread waits per running node.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::attempt::{Attempt, AttemptError, Finished, log_path, now_ms};
use super::events::{Event, Progress, Sink, StageCount, Summary};
use super::graph::Graph;
use super::key::Key;
use super::plan::{Judged, PlanError, Planner, Standing};
use super::process::Groups;
use super::resources::Resources;
use super::store::gc::claim_private;
use super::store::journal::{Head, Stored};
use super::store::publish::folder;
use super::store::{KeyLock, StoreError};
use super::why::Why;

/// How often another process' lock, a worker's progress and the clock are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long workers have to end by themselves after an interrupt.
const GRACE: Duration = Duration::from_secs(10);

pub struct Options {
    /// The most nodes at once.
    pub jobs: usize,
    /// Go on with what does not depend on a failed node.
    pub keep_going: bool,
    pub limits: Resources,
}

/// Counts interrupts: one asks workers to end, a second one ends them.
#[derive(Default)]
pub struct Interrupts(pub AtomicU32);

enum Message {
    Started { node: usize, pid: u32, progress: PathBuf },
    Ended { node: usize, result: Result<Finished, AttemptError>, lock: KeyLock },
    Restored { node: usize, result: Result<(), StoreError> },
}

enum State {
    /// Not looked at yet: so many nodes it reads are not done.
    Pending,
    /// Has to run, and waits for room, a stage it needs, or a lock.
    Ready,
    Running,
    Restoring,
    Done,
    Failed,
    Blocked,
}

struct Running {
    pid: u32,
    progress: PathBuf,
    seen: Progress,
    deadline: Option<Instant>,
    timed_out: bool,
    taken: Resources,
}

/// Runs the nodes in `nodes` (a closed set, in order). An error is one of the pipeline; a failed node is part of the summary.
pub fn run(
    planner: &Planner,
    nodes: &[usize],
    options: &Options,
    interrupts: &Interrupts,
    sink: &dyn Sink,
) -> Result<Summary, PlanError> {
    let begin = Instant::now();
    planner.read_inputs(nodes)?;
    let groups = Groups::default();
    let result = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let mut scheduler = Scheduler::new(planner, nodes, options, interrupts, sink, &groups);
        scheduler.announce();
        let result = scheduler.drive(scope, &sender, &receiver);
        if result.is_err() {
            groups.signal_all(Signal::KILL);
        }
        result.map(|()| scheduler.summary)
    });
    let _ = std::fs::remove_dir_all(&planner.store.private);
    planner.store.index.save();
    let mut summary = result?;
    summary.seconds = begin.elapsed().as_secs_f64();
    sink.event(&Event::RunFinished { summary: &summary });
    Ok(summary)
}

struct Scheduler<'a> {
    planner: &'a Planner<'a>,
    graph: &'a Graph,
    nodes: &'a [usize],
    options: &'a Options,
    interrupts: &'a Interrupts,
    sink: &'a dyn Sink,
    groups: &'a Groups,
    state: HashMap<usize, State>,
    made: HashMap<usize, Arc<Vec<Stored>>>,
    keys: HashMap<usize, (Key, Why)>,
    /// Nodes of this run that read a node.
    readers: HashMap<usize, Vec<usize>>,
    /// How many nodes that a node reads are not done yet.
    missing: HashMap<usize, usize>,
    /// How many nodes of each stage are not done yet.
    stage_left: Vec<usize>,
    to_judge: BTreeSet<usize>,
    ready: BTreeSet<usize>,
    /// Ready, but another process (or another node of ours with the same key) is making it.
    held: BTreeMap<usize, Instant>,
    told: HashSet<usize>,
    running: HashMap<usize, Running>,
    running_keys: HashSet<super::digest::Digest>,
    tries: HashMap<usize, u32>,
    /// Nodes whose record is there and whose objects are not.
    lost: HashMap<usize, String>,
    restoring: usize,
    /// Lock files that nobody holds any more.
    released: Vec<PathBuf>,
    /// Tells other processes that our private folder is in use.
    claim: Option<std::fs::File>,
    binds: Vec<Head>,
    free: Resources,
    stopping: Option<Instant>,
    failed: bool,
    summary: Summary,
}

impl<'a> Scheduler<'a> {
    fn new(
        planner: &'a Planner<'a>,
        nodes: &'a [usize],
        options: &'a Options,
        interrupts: &'a Interrupts,
        sink: &'a dyn Sink,
        groups: &'a Groups,
    ) -> Scheduler<'a> {
        let graph = planner.graph;
        let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut missing = HashMap::with_capacity(nodes.len());
        let mut stage_left = vec![0; graph.stages.len()];
        for at in nodes {
            let reads: BTreeSet<usize> = graph.nodes[*at].reads().map(|from| from.node).collect();
            missing.insert(*at, reads.len());
            for from in reads {
                readers.entry(from).or_default().push(*at);
            }
            stage_left[graph.nodes[*at].stage] += 1;
        }
        Scheduler {
            planner,
            graph,
            nodes,
            options,
            interrupts,
            sink,
            groups,
            state: nodes.iter().map(|at| (*at, State::Pending)).collect(),
            made: HashMap::new(),
            keys: HashMap::new(),
            readers,
            to_judge: nodes.iter().copied().filter(|at| missing[at] == 0).collect(),
            missing,
            stage_left,
            ready: BTreeSet::new(),
            held: BTreeMap::new(),
            told: HashSet::new(),
            running: HashMap::new(),
            running_keys: HashSet::new(),
            tries: HashMap::new(),
            lost: HashMap::new(),
            restoring: 0,
            released: Vec::new(),
            claim: None,
            binds: Vec::new(),
            free: options.limits,
            stopping: None,
            failed: false,
            summary: Summary::default(),
        }
    }

    fn announce(&self) {
        let mut stages: Vec<StageCount> = Vec::new();
        for at in self.nodes {
            let name = self.graph.stages[self.graph.nodes[*at].stage].name.as_str();
            match stages.last_mut() {
                Some(last) if last.stage == name => last.nodes += 1,
                _ => stages.push(StageCount { stage: name, nodes: 1 }),
            }
        }
        self.sink.event(&Event::RunStarted { profile: &self.graph.profile, nodes: self.nodes.len(), stages });
        let damaged = self.planner.store.journal.damaged();
        if damaged > 0 {
            let what = format!("{damaged} damaged record(s) in the journal were passed over; what they stood for runs again");
            self.sink.event(&Event::Warning { what: &what });
            // Once said, once mended; a store that cannot be written says so where it matters.
            let _ = self.planner.store.journal.compact(|_| true);
        }
    }

    fn drive<'scope>(
        &mut self,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        sender: &Sender<Message>,
        receiver: &Receiver<Message>,
    ) -> Result<(), PlanError> {
        loop {
            self.watch_interrupts();
            while let Some(at) = self.to_judge.pop_first() {
                self.judge(at, scope, sender)?;
            }
            if self.may_start() {
                self.start_ready(scope, sender)?;
            }
            if !self.to_judge.is_empty() {
                continue;
            }
            let idle = self.running.is_empty() && self.restoring == 0;
            if idle && (!self.may_start() || (self.ready.is_empty() && self.held.is_empty())) {
                break;
            }
            match receiver.recv_timeout(LOOK) {
                Ok(message) => {
                    self.handle(message)?;
                    while let Ok(message) = receiver.try_recv() {
                        self.handle(message)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.look_at_workers(),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the sender outlives the loop"),
            }
        }
        let store = self.planner.store;
        for head in std::mem::take(&mut self.binds) {
            // Only for `why` and `status` to remember by: a store that cannot be written has said so already.
            if store.journal.append_synced(&head, "", false).is_err() {
                break;
            }
        }
        store.remove_locks(&self.released);
        self.summary.interrupted = self.stopping.is_some();
        self.summary.left = self.state.values().filter(|state| matches!(state, State::Pending | State::Ready)).count();
        Ok(())
    }

    /// Finds out how a node stands, now that everything it reads is done.
    fn judge<'scope>(
        &mut self,
        at: usize,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        sender: &Sender<Message>,
    ) -> Result<(), PlanError> {
        let Judged { standing, key, outputs, bind } = self.planner.judge(at, &|from| self.made.get(&from).cloned())?;
        let key = key.expect("everything the node reads is done");
        // Counted done once, then found to be gone from the store: its record alone does not settle it.
        let standing = match (self.lost.get(&at), &outputs) {
            (Some(what), Some(outputs)) if self.planner.store.holds(outputs)?.is_err() => {
                Standing::Run(Why::Lost { what: what.clone() })
            }
            _ => standing,
        };
        match standing {
            Standing::Waits(_) => unreachable!("everything the node reads is done"),
            Standing::Run(why) => {
                self.keys.insert(at, (key, why));
                self.state.insert(at, State::Ready);
                self.ready.insert(at);
            }
            Standing::Cached => {
                self.note_bind(at, &key, bind);
                let node = &self.graph.nodes[at];
                self.sink.event(&Event::NodeCached { node: &node.id, stage: self.stage(at), key: key.digest.short() });
                self.summary.cached += 1;
                self.count_saved(&key);
                self.finish(at, outputs.expect("a cached node has outputs"));
            }
            Standing::Restore(why) => {
                self.note_bind(at, &key, bind);
                self.count_saved(&key);
                let outputs = outputs.expect("a node to be restored has outputs");
                let node = &self.graph.nodes[at];
                self.sink.event(&Event::NodeRestored {
                    node: &node.id,
                    stage: self.stage(at),
                    key: key.digest.short(),
                    why: &why,
                });
                self.claim_private()?;
                self.state.insert(at, State::Restoring);
                self.restoring += 1;
                self.made.insert(at, outputs.clone());
                let (planner, sender) = (self.planner, sender.clone());
                scope.spawn(move || {
                    let place = folder(&planner.graph.profile, &planner.graph.nodes[at].id);
                    let result = planner.store.publisher(planner.root).publish(&place, &outputs);
                    let _ = sender.send(Message::Restored { node: at, result });
                });
            }
        }
        Ok(())
    }

    /// Whether anything new may begin.
    fn may_start(&self) -> bool {
        self.stopping.is_none() && (!self.failed || self.options.keep_going)
    }

    fn claim_private(&mut self) -> Result<(), StoreError> {
        if self.claim.is_none() {
            let store = self.planner.store;
            let claim = claim_private(store).map_err(|cause| StoreError::Write { path: store.folder.clone(), cause })?;
            self.claim = Some(claim);
        }
        Ok(())
    }

    fn stage(&self, at: usize) -> &'a str {
        &self.graph.stages[self.graph.nodes[at].stage].name
    }

    fn count_saved(&mut self, key: &Key) {
        if let Some(done) = self.planner.store.journal.done(&key.digest) {
            self.summary.saved_seconds += done.seconds;
        }
    }

    fn note_bind(&mut self, at: usize, key: &Key, bind: bool) {
        if bind {
            let (profile, node) = (self.graph.profile.clone(), self.graph.nodes[at].id.clone());
            self.binds.push(Head::Bind { key: key.digest, profile, node, at_ms: now_ms() });
        }
    }

    fn finish(&mut self, at: usize, outputs: Arc<Vec<Stored>>) {
        self.made.insert(at, outputs);
        self.state.insert(at, State::Done);
        self.stage_left[self.graph.nodes[at].stage] -= 1;
        for reader in self.readers.get(&at).cloned().unwrap_or_default() {
            let left = self.missing.get_mut(&reader).expect("every node of the run is counted");
            *left -= 1;
            if *left == 0 && matches!(self.state[&reader], State::Pending) {
                self.to_judge.insert(reader);
            }
        }
    }

    fn start_ready<'scope>(
        &mut self,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        sender: &Sender<Message>,
    ) -> Result<(), PlanError> {
        let now = Instant::now();
        let back: Vec<usize> = self.held.iter().filter(|(_, until)| **until <= now).map(|(at, _)| *at).collect();
        for at in back {
            self.held.remove(&at);
            self.ready.insert(at);
        }
        for at in self.ready.clone() {
            if self.running.len() >= self.options.jobs {
                break;
            }
            // Claiming one node may have sent others back to wait for what was lost.
            if !self.ready.contains(&at) {
                continue;
            }
            let node = &self.graph.nodes[at];
            if node.needs.iter().any(|stage| self.stage_left[*stage] > 0) {
                continue;
            }
            let wants = node.resources.capped(self.options.limits);
            if !wants.fits(&self.free) {
                continue;
            }
            if let Some(lock) = self.claim(at)? {
                self.ready.remove(&at);
                self.start(at, wants, lock, scope, sender);
            }
        }
        Ok(())
    }

    /// Takes a node's lock. `None` if it need not or cannot run now; the node has been put where it belongs then.
    fn claim(&mut self, at: usize) -> Result<Option<KeyLock>, PlanError> {
        let (key, why) = self.keys[&at].clone();
        if self.running_keys.contains(&key.digest) {
            // Another node of this run makes the same bytes: once it is done, this one is found cached.
            self.ready.remove(&at);
            self.held.insert(at, Instant::now() + LOOK);
            return Ok(None);
        }
        let node = &self.graph.nodes[at];
        let lock = match self.planner.store.lock_key(&key.digest, &format!("making {}", node.id))? {
            Ok(lock) => lock,
            Err(holder) => {
                if self.told.insert(at) {
                    self.sink.event(&Event::NodeWaits { node: &node.id, stage: self.stage(at), holder: &holder.text });
                }
                self.ready.remove(&at);
                self.held.insert(at, Instant::now() + LOOK);
                return Ok(None);
            }
        };
        let journal = &self.planner.store.journal;
        journal.refresh().map_err(|cause| StoreError::Read { path: self.planner.store.folder.clone(), cause })?;
        if why != Why::Forced && journal.done(&key.digest).is_some() && !matches!(why, Why::Lost { .. }) {
            self.ready.remove(&at);
            self.state.insert(at, State::Pending);
            self.to_judge.insert(at);
            return Ok(None);
        }
        // What it reads must be in the store; a result that is not is made again first.
        for from in node.reads() {
            if let Err(what) = self.planner.store.holds(&self.made[&from.node])? {
                self.ready.remove(&at);
                self.remake(from.node, at, what)?;
                return Ok(None);
            }
        }
        self.claim_private()?;
        Ok(Some(lock))
    }

    /// Runs a node again that was counted done, because its objects are gone.
    fn remake(&mut self, lost: usize, reader: usize, what: String) -> Result<(), PlanError> {
        let key = self.planner.key(lost, &|from| self.made.get(&from).cloned())?.expect("it was done, so what it reads is known");
        self.made.remove(&lost);
        self.state.insert(lost, State::Ready);
        self.stage_left[self.graph.nodes[lost].stage] += 1;
        self.lost.insert(lost, what.clone());
        self.keys.insert(lost, (key, Why::Lost { what }));
        self.ready.insert(lost);
        self.state.insert(reader, State::Pending);
        *self.missing.get_mut(&reader).expect("every node of the run is counted") += 1;
        for other in self.readers.get(&lost).cloned().unwrap_or_default() {
            if other != reader && matches!(self.state[&other], State::Ready | State::Pending) {
                self.ready.remove(&other);
                self.held.remove(&other);
                self.to_judge.remove(&other);
                self.state.insert(other, State::Pending);
                *self.missing.get_mut(&other).expect("every node of the run is counted") += 1;
            }
        }
        self.summary.cached = self.summary.cached.saturating_sub(1);
        Ok(())
    }

    fn start<'scope>(
        &mut self,
        at: usize,
        wants: Resources,
        lock: KeyLock,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        sender: &Sender<Message>,
    ) {
        let node = &self.graph.nodes[at];
        let (key, why) = self.keys[&at].clone();
        let tries = self.tries.entry(at).or_insert(0);
        *tries += 1;
        let number = *tries;
        self.sink.event(&Event::NodeStarted {
            node: &node.id,
            stage: self.stage(at),
            key: key.digest.short(),
            why: &why,
            attempt: number,
        });
        self.free.take(&wants);
        self.running_keys.insert(key.digest);
        self.state.insert(at, State::Running);
        let running = Running {
            pid: 0,
            progress: PathBuf::new(),
            seen: Progress::default(),
            deadline: node.timeout.map(|timeout| Instant::now() + timeout),
            timed_out: false,
            taken: wants,
        };
        self.running.insert(at, running);
        let upstream = node.reads().map(|from| (from.node, self.made[&from.node].clone())).collect();
        let (planner, groups, interrupts, sender) = (self.planner, self.groups, self.interrupts, sender.clone());
        let last_try = number > node.retries;
        scope.spawn(move || {
            let attempt = Attempt { planner, node, key: &key, upstream, threads: wants.threads, number, groups };
            let told = sender.clone();
            let result = attempt
                .run(&|pid, progress: &Path| {
                    let _ = told.send(Message::Started { node: at, pid, progress: progress.to_path_buf() });
                })
                .and_then(|finished| attempt.commit(&finished).map(|()| finished));
            // A worker that was told to end has not failed.
            if let Err(error) = &result
                && last_try
                && interrupts.0.load(Ordering::Relaxed) == 0
            {
                let _ = attempt.record_failure(&error.to_string());
            }
            let _ = sender.send(Message::Ended { node: at, result, lock });
        });
    }

    fn handle(&mut self, message: Message) -> Result<(), PlanError> {
        match message {
            Message::Started { node, pid, progress } => {
                let log = progress.with_extension("log");
                self.sink.event(&Event::NodeWorking {
                    node: &self.graph.nodes[node].id,
                    stage: self.stage(node),
                    pid,
                    log: &log,
                });
                if let Some(running) = self.running.get_mut(&node) {
                    running.pid = pid;
                    running.progress = progress;
                }
                if self.stopping.is_some() {
                    self.groups.signal(pid, Signal::TERM);
                }
            }
            Message::Restored { node, result } => {
                self.restoring -= 1;
                result?;
                self.summary.restored += 1;
                let outputs = self.made[&node].clone();
                self.finish(node, outputs);
            }
            Message::Ended { node, result, lock } => {
                self.released.push(lock.release());
                let running = self.running.remove(&node).expect("a node ends once");
                self.free.give_back(&running.taken);
                self.running_keys.remove(&self.keys[&node].0.digest);
                // Those that wait for the same key need not wait for the next look.
                let held: Vec<usize> = self.held.keys().copied().collect();
                for at in held.into_iter().filter(|at| self.keys[at].0.digest == self.keys[&node].0.digest) {
                    self.held.remove(&at);
                    self.ready.insert(at);
                }
                match result {
                    Ok(finished) => {
                        let id = &self.graph.nodes[node].id;
                        let key = self.keys[&node].0.digest.short();
                        self.sink.event(&Event::NodeDone { node: id, stage: self.stage(node), key, seconds: finished.seconds });
                        self.summary.ran += 1;
                        self.finish(node, Arc::new(finished.outputs));
                    }
                    Err(error) => self.failed(node, error, running.timed_out)?,
                }
            }
        }
        Ok(())
    }

    fn failed(&mut self, at: usize, error: AttemptError, timed_out: bool) -> Result<(), PlanError> {
        let node = &self.graph.nodes[at];
        if self.stopping.is_some() {
            self.state.insert(at, State::Ready);
            return Ok(());
        }
        let error = match (timed_out, node.timeout) {
            (true, Some(timeout)) => AttemptError::Timeout { seconds: timeout.as_secs_f64() },
            _ => error,
        };
        let what = error.to_string();
        // The pipeline's own trouble is not the node's: trying again would meet it again.
        let own = matches!(error, AttemptError::Store(_));
        let tries = self.tries[&at];
        if !own && tries <= node.retries {
            self.sink.event(&Event::NodeRetried { node: &node.id, stage: self.stage(at), what: &what, attempt: tries });
            self.state.insert(at, State::Ready);
            self.ready.insert(at);
            return Ok(());
        }
        let log = log_path(self.planner.store, &self.graph.profile, &node.id);
        let tail = tail_of(&log, 20);
        let shown = log.strip_prefix(self.planner.root).unwrap_or(&log).display().to_string();
        let log = log.exists().then_some(shown);
        self.sink.event(&Event::NodeFailed { node: &node.id, stage: self.stage(at), what: &what, log, tail });
        self.state.insert(at, State::Failed);
        self.summary.failed += 1;
        self.failed = true;
        self.block(at);
        if let AttemptError::Store(error) = error {
            return Err(error.into());
        }
        Ok(())
    }

    /// Marks everything behind a failed node.
    fn block(&mut self, failed: usize) {
        let mut gone: HashSet<usize> = HashSet::from([failed]);
        let mut stages: HashSet<usize> = HashSet::from([self.graph.nodes[failed].stage]);
        for at in self.nodes {
            let node = &self.graph.nodes[*at];
            let behind =
                node.reads().any(|from| gone.contains(&from.node)) || node.needs.iter().any(|stage| stages.contains(stage));
            if behind && matches!(self.state[at], State::Pending | State::Ready) {
                gone.insert(*at);
                stages.insert(node.stage);
                self.ready.remove(at);
                self.held.remove(at);
                self.to_judge.remove(at);
                self.state.insert(*at, State::Blocked);
                self.summary.blocked += 1;
                let by = &self.graph.nodes[failed].id;
                self.sink.event(&Event::NodeBlocked { node: &node.id, stage: self.stage(*at), by });
            }
        }
    }

    fn watch_interrupts(&mut self) {
        let count = self.interrupts.0.load(Ordering::Relaxed);
        if count == 0 {
            return;
        }
        match self.stopping {
            None => {
                self.stopping = Some(Instant::now());
                self.groups.signal_all(Signal::TERM);
            }
            Some(since) if count > 1 || since.elapsed() > GRACE => self.groups.signal_all(Signal::KILL),
            Some(_) => {}
        }
    }

    fn look_at_workers(&mut self) {
        let now = Instant::now();
        let mut said = Vec::new();
        for (at, running) in &mut self.running {
            if running.deadline.is_some_and(|deadline| deadline <= now) {
                running.timed_out = true;
                self.groups.signal(running.pid, Signal::KILL);
            }
            let left = std::fs::read(&running.progress).ok().and_then(|bytes| serde_json::from_slice::<Progress>(&bytes).ok());
            if let Some(progress) = left.filter(|progress| *progress != running.seen) {
                running.seen = progress.clone();
                said.push((*at, progress));
            }
        }
        for (at, progress) in said {
            let node = &self.graph.nodes[at].id;
            self.sink.event(&Event::NodeProgress { node, stage: self.stage(at), progress: &progress });
        }
    }
}

fn tail_of(log: &Path, lines: usize) -> Vec<String> {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| line.to_string()).collect()
}
