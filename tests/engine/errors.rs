//! Every mistake a user can make with the pipeline, and the exact words that answer it.

use std::fs;

use crate::sandbox::{Sandbox, chain};

/// One stage `a` with the given fields besides its kind.
fn stage(fields: &str) -> Sandbox {
    Sandbox::new(&format!("stages:\n  a:\n    kind: command\n{fields}"))
}

#[track_caller]
fn refuses(sandbox: &Sandbox, args: &[&str], code: i32, text: &str) {
    let ran = sandbox.repro(args).exits(code);
    let root = sandbox.root().display().to_string();
    assert_eq!(ran.err.replace(&root, "ROOT").trim_end(), text);
}

#[track_caller]
fn plan_refuses(sandbox: &Sandbox, text: &str) {
    refuses(sandbox, &["plan"], 2, &format!("error: {text}"));
    assert!(!sandbox.exists("out"), "nothing may be written");
}

/// A node that runs and fails: the reason stands in the first line after its id.
#[track_caller]
fn run_fails(sandbox: &Sandbox, text: &str) {
    let ran = sandbox.repro(&["run"]).exits(1);
    let line = ran.err.lines().find(|line| line.contains("FAILED: ")).unwrap_or_else(|| panic!("{}", ran.err));
    assert_eq!(line.split_once("FAILED: ").unwrap().1, text);
}

#[test]
fn no_pipeline() {
    let sandbox = chain();
    fs::remove_file(sandbox.path("pipeline.yaml")).unwrap();
    plan_refuses(&sandbox, "pipeline.yaml: there is no such file; run in a project's folder or name it with `-C DIR`");
    refuses(&sandbox, &["-C", "nowhere", "plan"], 2, "error: `-C ROOT/nowhere`: there is no such directory");
}

#[test]
fn unknown_field() {
    plan_refuses(
        &stage("    ouputs: {x: x}\n"),
        "pipeline.yaml:4:5: stages.a: unknown field `ouputs`, expected one of `kind`, `description`, `file`, `needs`, `grid`, `id`, \
         `inputs`, `outputs`, `with`, `seed`, `resources`, `timeout`, `retries`; did you mean `outputs`?",
    );
}

#[test]
fn unknown_field_in_a_stage_file() {
    let sandbox = Sandbox::new("stages: {a: }").with("stages/a.yaml", "kind: command\noutputs: {x: x}\nwith:\n  runn: echo\n");
    plan_refuses(&sandbox, "stages/a.yaml:4:3: unknown field `runn`, expected one of `run`, `argv`, `env`; did you mean `run`?");
}

#[test]
fn wrong_type() {
    plan_refuses(
        &stage("    retries: many\n"),
        "pipeline.yaml:4:14: stages.a.retries: invalid type: string \"many\", expected u32",
    );
}

#[test]
fn broken_yaml() {
    plan_refuses(
        &Sandbox::new("stages:\n  a: {kind: command\n"),
        "pipeline.yaml:3:1: did not find expected ',' or '}', while parsing a flow mapping at line 2 column 6",
    );
}

#[test]
fn not_utf8() {
    let sandbox = chain();
    fs::write(sandbox.path("pipeline.yaml"), b"stages: {}\n# \xff\n").unwrap();
    plan_refuses(&sandbox, "pipeline.yaml: is not UTF-8: byte 13 is wrong");
}

#[test]
fn yaml_bomb() {
    let mut text = String::from("vars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("  a{level}: &a{level} [{aliases}]\n");
    }
    plan_refuses(&Sandbox::new(&text), "pipeline.yaml: repetition limit exceeded");
}

#[test]
fn deep_nesting() {
    let text = format!("vars: {{a: {}{}}}\n", "[".repeat(2000), "]".repeat(2000));
    plan_refuses(&Sandbox::new(&text), "pipeline.yaml:1:137: recursion limit exceeded");
}

#[test]
fn duplicate_stage() {
    plan_refuses(
        &Sandbox::new("stages:\n  a: {kind: command}\n  a: {kind: command}\n"),
        "pipeline.yaml:2:3: stages: duplicate key `a`",
    );
}

#[test]
fn unknown_kind() {
    plan_refuses(
        &Sandbox::new("stages:\n  a:\n    kind: comand\n"),
        "pipeline.yaml:3:11: unknown kind `comand`; did you mean `command`?",
    );
}

