//! What runs again and what does not.

use std::fs;

use crate::sandbox::{Sandbox, chain};

#[test]
fn a_second_run_does_nothing() {
    let sandbox = chain();
    let first = sandbox.run(&[]).ok();
    assert_eq!(first.nodes("node_done"), ["a", "b", "c/n1", "c/n2", "c/n3"]);
    assert_eq!(sandbox.read("out/quick/c/n2/c.txt"), "ONE\nhello 2\n");
    let second = sandbox.run(&[]).ok();
    assert_eq!(second.nodes("node_started"), [""; 0]);
    assert_eq!(second.nodes("node_cached").len(), 5);
}

#[test]
fn a_new_grid_point_runs_alone() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.edit("pipeline.yaml", "[1, 2, 3]", "[1, 2, 3, 4]");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), ["c/n4"]);
}

#[test]
fn a_changed_parameter_reruns_its_stage_and_not_what_it_reads() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    let run = sandbox.run(&["--set", "word=bye"]).ok();
    assert_eq!(run.nodes("node_started"), ["c/n1", "c/n2", "c/n3"]);
    // And back: nothing was lost.
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), [""; 0]);
    assert_eq!(sandbox.read("out/quick/c/n1/c.txt"), "ONE\nhello 1\n");
}

#[test]
fn the_same_bytes_made_anew_do_not_wake_what_is_downstream() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.edit("pipeline.yaml", "cat source.txt > a.txt", "cp source.txt a.txt");
    let run = sandbox.run(&[]).ok();
    assert_eq!(run.nodes("node_started"), ["a"]);
    assert_eq!(run.nodes("node_cached"), ["b", "c/n1", "c/n2", "c/n3"]);
}

#[test]
fn a_touched_input_with_the_same_content_runs_nothing() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.write("source.txt", "one\n");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), [""; 0]);
    sandbox.write("source.txt", "two\n");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started").len(), 5);
}

#[test]
fn comments_and_layout_of_the_yaml_are_not_in_the_key() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.edit("pipeline.yaml", "kind: command", "# a remark\n    kind:   command");
    sandbox.edit("pipeline.yaml", "outputs: {text: b.txt}", "outputs:\n      text: b.txt\n    timeout: 5m\n    retries: 2");
    assert_eq!(sandbox.run(&["-j1"]).ok().nodes("node_started"), [""; 0]);
}

#[test]
fn force_reruns_what_was_named_and_leaves_upstream_cached() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    let run = sandbox.run(&["c", "--force"]).ok();
    assert_eq!(run.nodes("node_started"), ["c/n1", "c/n2", "c/n3"]);
    assert_eq!(sandbox.run(&["c/n2", "--force"]).ok().nodes("node_started"), ["c/n2"]);
    assert_eq!(sandbox.run(&["*/n[13]", "--force"]).ok().nodes("node_started"), ["c/n1", "c/n3"]);
}

#[test]
fn an_edited_output_is_noticed_and_restored_and_cannot_reach_the_store() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    let before: Vec<Vec<u8>> = sandbox.objects().iter().map(|path| fs::read(path).unwrap()).collect();
    sandbox.write("out/quick/b/b.txt", "ONE \n");
    fs::remove_file(sandbox.path("out/quick/c/n1/c.txt")).unwrap();
    let plan = sandbox.repro(&["plan"]).exits(3);
    assert!(plan.out.contains("restore   b: out/quick/b/b.txt was edited\n"), "{}", plan.out);
    let run = sandbox.run(&[]).ok();
    assert_eq!(run.nodes("node_restored"), ["b", "c/n1"]);
    assert_eq!(run.nodes("node_started"), [""; 0]);
    assert_eq!(sandbox.read("out/quick/b/b.txt"), "ONE\n");
    assert_eq!(sandbox.read("out/quick/c/n1/c.txt"), "ONE\nhello 1\n");
    let after: Vec<Vec<u8>> = sandbox.objects().iter().map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(before, after);
}

#[test]
fn a_damaged_object_is_quarantined_and_made_again() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    let objects = sandbox.objects();
    for path in &objects {
        fs::remove_file(path).unwrap();
        fs::write(path, "???\n").unwrap();
    }
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    let run = sandbox.run(&[]).ok();
    assert_eq!(run.nodes("node_started").len(), 5);
    assert_eq!(sandbox.read("out/quick/c/n3/c.txt"), "ONE\nhello 3\n");
    assert_eq!(fs::read_dir(sandbox.path(".repro/quarantine")).unwrap().count(), objects.len());
}

