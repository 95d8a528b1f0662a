//! The commands that look: plan, status, why, dag, log, show, and those that look after the store.

use std::fs;

use crate::sandbox::{Sandbox, chain};

#[test]
fn plan_tells_what_runs_why_and_what_waits() {
    let sandbox = chain();
    let plan = sandbox.repro(&["plan"]).exits(3);
    assert_eq!(
        plan.out,
        "will run  a: never ran\nmay run   b: waits on a\nmay run   c/n1: waits on b\nmay run   c/n2: waits on b\n\
         may run   c/n3: waits on b\n5 nodes in profile quick: 1 will run, 4 may run\n"
    );
    assert!(!sandbox.exists(".repro"), "a plan writes nothing");
    sandbox.run(&[]).ok();
    let plan = sandbox.repro(&["plan"]).ok();
    assert_eq!(plan.out, "5 nodes in profile quick: 5 cached\n");
    let dry = sandbox.repro(&["run", "c", "--force", "--dry-run"]).exits(3);
    assert!(dry.out.contains("will run  c/n1: forced\n"), "{}", dry.out);
}

#[test]
fn why_names_the_first_difference_and_on_request_all() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    assert!(sandbox.repro(&["why", "c/n1"]).ok().out.starts_with("c/n1: cached, key "));
    sandbox.edit("pipeline.yaml", "word: hello", "word: bye");
    let why = sandbox.repro(&["why", "c/n1"]).ok();
    assert_eq!(
        why.out,
        "c/n1: will run, run changed `(cat in/b/b.txt; echo hello 1) > c.txt` -> `(cat in/b/b.txt; echo bye 1) > c.txt`\n  run\n    \
         was `(cat in/b/b.txt; echo hello 1) > c.txt`\n    is  `(cat in/b/b.txt; echo bye 1) > c.txt`\n"
    );
    sandbox.write("source.txt", "two\n");
    let why = sandbox.repro(&["why", "c/n1"]).ok();
    assert_eq!(why.out, "c/n1: may run, waits on b; see `repro why b`\n");
    let why = sandbox.repro(&["why", "a"]).ok();
    assert!(why.out.starts_with("a: will run, input source source.txt changed "), "{}", why.out);
    sandbox.edit("pipeline.yaml", "cat source.txt > a.txt", "cat source.txt source.txt > a.txt");
    let why = sandbox.repro(&["why", "a"]).ok();
    assert!(why.out.contains("  and 1 more; `--all` shows them\n"), "{}", why.out);
    let all = sandbox.repro(&["why", "a", "--all", "--json"]).ok().json();
    assert_eq!(all["differences"].as_array().unwrap().len(), 2);
    assert_eq!(all["now"]["why"]["reason"], "changed");
}

#[test]
fn a_failure_is_told_with_its_log_and_remembered() {
    let sandbox = Sandbox::new(
        "stages:\n  bad: {kind: command, outputs: {x: x}, with: {run: 'echo some words; exit 4'}}\n  \
         after: {kind: command, inputs: {b: {from: bad}}, outputs: {x: x}, with: {run: 'echo > x'}}\n  \
         beside: {kind: command, outputs: {x: x}, with: {run: 'sleep 0.3; echo > x'}}\n  \
         last: {kind: command, needs: [beside], outputs: {x: x}, with: {run: 'echo > x'}}\n",
    );
    let run = sandbox.repro(&["run", "-j2"]).exits(1);
    assert!(
        run.err
            .contains("bad: FAILED: the worker ended with exit code 4\n    | some words\n    log: .repro/logs/quick/bad.log\n"),
        "{}",
        run.err
    );
    assert!(run.err.contains("4 nodes: 1 ran, 1 failed, 1 blocked by failures, 1 not reached in "), "{}", run.err);
    assert_eq!(sandbox.repro(&["log", "bad"]).ok().out, "some words\n");
    let status = sandbox.repro(&["status"]).ok();
    assert!(status.out.contains("bad failed: the worker ended with exit code 4; see `repro log bad`\n"), "{}", status.out);
    assert!(sandbox.repro(&["why", "bad"]).ok().out.contains("will run, failed last time: the worker ended with exit code 4"));
    let run = sandbox.run(&["--keep-going"]).exits(1);
    assert_eq!(run.nodes("node_done"), ["last"]);
    assert_eq!(run.nodes("node_blocked"), ["after"]);
    sandbox.edit("pipeline.yaml", "exit 4", "echo > x");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_done"), ["after", "bad"]);
}

#[test]
fn status_counts_by_stage() {
    let sandbox = chain();
    sandbox.run(&["c/n1"]).ok();
    let status = sandbox.repro(&["status", "--json"]).ok().json();
    let c = &status["stages"][2];
    assert_eq!((&c["stage"], &c["done"], &c["stale"]), (&"c".into(), &1.into(), &2.into()));
    let text = sandbox.repro(&["status"]).ok().out;
    assert!(text.ends_with("profile quick: 3 of 5 nodes\n"), "{text}");
}

