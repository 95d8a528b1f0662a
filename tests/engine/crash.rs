//! Kills and interrupts: nothing finished is lost, nothing unfinished counts as done, and the same command resumes.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{Sandbox, ran};

/// Files, directories, grids, a collector; `round` makes all of it new work.
const MIXED: &str = r#"
vars: {round: 0}
stages:
  source:
    kind: command
    outputs: {x: x}
    with: {run: "echo ${{ round }} > x"}
  grid:
    kind: command
    grid: {a: [1, 2, 3], b: [x, y]}
    inputs: {s: {from: source}}
    outputs: {x: x, d: d/}
    with: {run: "for i in 1 2 3; do (cat ${{ inputs.s }}; echo ${{ a }}${{ b }}$i) > d/$i; sleep 0.005; done; cat d/* > x"}
  each:
    kind: command
    grid: {a: [1, 2, 3]}
    inputs: {g: {from: grid, output: d, where: {a: "${{ a }}"}}}
    outputs: {x: x}
    with: {run: "cat ${{ inputs.g }}/*/d/* > x; sleep 0.01"}
  whole:
    kind: command
    inputs: {each: {from: each}, grid: {from: grid, output: x}}
    outputs: {x: x}
    with: {run: "cat ${{ inputs.each }}/*/x ${{ inputs.grid }}/*/x > x"}
"#;

fn expected(round: usize) -> Vec<(String, String)> {
    let part = |a: usize, b: &str| (1..=3).map(|i| format!("{round}\n{a}{b}{i}\n")).collect::<String>();
    let mut files = vec![("out/quick/source/x".to_string(), format!("{round}\n"))];
    let (mut each_all, mut grid_all) = (String::new(), String::new());
    for a in 1..=3 {
        let mut each = String::new();
        for b in ["x", "y"] {
            files.push((format!("out/quick/grid/a{a}-{b}/x"), part(a, b)));
            files.push((format!("out/quick/grid/a{a}-{b}/d/2"), format!("{round}\n{a}{b}2\n")));
            each += &part(a, b);
            grid_all += &part(a, b);
        }
        files.push((format!("out/quick/each/a{a}/x"), each.clone()));
        each_all += &each;
    }
    files.push(("out/quick/whole/x".to_string(), each_all + &grid_all));
    files
}

/// A generator for the moments of the kills; the seed is fixed, the machine's own timing adds the rest.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn kill(pid: u32) {
    let _ = Command::new("/bin/sh").args(["-c", &format!("kill -9 {pid}")]).stderr(Stdio::null()).status();
}