#[test]
fn a_missing_object_comes_back_from_its_published_copy_or_is_made_again() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    let objects = sandbox.objects();
    objects.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), [""; 0]);
    assert_eq!(sandbox.objects(), objects);
    objects.iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started").len(), 5);
    assert_eq!(sandbox.read("out/quick/b/b.txt"), "ONE\n");
}

#[test]
fn a_lost_upstream_object_is_remade_when_something_has_to_read_it() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.objects().iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    // Only `c` is wanted: its upstream is known by record alone until a node must read it.
    let run = sandbox.run(&["c", "--set", "word=new"]).ok();
    assert_eq!(run.nodes("node_done"), ["a", "b", "c/n1", "c/n2", "c/n3"]);
    assert_eq!(sandbox.read("out/quick/c/n1/c.txt"), "ONE\nnew 1\n");
}

#[test]
fn upstream_that_nobody_has_to_read_is_left_alone() {
    let sandbox = chain();
    sandbox.run(&[]).ok();
    sandbox.objects().iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::remove_dir_all(sandbox.path("out/quick/a")).unwrap();
    // `c` is cached and its published copies are intact; `a`, whose bytes are gone, is not asked for.
    let run = sandbox.run(&["c"]).ok();
    assert_eq!(run.nodes("node_started"), [""; 0]);
    assert!(!sandbox.exists("out/quick/a"));
}

#[test]
fn profiles_share_what_is_the_same() {
    let sandbox = chain();
    let text = format!("profiles: {{quick: {{}}, smoke: {{vars: {{points: [1]}}}}}}\n{}", sandbox.read("pipeline.yaml"));
    sandbox.write("pipeline.yaml", &text);
    sandbox.run(&[]).ok();
    let run = sandbox.run(&["--profile", "smoke"]).ok();
    assert_eq!(run.nodes("node_started"), [""; 0]);
    assert_eq!(sandbox.read("out/smoke/c/n1/c.txt"), "ONE\nhello 1\n");
    assert_eq!(sandbox.run(&["--profile", "smoke"]).ok().nodes("node_restored"), [""; 0]);
}

#[test]
fn nodes_with_the_same_key_run_once() {
    let ledger = tempfile::NamedTempFile::new().unwrap();
    let sandbox = Sandbox::new(&format!(
        "stages:\n  a:\n    kind: command\n    grid: {{rule: [sqrt, linear]}}\n    outputs: {{x: x}}\n    \
         with: {{run: 'echo ran >> {}; sleep 0.2; echo 1 > x'}}\n",
        ledger.path().display()
    ));
    let run = sandbox.run(&["-j4"]).ok();
    assert_eq!(run.nodes("node_done").len(), 1);
    assert_eq!(fs::read_to_string(ledger.path()).unwrap(), "ran\n");
    assert_eq!(sandbox.read("out/quick/a/sqrt/x"), sandbox.read("out/quick/a/linear/x"));
}

#[test]
fn an_executable_output_stays_executable_and_counts_as_another_input() {
    let sandbox = Sandbox::new(
        "vars: {mode: '+x'}\nstages:\n  tool:\n    kind: command\n    outputs: {bin: tool.sh}\n    \
         with: {run: \"printf '%s\\\\n' '#!/bin/sh' 'echo ran $1' > tool.sh; chmod ${{ mode }} tool.sh\"}\n  \
         use:\n    kind: command\n    inputs: {bin: {from: tool}}\n    outputs: {x: x}\n    \
         with: {run: '(./${{ inputs.bin }} direct || sh ${{ inputs.bin }} sh) > x 2>/dev/null'}\n",
    );
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/use/x"), "ran direct\n");
    assert_eq!(sandbox.run(&["--set", "mode=-x"]).ok().nodes("node_started"), ["tool", "use"]);
    assert_eq!(sandbox.read("out/quick/use/x"), "ran sh\n");
}