#[test]
fn dag_draws_in_four_ways() {
    let sandbox = chain();
    sandbox.run(&["b"]).ok();
    assert_eq!(sandbox.repro(&["dag"]).ok().out, "a        1/1 done\nb        1/1 done  <- a\nc ×3     0/3 done  <- b\n");
    assert!(sandbox.repro(&["dag", "--format", "mermaid"]).ok().out.contains("s1 --> s2"));
    assert!(sandbox.repro(&["dag", "--format", "dot"]).ok().out.contains("s0 -> s1;"));
    let svg = sandbox.repro(&["dag", "--format", "svg"]).ok().out;
    assert!(svg.starts_with("<svg ") && svg.contains("c ×3") && svg.trim_end().ends_with("</svg>"));
}

#[test]
fn show_tells_where_a_result_comes_from() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    let show = sandbox.repro(&["show", "b", "--json"]).ok().json();
    assert_eq!(show["stale"], false);
    assert_eq!(show["key_parts"]["params"]["run"], "tr a-z A-Z < in/a/a.txt > b.txt");
    assert_eq!(show["record"]["outputs"][0]["files"][0]["size"], 4);
    assert!(show["provenance"]["rustc"].as_str().unwrap().starts_with("rustc "));
    sandbox.edit("pipeline.yaml", "tr a-z", "tr  a-z");
    assert!(sandbox.repro(&["show", "b"]).ok().out.starts_with("b (stale: this is of an earlier key)\n"));
}

#[test]
fn accept_takes_the_outputs_as_they_are_and_says_so() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.edit("pipeline.yaml", "tr a-z A-Z", "tr  a-z  A-Z");
    assert!(sandbox.repro(&["plan"]).exits(3).out.contains("will run  b: run changed"));
    let accept = sandbox.repro(&["accept", "b", "--reason", "only white space"]).ok();
    assert!(accept.out.starts_with("b: accepted as it is, in spite of run `tr a-z A-Z"), "{}", accept.out);
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), [""; 0]);
    let show = sandbox.repro(&["show", "b"]).ok().out;
    assert!(show.contains("accepted by hand from key ") && show.contains("only white space"), "{show}");
    let again = sandbox.repro(&["accept", "b"]).exits(2);
    assert_eq!(again.out, "b: is up to date already\n");
}

#[test]
fn gc_frees_what_is_not_current_and_nothing_else() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.write("source.txt", "two\n");
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.objects().len(), 10);
    let dry = sandbox.repro(&["gc", "--dry-run", "--json"]).ok().json();
    assert_eq!((&dry["objects"], &dry["records"]), (&5.into(), &5.into()));
    assert_eq!(sandbox.objects().len(), 10);
    let freed = sandbox.repro(&["gc"]).ok().out;
    assert_eq!(freed, "freed 5 objects (44 B) and 5 records; 5 objects kept\n");
    assert_eq!(sandbox.objects().len(), 5);
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), [""; 0]);
    sandbox.write("source.txt", "one\n");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_done").len(), 5);
}

#[test]
fn cache_verify_finds_every_damaged_object() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    assert!(sandbox.repro(&["cache", "verify"]).ok().out.starts_with("5 objects good"));
    let objects = sandbox.objects();
    fs::remove_file(&objects[0]).unwrap();
    let text = fs::read(&objects[1]).unwrap();
    fs::remove_file(&objects[1]).unwrap();
    fs::write(&objects[1], text.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>()).unwrap();
    let verify = sandbox.repro(&["cache", "verify", "--json"]).exits(1).json();
    assert_eq!((verify["missing"].as_array().unwrap().len(), verify["damaged"].as_array().unwrap().len()), (1, 1));
    sandbox.run(&[]).ok();
    sandbox.repro(&["cache", "verify"]).ok();
}

#[test]
fn doctor_schema_and_completions_answer() {
    let sandbox = chain();
    let doctor = sandbox.repro(&["doctor"]).ok().out;
    assert!(doctor.contains("cores") && doctor.contains("3 stages, profiles: quick"), "{doctor}");
    let schema = sandbox.repro(&["schema"]).ok().json();
    assert!(schema["$defs"]["RawStage"]["properties"]["kind"]["anyOf"].to_string().contains("command"));
    let stage = sandbox.repro(&["schema", "stage"]).ok().json();
    assert!(stage["allOf"][0]["then"]["properties"]["with"]["properties"]["argv"].is_object());
    assert!(sandbox.repro(&["completions", "bash"]).ok().out.contains("complete -F"));
}

#[test]
fn a_quiet_run_is_remembered_until_anything_is_touched() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    // Files written within the clock's tick prove nothing by their stat, so wait it out.
    std::thread::sleep(std::time::Duration::from_millis(60));
    sandbox.repro(&["run"]).ok();
    let remembered = || fs::read_dir(sandbox.path(".repro/settled")).is_ok_and(|dir| dir.count() > 0);
    assert!(remembered());
    let quiet = |expected: &str| {
        let run = sandbox.repro(&["run"]).ok();
        assert!(run.err.contains(expected), "{}", run.err);
    };
    quiet("5 nodes: 5 cached");
    sandbox.write("out/quick/a/a.txt", "edited");
    quiet("4 cached, 1 restored");
    sandbox.objects().iter().for_each(|path| fs::remove_file(path).unwrap());
    quiet("5 cached");
    assert_eq!(sandbox.objects().len(), 5, "lost objects are noticed and brought back");
    sandbox.write("source.txt", "two\n");
    quiet("5 ran");
    sandbox.edit("pipeline.yaml", "[1, 2, 3]", "[1, 2, 3, 4]");
    quiet("1 ran, 5 cached");
}