#[test]
fn killed_a_hundred_times_it_ends_with_the_same_bytes() {
    let sandbox = Sandbox::new(MIXED);
    let mut random = Random(7);
    let (mut kills, mut round) = (0, 0);
    while kills < 110 {
        let set = format!("round={round}");
        let mut child = sandbox.command(&["run", "-j4", "--set", &set]).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(3 + random.below(110)));
        let workers = children(child.id());
        match random.below(3) {
            // The runner alone: its workers must not outlive it.
            0 => child.kill().unwrap(),
            // Everything at once, as a power cut or the kernel's memory killer would.
            1 => {
                child.kill().unwrap();
                workers.iter().for_each(|pid| kill(*pid));
            }
            // A worker (or the reaper) alone: a failure to handle, and the runner goes on or ends by itself.
            _ => workers.iter().take(1).for_each(|pid| kill(*pid)),
        }
        let status = child.wait().unwrap();
        kills += 1;
        // Nothing counts as done unless its bytes are right: what is planned as cached is compared.
        let plan = sandbox.repro(&["plan", "--json", "--set", &set]);
        assert!([0, 3].contains(&plan.code), "{plan:?}");
        let wanted = expected(round);
        for node in plan.json()["nodes"].as_array().unwrap().iter().filter(|node| node["standing"] == "cached") {
            let folder = format!("out/quick/{}/", node["node"].as_str().unwrap());
            for (path, text) in wanted.iter().filter(|(path, _)| path.starts_with(&folder)) {
                assert_eq!(&sandbox.read(path), text, "after kill {kills}");
            }
        }
        if status.success() {
            round += 1;
        } else if kills % 7 == 0 {
            // Let it through now and then: the same command, no manual step.
            ran(sandbox.command(&["run", "--set", &set]).output().unwrap()).ok();
            for (path, text) in &wanted {
                assert_eq!(&sandbox.read(path), text);
            }
            round += 1;
        }
    }
    let last = ["run", "--set", &format!("round={round}")];
    ran(sandbox.command(&last).output().unwrap()).ok();
    for (path, text) in &expected(round) {
        assert_eq!(&sandbox.read(path), text);
    }
    let verify: Value = sandbox.repro(&["cache", "verify", "--json"]).ok().json();
    assert_eq!((&verify["damaged"], &verify["missing"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(fs::read_dir(sandbox.path(".repro/attempts")).unwrap().count(), 0, "nothing is left lying about");
}

#[test]
fn workers_and_all_they_started_die_with_the_runner() {
    let ledger = tempfile::tempdir().unwrap();
    let pid_file = ledger.path().join("pid");
    let sandbox = Sandbox::new(&format!(
        "stages: {{a: {{kind: command, outputs: {{x: x}}, with: {{run: '(sleep 60 & echo $! > {0}.new; mv {0}.new {0}; wait)'}}}}}}",
        pid_file.display()
    ));
    let mut child = sandbox.command(&["run"]).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !pid_file.exists() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let grandchild: u32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let alive = |pid: u32| {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
    };
    while alive(grandchild) && begin.elapsed() < Duration::from_secs(25) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!alive(grandchild), "a process of a killed run lives on");
}

#[test]
fn an_interrupt_stops_cleanly_and_the_same_command_resumes() {
    let sandbox = Sandbox::new(
        "stages:\n  quick: {kind: command, outputs: {x: x}, with: {run: 'echo 1 > x'}}\n  \
         slow:\n    kind: command\n    needs: [quick]\n    outputs: {x: x}\n    \
         with: {run: 'mkdir -p $REPRO_SCRATCH; echo . >> $REPRO_SCRATCH/n; [ $(wc -l < $REPRO_SCRATCH/n) -ge 2 ] || sleep 60; echo 2 > x'}\n",
    );
    let mut child = sandbox.command(&["run"]).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let started = || {
        fs::read_dir(sandbox.path(".repro/scratch")).is_ok_and(|dir| dir.flatten().any(|entry| entry.path().join("n").exists()))
    };
    while !started() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("/bin/sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(20));
    let text = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(text.ends_with("; interrupted, the same command goes on from here\n"), "{text}");
    let why = sandbox.repro(&["why", "slow"]);
    assert!(why.out.contains("never ran") && !why.out.contains("failed"), "{}", why.out);
    let again = sandbox.run(&[]).ok();
    assert_eq!(again.nodes("node_cached"), ["quick"]);
    assert_eq!(again.nodes("node_done"), ["slow"]);
}

#[test]
fn a_journal_cut_or_flipped_anywhere_gives_no_wrong_hit() {
    let sandbox =
        Sandbox::new("stages:\n  a: {kind: command, grid: {n: [1, 2]}, outputs: {x: x}, with: {run: 'echo ${{ n }} > x'}}\n");
    sandbox.run(&[]).ok();
    let journal = sandbox.path(".repro/journal");
    let whole = fs::read(&journal).unwrap();
    let check = |bytes: &[u8], what: &str| {
        fs::write(&journal, bytes).unwrap();
        let plan = sandbox.repro(&["plan", "--json"]);
        assert!([0, 3].contains(&plan.code), "{what}: {plan:?}");
        let now = plan.json();
        for node in now["nodes"].as_array().unwrap() {
            assert!(["cached", "will_run"].contains(&node["standing"].as_str().unwrap()), "{what}: {node}");
        }
    };
    // Every byte in-process (see the journal's own tests); through the whole program a stride that hits all fields.
    for at in (0..whole.len()).step_by(41) {
        check(&whole[..at], &format!("cut at {at}"));
        let mut broken = whole.clone();
        broken[at] ^= 0x20;
        check(&broken, &format!("flipped at {at}"));
    }
    let mut broken = whole.clone();
    broken[whole.len() / 2] ^= 0x20;
    fs::write(&journal, &broken).unwrap();
    let ran = sandbox.repro(&["run"]).ok();
    assert!(ran.err.contains("damaged record"), "{}", ran.err);
    assert!(!sandbox.repro(&["run"]).ok().err.contains("damaged"), "said once, mended once");
    assert_eq!(sandbox.read("out/quick/a/n2/x"), "2\n");
}

#[test]
fn a_clock_that_went_back_changes_nothing() {
    let sandbox =
        Sandbox::new("stages: {a: {kind: command, inputs: {i: i}, outputs: {x: x}, with: {run: 'cp i x'}}}").with("i", "1");
    sandbox.run(&[]).ok();
    let future = std::time::SystemTime::now() + Duration::from_secs(86400);
    for path in ["i", "out/quick/a/x", "pipeline.yaml"] {
        fs::File::options().write(true).open(sandbox.path(path)).unwrap().set_modified(future).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), [""; 0]);
        sandbox.repro(&["run"]).ok();
    }
    sandbox.write("i", "2");
    fs::File::options().write(true).open(sandbox.path("i")).unwrap().set_modified(future).unwrap();
    sandbox.repro(&["run"]).ok();
    assert_eq!(sandbox.read("out/quick/a/x"), "2");
}
