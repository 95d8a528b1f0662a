//! Shares the tasks of a kernel between threads. A step of a small model has a hundred such kernels with moments of other work in
//! between; helpers therefore watch for the next one for a while before they go to sleep, because waking a thread takes as long as a task.
//!
//! Threads of the rayon pool a run is in say how many may work; the helpers belong to the thread that asks, and end with it. Each thread
//! has a share of the tasks, the same part of the whole in every kernel: what it wrote in one it finds near in the next. Whoever is done
//! with its own goes on with the others' shares: which thread runs a task must not matter to its result. A task that shares tasks runs
//! them itself.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a helper without work stays awake.
const AWAKE: Duration = Duration::from_micros(200);
/// Looks between two glances at the clock.
const LOOKS: u32 = 64;

thread_local! {
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
    static TEAM: RefCell<Option<Team>> = const { RefCell::new(None) };
}

/// How many threads share the tasks of this one.
pub fn threads() -> usize {
    if IN_TASK.get() { 1 } else { rayon::current_num_threads() }
}

/// Calls `task` with every number below `count`, on all threads.
pub fn for_each(count: usize, task: impl Fn(usize) + Sync) {
    let threads = threads();
    if threads == 1 || count <= 1 {
        (0..count).for_each(task);
        return;
    }
    TEAM.with_borrow_mut(|team| {
        if team.as_ref().is_none_or(|team| team.helpers.len() + 1 != threads) {
            *team = Team::new(threads - 1);
        }
        match team {
            Some(team) => team.run(count, &task),
            // The system gave no threads: the work is done all the same.
            None => (0..count).for_each(&task),
        }
    });
}

/// Calls `task` with every item, on all threads.
pub fn each<T: Send>(items: Vec<T>, task: impl Fn(T) + Sync) {
    let mut items: Vec<ManuallyDrop<T>> = items.into_iter().map(ManuallyDrop::new).collect();
    let (first, count) = (Items(items.as_mut_ptr()), items.len());
    for_each(count, |i| {
        // SAFETY: inside the vector, which outlives the call; every number comes once, so that an item has one owner.
        task(unsafe { ManuallyDrop::take(&mut *first.get().add(i)) });
    });
}

/// What `task` returns for every item, in their order.
pub fn map<T: Send, R: Send>(items: Vec<T>, task: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    each(items.into_iter().zip(&mut results).collect(), |(item, result)| *result = Some(task(item)));
    results.into_iter().map(|result| result.expect("every task has run")).collect()
}

struct Items<T>(*mut ManuallyDrop<T>);
// SAFETY: items may be sent, and each is taken by one thread only.
unsafe impl<T: Send> Sync for Items<T> {}

impl<T> Items<T> {
    fn get(&self) -> *mut ManuallyDrop<T> {
        self.0
    }
}

/// Tasks being shared; lives on the stack of the thread that shares them.
struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    shares: &'a [Share],
    panicked: AtomicBool,
}

/// Tasks that one thread begins with, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Share {
    next: AtomicUsize,
    end: AtomicUsize,
}

impl Job<'_> {
    /// Runs tasks until none is left: those of this thread's share, then those of the shares after it.
    fn work(&self, own: usize) {
        let before = IN_TASK.replace(true);
        let (earlier, later) = self.shares.split_at(own);
        for share in later.iter().chain(earlier) {
            let end = share.end.load(SeqCst);
            loop {
                let i = share.next.fetch_add(1, SeqCst);
                if i >= end {
                    break;
                }
                // A panic must not leave the others waiting, nor the job while they still read it.
                if catch_unwind(AssertUnwindSafe(|| (self.task)(i))).is_err() {
                    self.panicked.store(true, SeqCst);
                }
            }
        }
        IN_TASK.set(before);
    }
}

/// What helpers watch.
struct Board {
    /// Null: nothing to do.
    job: AtomicPtr<Job<'static>>,
    /// Counts jobs, so that a helper sees a new one from afar.
    jobs: AtomicUsize,
    /// Helpers that may be reading the job.
    readers: AtomicUsize,
    asleep: AtomicUsize,
    ended: AtomicBool,
    bed: Mutex<()>,
    bell: Condvar,
}

struct Team {
    board: Arc<Board>,
    helpers: Vec<JoinHandle<()>>,
    /// Of the thread that asks, then of its helpers.
    shares: Vec<Share>,
}