#[test]
fn stage_without_kind_or_file() {
    plan_refuses(
        &Sandbox::new("stages:\n  train:\n"),
        "pipeline.yaml:2:3: stage `train` has no `kind` here, and stages/train.yaml does not exist; write one of the two",
    );
}

#[test]
fn stage_in_two_places() {
    let sandbox = Sandbox::new("stages:\n  a:\n    retries: 2\n").with("stages/a.yaml", "kind: command\n");
    plan_refuses(
        &sandbox,
        "pipeline.yaml:2:3: stage `a` is defined in stages/a.yaml; only `file` and `needs` may stand beside it here",
    );
}

#[test]
fn bad_stage_name() {
    plan_refuses(
        &Sandbox::new("stages:\n  a/b: {kind: command}\n"),
        "pipeline.yaml:2:3: `a/b` cannot name a stage; use letters, digits, `-` and `_`, and not `all`",
    );
}

#[test]
fn cycle() {
    let sandbox = Sandbox::new(
        "stages:\n  a: {kind: command, needs: [c], outputs: {x: x}, with: {run: x}}\n  \
         b: {kind: command, inputs: {a: {from: a}}, outputs: {x: x}, with: {run: x}}\n  \
         c: {kind: command, needs: [b], outputs: {x: x}, with: {run: x}}\n",
    );
    plan_refuses(&sandbox, "pipeline.yaml:2:3: stages wait for each other: a -> b -> c -> a");
    let alone = Sandbox::new("stages:\n  a: {kind: command, needs: [a], outputs: {x: x}, with: {run: x}}\n");
    plan_refuses(&alone, "pipeline.yaml:2:3: stages wait for each other: a -> a");
}

#[test]
fn unknown_upstream() {
    plan_refuses(
        &Sandbox::new(
            "stages:\n  train: {kind: command, outputs: {x: x}, with: {run: x}}\n  b:\n    kind: command\n    needs: [trian]\n",
        ),
        "pipeline.yaml:5:13: unknown stage `trian`; did you mean `train`?",
    );
}

#[test]
fn unknown_output_and_axis_of_an_upstream() {
    let text = |input: &str| {
        Sandbox::new(&format!(
            "stages:\n  a: {{kind: command, grid: {{N: [1, 2]}}, outputs: {{x: x, y: y}}, with: {{run: x}}}}\n  \
             b:\n    kind: command\n    inputs:\n      i: {input}\n    outputs: {{x: x}}\n    with: {{run: x}}\n"
        ))
    };
    plan_refuses(&text("{from: a, output: z}"), "pipeline.yaml:6:28: stage `a` has no output `z`; did you mean `x`?");
    plan_refuses(&text("{from: a}"), "pipeline.yaml:6:17: stage `a` has several outputs; name one with `output`: `x`, `y`");
    plan_refuses(
        &text("{from: a, output: x, where: {M: 1}}"),
        "pipeline.yaml:6:39: stage `a` has no axis `M`; did you mean `N`?",
    );
    plan_refuses(&text("{from: a, output: x, where: {N: 4}}"), "pipeline.yaml:6:38: no node of stage `a` has N=4");
}

#[test]
fn unknown_variable() {
    plan_refuses(
        &Sandbox::new(
            "vars: {steps: 3}\nstages:\n  a:\n    kind: command\n    outputs: {x: x}\n    with: {run: 'echo ${{ step }}'}\n",
        ),
        "pipeline.yaml:6:11: unknown variable `step`; did you mean `steps`?",
    );
    refuses(
        &chain(),
        &["plan", "--set", "wrd=1"],
        2,
        "error: pipeline.yaml: `--set` names an unknown variable `wrd`; did you mean `word`?",
    );
    refuses(&chain(), &["plan", "--set", "word"], 2, "error: `--set word` has no value; write it as `--set name=value`");
}

#[test]
fn unknown_profile() {
    let sandbox = Sandbox::new("profiles: {smoke: {}, quick: {extends: smok}}\nstages: {}\n");
    refuses(&sandbox, &["plan", "--profile", "smoek"], 2, "error: pipeline.yaml: unknown profile `smoek`; did you mean `smoke`?");
    plan_refuses(&sandbox, "pipeline.yaml:1:40: unknown profile `smok`; did you mean `smoke`?");
    let circle = Sandbox::new("profiles:\n  quick: {extends: big}\n  big: {extends: quick}\nstages: {}\n");
    plan_refuses(&circle, "pipeline.yaml:2:3: profile `quick` extends itself: quick -> big -> quick");
}

