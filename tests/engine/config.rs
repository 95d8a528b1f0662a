//! Profiles, grids, references: what YAML turns into.

use crate::sandbox::Sandbox;

fn ids(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let mut all = vec!["plan", "--json"];
    all.extend(args);
    let plan = sandbox.repro(&all).exits(3).json();
    plan["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap().to_string()).collect()
}

const SWEEP: &str = r#"
vars: {steps: 100, rates: [1e-3, 2e-3]}
profiles:
  smoke: {vars: {steps: 5}, stages: {sweep: {grid: {N: [1]}}}}
  quick: {}
  workstation: {extends: quick, vars: {rates: [5e-4, 1e-3, 2e-3]}}
  paper: {extends: workstation, stages: {sweep: {grid: {exclude: []}, with: {env: {EXTRA: "1"}}}, note: {skip: true}}}
stages:
  sweep:
  note: {kind: command, needs: [sweep], outputs: {x: x}, with: {run: echo > x}}
"#;

const SWEEP_STAGE: &str = r#"
kind: command
grid:
  L: [12, 24]
  N: [1, 8]
  rule: [sqrt, linear]
  lr: ${{ rates }}
  exclude: [{L: 24, rule: sqrt}, {L: 12, N: 1, rule: sqrt}]
  include: [{L: 48, N: 8, rule: linear, lr: 4e-3}]
outputs: {x: x}
with: {run: "echo ${{ steps }} > x", env: {STEPS: "${{ steps }}"}}
"#;

#[test]
fn a_profile_overrides_variables_and_grids() {
    let sandbox = Sandbox::new(SWEEP).with("stages/sweep.yaml", SWEEP_STAGE);
    assert_eq!(
        ids(&sandbox, &["sweep"]),
        [
            "sweep/L12-N1-linear-lr1e-3",
            "sweep/L12-N1-linear-lr2e-3",
            "sweep/L12-N8-sqrt-lr1e-3",
            "sweep/L12-N8-sqrt-lr2e-3",
            "sweep/L12-N8-linear-lr1e-3",
            "sweep/L12-N8-linear-lr2e-3",
            "sweep/L24-N1-linear-lr1e-3",
            "sweep/L24-N1-linear-lr2e-3",
            "sweep/L24-N8-linear-lr1e-3",
            "sweep/L24-N8-linear-lr2e-3",
            "sweep/L48-N8-linear-lr4e-3",
        ]
    );
    assert_eq!(ids(&sandbox, &["--profile", "smoke", "sweep"]).len(), 5);
    assert_eq!(ids(&sandbox, &["--profile", "workstation"]).len(), 17);
    let paper = ids(&sandbox, &["--profile", "paper"]);
    assert_eq!(paper.len(), 25);
    assert!(!paper.contains(&"note".to_string()));
    sandbox.run(&["--profile", "smoke", "sweep/L12*"]).ok();
    assert_eq!(sandbox.read("out/smoke/sweep/L12-N1-linear-lr2e-3/x"), "5\n");
}

#[test]
fn a_profile_can_put_another_file_in_place_of_a_stage() {
    let sandbox = Sandbox::new(
        "profiles: {quick: {}, paper: {stages: {a: {file: stages/paper/a.yaml}}}}\nstages:\n  a:\n  \
         b: {kind: command, inputs: {a: {from: a}}, outputs: {x: x}, with: {run: 'cp ${{ inputs.a }} x'}}\n",
    )
    .with("stages/a.yaml", "{kind: command, outputs: {x: x}, with: {run: 'echo small > x'}}")
    .with("stages/paper/a.yaml", "{kind: command, outputs: {x: x}, with: {run: 'echo large > x'}}");
    sandbox.run(&[]).ok();
    sandbox.run(&["--profile", "paper"]).ok();
    assert_eq!((sandbox.read("out/quick/b/x"), sandbox.read("out/paper/b/x")), ("small\n".into(), "large\n".into()));
}

#[test]
fn ids_can_be_written_by_hand() {
    let sandbox = Sandbox::new(
        "stages:\n  a:\n    kind: command\n    grid: {L: [12], seed: [0, 1]}\n    id: L${{ L }}-s${{ seed }}\n    seed: ${{ seed }}\n    \
         outputs: {x: x}\n    with: {run: 'echo $REPRO_SEED > x'}\n",
    );
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/a/L12-s1/x"), "1\n");
}

#[test]
fn a_reference_selects_by_axis() {
    let sandbox = Sandbox::new(
        "stages:\n  a:\n    kind: command\n    grid: {n: [1, 2], m: [x, y]}\n    outputs: {t: t.txt}\n    with: {run: 'echo ${{ n }}${{ m }} > t.txt'}\n  \
         one:\n    kind: command\n    grid: {n: [1, 2]}\n    inputs: {t: {from: a, where: {n: '${{ n }}', m: y}}}\n    \
         outputs: {x: x}\n    with: {run: 'cp ${{ inputs.t }} x'}\n  \
         some:\n    kind: command\n    inputs: {t: {from: a, where: {n: [2]}}}\n    \
         outputs: {x: x}\n    with: {run: '(ls ${{ inputs.t }}; cat ${{ inputs.t }}/*/t.txt) > x'}\n",
    );
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/one/n2/x"), "2y\n");
    assert_eq!(sandbox.read("out/quick/some/x"), "n2-x\nn2-y\n2x\n2y\n");
}

#[test]
fn a_grid_of_ten_thousand_is_planned_and_collapsed() {
    let axis: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let axis = axis.join(", ");
    let sandbox = Sandbox::new(&format!(
        "stages:\n  a:\n    kind: command\n    grid: {{n: [{axis}], m: [{axis}]}}\n    outputs: {{x: x}}\n    with: {{run: 'echo > x'}}\n"
    ));
    let plan = sandbox.repro(&["plan"]).exits(3);
    assert!(plan.out.contains("will run  a/...: 9994 more\n10000 nodes in profile quick: 10000 will run\n"), "{}", plan.out);
    assert_eq!(sandbox.repro(&["dag"]).ok().out, "a ×10000  0/10000 done\n");
    sandbox.run(&["a/n7-m99"]).ok();
    assert!(sandbox.exists("out/quick/a/n7-m99/x"));
}

#[test]
fn a_command_sees_its_inputs_and_nothing_else_of_the_project() {
    let sandbox = Sandbox::new(
        "stages:\n  a:\n    kind: command\n    inputs: {s: scripts/go.sh}\n    outputs: {x: x}\n    with: {run: 'find . -not -type d | sort > x'}\n",
    )
    .with("scripts/go.sh", "echo")
    .with("secret.txt", "not declared");
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/a/x"), "./scripts/go.sh\n./x\n");
}

#[test]
fn argv_is_passed_as_it_is_and_env_is_set() {
    let sandbox = Sandbox::new(
        "stages:\n  a:\n    kind: command\n    outputs: {x: x}\n    \
         with: {argv: [sh, -c, 'echo \"$1|$WORD\" > x', sh, '$(false) ;'], env: {WORD: 'a b'}}\n",
    );
    sandbox.run(&[]).ok();
    assert_eq!(sandbox.read("out/quick/a/x"), "$(false) ;|a b\n");
}