impl Team {
    fn new(helpers: usize) -> Option<Self> {
        let board = Arc::new(Board {
            job: AtomicPtr::new(null_mut()),
            jobs: AtomicUsize::new(0),
            readers: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            bed: Mutex::new(()),
            bell: Condvar::new(),
        });
        let shares = (0..=helpers).map(|_| Share::default()).collect();
        let mut team = Self { board, helpers: Vec::new(), shares };
        for share in 1..=helpers {
            let board = team.board.clone();
            // Dropping the team ends those that were started.
            team.helpers.push(std::thread::Builder::new().name("kernels".into()).spawn(move || board.help(share)).ok()?);
        }
        Some(team)
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        // Nobody reads the shares now: the last job is over.
        let cut = |i: usize| i * count / self.shares.len();
        for (i, share) in self.shares.iter().enumerate() {
            share.next.store(cut(i), SeqCst);
            share.end.store(cut(i + 1), SeqCst);
        }
        let job = Job { task, shares: &self.shares, panicked: AtomicBool::new(false) };
        let board = &*self.board;
        board.job.store((&raw const job).cast_mut().cast(), SeqCst);
        board.announce();
        job.work(0);
        // No task is left, but some may be under way. A helper counts itself among the readers before it looks for the job: once the
        // job is withdrawn and there are no readers, nobody has it, and all that was done is done.
        board.job.store(null_mut(), SeqCst);
        let mut looks = 0_u32;
        while board.readers.load(SeqCst) > 0 {
            looks += 1;
            if looks.is_multiple_of(1 << 12) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        assert!(!job.panicked.load(SeqCst), "a task of a kernel panicked");
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.ended.store(true, SeqCst);
        self.board.announce();
        for helper in self.helpers.drain(..) {
            // A helper's panic has been reported by `run`.
            let _ = helper.join();
        }
    }
}

impl Board {
    fn announce(&self) {
        self.jobs.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) > 0 {
            let _bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
            self.bell.notify_all();
        }
    }

    fn help(&self, share: usize) {
        let mut seen = 0;
        loop {
            seen = self.next_job(seen);
            if self.ended.load(SeqCst) {
                return;
            }
            self.readers.fetch_add(1, SeqCst);
            let job = self.job.load(SeqCst);
            if !job.is_null() {
                // SAFETY: the job was there after this helper counted as a reader; whoever shares it waits until there are none.
                unsafe { (*job).work(share) };
            }
            self.readers.fetch_sub(1, SeqCst);
        }
    }

    /// Waits for a job after the one numbered `seen`: awake for a while, then asleep.
    fn next_job(&self, seen: usize) -> usize {
        let start = Instant::now();
        while start.elapsed() < AWAKE {
            for _ in 0..LOOKS {
                let jobs = self.jobs.load(SeqCst);
                if jobs != seen {
                    return jobs;
                }
                std::hint::spin_loop();
            }
        }
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, SeqCst);
        while self.jobs.load(SeqCst) == seen {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, SeqCst);
        self.jobs.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn on<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool").install(f)
    }

    #[test]
    fn every_task_runs_once_awake_or_asleep() {
        on(3, || {
            for round in 0..400 {
                let counts: Vec<AtomicU64> = (0..round % 7 + 1).map(|_| AtomicU64::new(0)).collect();
                for_each(counts.len(), |i| {
                    counts[i].fetch_add(1, SeqCst);
                });
                assert!(counts.iter().all(|c| c.load(SeqCst) == 1));
                if round % 100 == 0 {
                    std::thread::sleep(2 * AWAKE);
                }
            }
        });
    }

    #[test]
    fn a_thread_has_the_same_share_of_every_kernel() {
        on(2, || {
            let asking = std::thread::current().id();
            for _ in 0..20 {
                // Tasks 0 and 2 wait for each other, then 1 and 3: no thread can do those of the other.
                let meetings = [AtomicUsize::new(0), AtomicUsize::new(0)];
                let own = map((0..4).collect(), |i: usize| {
                    let (meeting, start) = (&meetings[i % 2], Instant::now());
                    meeting.fetch_add(1, SeqCst);
                    while meeting.load(SeqCst) < 2 && start.elapsed() < Duration::from_secs(20) {
                        std::thread::yield_now();
                    }
                    std::thread::current().id() == asking
                });
                assert_eq!(own, [true, true, false, false]);
            }
        });
    }

    #[test]
    fn a_task_may_share_tasks_and_results_keep_their_order() {
        let found =
            on(2, || map((0..50).collect(), |i: usize| map((0..i).collect(), |j: usize| i * j).into_iter().sum::<usize>()));
        assert_eq!(found, (0..50).map(|i| (0..i).map(|j| i * j).sum()).collect::<Vec<usize>>());
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        on(2, || {
            let result = catch_unwind(|| for_each(8, |i| assert!(i != 5, "on purpose")));
            assert!(result.is_err());
            assert_eq!(map(vec![1, 2, 3], |x| x + 1), [2, 3, 4]);
        });
    }
}