#[test]
fn profile_that_changes_an_unknown_stage() {
    plan_refuses(
        &Sandbox::new(
            "profiles: {quick: {stages: {b: {retries: 1}}}}\nstages: {a: {kind: command, outputs: {x: x}, with: {run: x}}}\n",
        ),
        "pipeline.yaml:1:29: unknown stage `b`; did you mean `a`?",
    );
}

#[test]
fn grids() {
    let grid = |grid: &str| stage(&format!("    grid: {grid}\n    outputs: {{x: x}}\n    with: {{run: x}}\n"));
    plan_refuses(&grid("{n: 3}"), "pipeline.yaml:4:15: axis `n` must be a list of plain values, such as `[1, 2, 4]`");
    plan_refuses(&grid("{n: [1, 1.0]}"), "pipeline.yaml:4:19: axis `n` holds `1` twice");
    plan_refuses(
        &grid("{n: [1, [2]]}"),
        "pipeline.yaml:4:19: axis `n` holds a value that is not plain; use text, numbers or booleans",
    );
    plan_refuses(
        &grid("{n: [1], exclude: [{m: 1}]}"),
        "pipeline.yaml:4:34: `exclude` names `m`, which is not an axis; did you mean `n`?",
    );
    plan_refuses(
        &stage("    grid: {n: [1, 2]}\n    id: same\n    outputs: {x: x}\n    with: {run: x}\n"),
        "pipeline.yaml:5:9: two nodes are called `a/same`; let `id` name every axis that differs",
    );
    let axis: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let axis = axis.join(", ");
    plan_refuses(
        &grid(&format!("{{n: [{axis}], m: [{axis}]}}")),
        "pipeline.yaml:4:11: the grid has 160000 points, and 100000 is the most; make an axis shorter",
    );
}

#[test]
fn paths_that_leave_the_project() {
    let outputs = |path: &str| stage(&format!("    outputs:\n      x: {path}\n    with: {{run: x}}\n"));
    plan_refuses(&outputs("../x"), "pipeline.yaml:5:10: `../x` leaves the project with `..`; name a path inside it");
    plan_refuses(&outputs("a/../../x"), "pipeline.yaml:5:10: `a/../../x` leaves the project with `..`; name a path inside it");
    plan_refuses(&outputs("/etc/x"), "pipeline.yaml:5:10: `/etc/x` is absolute; name a path inside the project");
    plan_refuses(&outputs("''"), "pipeline.yaml:5:10: an empty path names nothing");
    let inputs = |path: &str| stage(&format!("    inputs:\n      i: {path}\n    outputs: {{x: x}}\n    with: {{run: x}}\n"));
    plan_refuses(&inputs("../x"), "pipeline.yaml:5:10: `../x` leaves the project with `..`; name a path inside it");
    plan_refuses(
        &inputs("out/quick/b/x"),
        "pipeline.yaml:5:10: `out/quick/b/x` is not a source of the project; read a stage's output with `from: stage`",
    );
    let twice = stage("    outputs: {x: d/, y: d/e}\n    with: {run: x}\n");
    plan_refuses(&twice, "pipeline.yaml:4:25: outputs `x` and `y` overlap at `d/e`");
}

#[test]
fn commands() {
    let with = |with: &str| stage(&format!("    outputs: {{x: x}}\n    with: {with}\n"));
    plan_refuses(&with("{}"), "pipeline.yaml:5:11: a command needs `run: a shell line` or `argv: [program, ...]`");
    plan_refuses(&with("{run: x, argv: [y]}"), "pipeline.yaml:5:26: give `run` or `argv`, not both");
    plan_refuses(&with("{argv: []}"), "pipeline.yaml:5:18: `argv` is empty; name a program");
    plan_refuses(
        &stage("    with: {run: x}\n"),
        "pipeline.yaml:4:11: a command needs at least one output; declare it under `outputs`",
    );
}