#[test]
fn a_directory_is_an_input_and_an_output() {
    let sandbox = Sandbox::new(
        "stages:\n  split:\n    kind: command\n    inputs: {docs: docs}\n    outputs: {parts: parts/}\n    \
         with: {run: 'for f in docs/*; do tr a-z A-Z < $f > parts/$(basename $f); done'}\n  \
         join:\n    kind: command\n    inputs: {parts: {from: split}}\n    outputs: {all: all.txt}\n    \
         with: {run: 'cat ${{ inputs.parts }}/* > all.txt'}\n",
    )
    .with("docs/a", "x\n")
    .with("docs/b", "y\n");
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/join/all.txt"), "X\nY\n");
    // A file that is not part of the result does not stay in a published directory.
    sandbox.write("out/quick/split/parts/stranger", "?");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_restored"), ["split"]);
    assert!(!sandbox.exists("out/quick/split/parts/stranger"));
    sandbox.write("docs/c", "z\n");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), ["join", "split"]);
    assert_eq!(sandbox.read("out/quick/join/all.txt"), "X\nY\nZ\n");
    fs::remove_file(sandbox.path("docs/a")).unwrap();
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/join/all.txt"), "Y\nZ\n");
    assert!(!sandbox.exists("out/quick/split/parts/a"));
}

#[test]
fn an_input_changed_while_the_node_runs_gives_no_result() {
    let sandbox = Sandbox::new("stages: {}").with("in.txt", "old");
    let source = sandbox.path("in.txt").display().to_string();
    sandbox.write(
        "pipeline.yaml",
        &format!(
            "stages:\n  a:\n    kind: command\n    inputs: {{i: in.txt}}\n    outputs: {{x: x}}\n    \
             with: {{run: 'cat in.txt > x; if [ $(cat in.txt) = old ]; then printf new > {source}; fi'}}\n"
        ),
    );
    let run = sandbox.repro(&["run"]).exits(1);
    assert!(run.err.contains("`in.txt` was changed while the node ran"), "{}", run.err);
    assert!(!sandbox.exists("out/quick/a/x"));
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/a/x"), "new");
}

#[test]
fn a_stage_needs_another_without_reading_it() {
    let ledger = tempfile::NamedTempFile::new().unwrap();
    let log = ledger.path().display();
    let sandbox = Sandbox::new(&format!(
        "stages:\n  late:\n    kind: command\n    needs: [early]\n    outputs: {{x: x}}\n    with: {{run: 'echo late >> {log}; echo 1 > x'}}\n  \
         early:\n    kind: command\n    grid: {{n: [1, 2]}}\n    outputs: {{x: x}}\n    \
         with: {{run: 'sleep 0.1; echo early >> {log}; echo ${{{{ n }}}} > x'}}\n"
    ));
    sandbox.run(&["late", "-j4"]).ok();
    assert_eq!(fs::read_to_string(ledger.path()).unwrap(), "early\nearly\nlate\n");
    sandbox.edit("pipeline.yaml", "sleep 0.1", "sleep 0.0");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_started"), ["early/n1", "early/n2"]);
}

#[test]
fn scratch_survives_a_failed_attempt_and_is_gone_after_success() {
    let sandbox = Sandbox::new(
        "stages:\n  a:\n    kind: command\n    retries: 3\n    outputs: {x: x}\n    \
         with: {run: 'mkdir -p $REPRO_SCRATCH; echo . >> $REPRO_SCRATCH/tries; [ $(wc -l < $REPRO_SCRATCH/tries) -ge 3 ]; cp $REPRO_SCRATCH/tries x'}\n",
    );
    let run = sandbox.run(&[]).ok();
    assert_eq!(run.nodes("node_retried").len(), 2);
    assert_eq!(sandbox.read("out/quick/a/x"), ".\n.\n.\n");
    assert_eq!(fs::read_dir(sandbox.path(".repro/scratch")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(sandbox.path(".repro/attempts")).unwrap().count(), 0);
}

#[test]
fn the_number_of_jobs_changes_no_bytes_and_no_keys() {
    let (one, four) = (chain(), chain());
    one.run(&["-j1"]).ok();
    four.run(&["-j4"]).ok();
    let names = |sandbox: &Sandbox| -> Vec<String> {
        sandbox.objects().iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(&one), names(&four));
    let keys = |sandbox: &Sandbox| -> Vec<String> {
        let plan = sandbox.repro(&["plan", "--json"]).ok().json();
        plan["nodes"].as_array().unwrap().iter().map(|node| node["key"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(keys(&one), keys(&four));
}