#[test]
fn resources_and_times() {
    let with = |field: &str| stage(&format!("    {field}\n    outputs: {{x: x}}\n    with: {{run: x}}\n"));
    plan_refuses(
        &with("resources: {memory: lots}"),
        "pipeline.yaml:4:25: `lots` is not an amount of memory; write it as `512MiB` or `4GiB`",
    );
    plan_refuses(&with("resources: {threads: two}"), "pipeline.yaml:4:26: `threads` must be a whole number");
    plan_refuses(&with("timeout: soon"), "pipeline.yaml:4:14: `soon` is not a time; write it as `90s`, `10m` or `1h30m`");
    plan_refuses(&with("seed: -1"), "pipeline.yaml:4:11: `seed` must be a whole number, 0 or more");
    refuses(&chain(), &["run", "-j0"], 2, "error: `--jobs 0` would never run anything; give 1 or more");
}

#[test]
fn missing_input() {
    let sandbox = chain();
    fs::remove_file(sandbox.path("source.txt")).unwrap();
    plan_refuses(
        &sandbox,
        "input `source` of `a`: `source.txt` does not exist; make it, or mend the path in the stage's `inputs`",
    );
    refuses(
        &sandbox,
        &["run"],
        2,
        "error: input `source` of `a`: `source.txt` does not exist; make it, or mend the path in the stage's `inputs`",
    );
}

#[test]
fn names_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = stage("    inputs: {d: docs}\n    outputs: {x: x}\n    with: {run: 'ls docs > x'}\n").with("docs/a", "");
    fs::write(sandbox.path("docs").join(std::ffi::OsStr::from_bytes(b"b\xff")), "").unwrap();
    refuses(&sandbox, &["run"], 2, "error: input `d` of `a`: `ROOT/docs/b\u{fffd}` has a name that is not UTF-8; rename it");
    let output = stage("    outputs: {d: d/}\n    with: {run: \"touch d/$(printf 'b\\\\377')\"}\n");
    run_fails(&output, "declared output `d`: `d/b\u{fffd}` has a name that is not UTF-8; rename it");
}

#[test]
fn links_in_inputs() {
    let sandbox = stage("    inputs: {d: docs}\n    outputs: {x: x}\n    with: {run: 'cat docs/* > x'}\n").with("docs/a", "1\n");
    std::os::unix::fs::symlink("/etc", sandbox.path("docs/loop")).unwrap();
    refuses(
        &sandbox,
        &["run"],
        2,
        "error: input `d` of `a`: `ROOT/docs/loop` is a link to a directory; name the directory itself",
    );
}

#[test]
fn unknown_targets() {
    let sandbox = chain();
    refuses(&sandbox, &["run", "bb"], 2, "error: unknown target `bb` in profile `quick`; did you mean `b`?");
    refuses(&sandbox, &["run", "c/n9"], 2, "error: unknown target `c/n9` in profile `quick`; did you mean `c/n1`?");
    refuses(&sandbox, &["run", "zebra"], 2, "error: unknown target `zebra` in profile `quick`; there is `a`, `b`, `c`");
    refuses(&sandbox, &["run", "x*"], 2, "error: nothing in profile `quick` matches `x*`; `repro status` lists what there is");
    refuses(&sandbox, &["why", "c"], 2, "error: `c` names 3 nodes; name one, such as `c/n1`");
    refuses(&sandbox, &["run", "[a"], 2, "error: `[a` is not a valid pattern: unclosed character class; missing ']'");
    refuses(&sandbox, &["log", "a"], 2, "error: `a` has not run here in profile `quick`, so there is no log");
    refuses(&sandbox, &["show", "a"], 2, "error: `a` is not done in profile `quick`; `repro run a` makes it");
}

#[test]
fn outputs_that_are_not_as_declared() {
    let run = |outputs: &str, line: &str| stage(&format!("    outputs: {outputs}\n    with: {{run: \"{line}\"}}\n"));
    run_fails(&run("{x: x.txt}", "true"), "declared output `x` was not written: there is no `x.txt`");
    run_fails(&run("{x: d/}", "true"), "declared output `x` was not written: there is no `d/*`");
    run_fails(
        &run("{x: x}", "mkdir x"),
        "declared output `x`: `x` is a directory, but a file was declared (`/` at the end means a directory)",
    );
    run_fails(
        &run("{x: x}", "ln -s /etc/passwd x"),
        "declared output `x`: `x` is or lies behind a symbolic link; write the file itself",
    );
    run_fails(
        &run("{x: d/x}", "rmdir d; ln -s /tmp d; touch d/x"),
        "declared output `x`: `d/x` is or lies behind a symbolic link; write the file itself",
    );
    run_fails(&run("{x: d/}", "ln -s /etc/passwd d/x"), "declared output `x`: `d/x` is a symbolic link; write the file itself");
    run_fails(
        &run("{x: x}", "mkfifo x"),
        "declared output `x`: `x` is a special file, but a file was declared (`/` at the end means a directory)",
    );
    run_fails(&run("{x: x}", "exit 3"), "the worker ended with exit code 3");
    run_fails(&run("{x: x}", "kill -9 $$"), "the worker was ended by signal 9 (SIGKILL: killed, perhaps for lack of memory)");
    let slow = stage("    timeout: 0.2s\n    outputs: {x: x}\n    with: {run: sleep 30}\n");
    run_fails(&slow, "took longer than its timeout of 0.2 s");
}

#[test]
fn a_program_that_is_not_there() {
    let sandbox = stage("    outputs: {x: x}\n    with: {argv: [no-such-program]}\n");
    let ran = sandbox.repro(&["run"]).exits(1);
    assert_eq!(
        ran.err
            .lines()
            .skip(1)
            .map(|line| line.split_once(" in ").map_or(line.into(), |(line, _)| format!("{line} in TIME")))
            .collect::<Vec<_>>(),
        [
            "[1/1] a: FAILED: `no-such-program` cannot be started: No such file or directory (os error 2)",
            "    log: .repro/logs/quick/a.log",
            "1 node: 1 failed in TIME",
        ]
    );
}

#[test]
fn a_link_below_out() {
    let sandbox = chain();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(sandbox.path("out/quick")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), sandbox.path("out/quick/a")).unwrap();
    refuses(
        &sandbox,
        &["run"],
        1,
        "[0/5] a: running, never ran\n\
         [1/5] a: FAILED: `out/quick/a` is a symbolic link below `out/` and may lead outside the project; remove it\n    \
         log: .repro/logs/quick/a.log\n\
         error: `out/quick/a` is a symbolic link below `out/` and may lead outside the project; remove it",
    );
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    fs::remove_file(sandbox.path("out/quick/a")).unwrap();
    assert_eq!(sandbox.run(&[]).ok().nodes("node_restored"), ["a"], "what was done is not done again");
}

#[test]
fn wrong_command_line() {
    let ran = chain().repro(&["statsu"]).exits(2);
    assert!(ran.err.contains("a similar subcommand exists: 'status'"), "{}", ran.err);
}

#[test]
fn theory_that_cannot_be_measured() {
    let theory = |with: &str| Sandbox::new(&format!("stages:\n  a:\n    kind: theory\n    with: {with}\n"));
    plan_refuses(
        &theory("{check: T11}"),
        "pipeline.yaml:4:19: unknown variant `T11`, expected one of `T1`, `T2`, `T3`, `T4`, `T5`, `T6`, `T7`, `T8`, \
         `T9`, `T10`",
    );
    plan_refuses(&theory("{d: 64}"), "pipeline.yaml:4:11: missing field `check`");
    plan_refuses(&theory("{check: T1, d: 4}"), "pipeline.yaml:4:26: `d` is 4, but must be between 8 and 8192");
    plan_refuses(&theory("{check: T1, draws: 0}"), "pipeline.yaml:4:30: `draws` is 0, but must be between 1 and 65536");
    plan_refuses(
        &theory("{check: T3, loops: [4, 2]}"),
        "pipeline.yaml:4:30: `loops` is [4,2], but must be a rising list of numbers between 1 and 65536",
    );
    plan_refuses(
        &theory("{check: T7, alphas: [0, 0.5]}"),
        "pipeline.yaml:4:31: `alphas` is [0.0,0.5], but must be a rising list of numbers above 0",
    );
    plan_refuses(&theory("{check: T9, copies: 5}"), "pipeline.yaml:4:31: `copies` is 5, but must be even, between 4 and 65536");
    plan_refuses(
        &theory("{check: T1, loop: [1]}"),
        "pipeline.yaml:4:23: unknown field `loop`, expected one of `check`, `d`, `draws`, `loops`, `depths`, `alphas`, \
         `block_loops`, `block_depths`, `lambdas`, `betas`, `etas`, `steps`, `batch`, `drift_d`, `copies`; did you mean `loops`?",
    );
}

#[test]
fn theory_reads_nothing() {
    plan_refuses(
        &Sandbox::new("stages:\n  a:\n    kind: theory\n    inputs: {x: pipeline.yaml}\n    with: {check: T1}\n"),
        "pipeline.yaml:5:11: an input `x` is not read by this kind; there are none",
    );
}
