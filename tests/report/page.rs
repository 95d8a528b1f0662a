//! The page: one file, the facts of the run in it, hostile text as text, and every error a user can cause.

use crate::{PAGE, facts, project, states, verdict, verdicts};

/// Every value of an attribute that makes a browser ask for something.
fn addresses(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in [" src=\"", " href=\"", " xlink:href=\"", " action=\"", " data=\"", " srcset=\"", " poster=\""] {
        for (at, _) in page.match_indices(name) {
            let value = &page[at + name.len()..];
            found.push(value[..value.find('"').unwrap()].to_string());
        }
    }
    found
}

#[test]
fn the_report_is_one_file_that_asks_for_nothing() {
    let sandbox = project();
    sandbox.run(&[]).ok();
    let page = sandbox.read(PAGE);
    for word in [
        "claim of E1",
        "about 0.2",
        "[0.10, 0.25]",
        "Inconclusive",
        "N = 1: 2.5",
        "It grows.",
        "2e-3",
        "None <strong>so far</strong>.",
    ] {
        assert!(page.contains(word), "{word} is not in the page");
    }
    let addresses = addresses(&page);
    assert!(addresses.len() > 5);
    for address in addresses {
        assert!(address.starts_with('#') || address == "data:,", "the page asks for {address}");
    }
    assert!(!page.contains("https://") && !page.contains("@import") && !page.contains("url(http"));
    // The name of a drawing language, in the script that draws curves, is no address to ask.
    assert_eq!(page.matches("http://").count(), page.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn the_facts_of_the_run_are_in_the_page() {
    let sandbox = project();
    sandbox.run(&[]).ok();
    let facts = facts(&sandbox.read(PAGE));
    assert_eq!(facts["profile"], "quick");
    assert_eq!(facts["stages"][0]["kind"], "command");
    let node = &facts["nodes"][1];
    assert_eq!((&node["id"], &node["s"]), (&"sweep/n2".into(), &"ran".into()));
    assert_eq!(node["x"], serde_json::json!({"run": "echo 2 quiet > x.txt"}));
    assert_eq!(node["k"].as_str().unwrap().len(), 64);
    assert_eq!(facts["nodes"][3]["r"], serde_json::json!([0, 1, 2]));
    assert!(facts["dag"].as_str().unwrap().starts_with("<svg ") && facts["rustc"].as_str().unwrap().starts_with("rustc "));
    assert_eq!(sandbox.repro(&["show", "sweep/n2", "--json"]).ok().json()["record"]["key"], node["k"]);
}

#[test]
fn the_node_writes_the_same_bytes_and_the_page_stays_while_nothing_changes() {
    let sandbox = project();
    sandbox.run(&[]).ok();
    let (bare, whole) = (sandbox.read("out/quick/report/page.html"), sandbox.read(PAGE));
    assert_eq!(sandbox.run(&["--force", "report"]).ok().nodes("node_done"), ["report"]);
    assert_eq!(sandbox.read("out/quick/report/page.html"), bare);
    let whole_again = sandbox.read(PAGE);
    assert_ne!(whole, whole_again, "the page tells of the run before");
    for _ in 0..3 {
        sandbox.repro(&["run"]).ok();
    }
    assert_eq!(sandbox.read(PAGE), whole_again);
    std::fs::remove_file(sandbox.path(PAGE)).unwrap();
    sandbox.repro(&["run"]).ok();
    assert_eq!(facts(&sandbox.read(PAGE))["nodes"], facts(&whole_again)["nodes"]);
}

#[test]
fn a_page_after_a_failure_says_what_failed_and_what_it_held_up() {
    let sandbox = project();
    sandbox.run(&[]).ok();
    sandbox.edit("pipeline.yaml", "cp given/verdicts.json verdicts.json", "exit 3");
    sandbox.run(&[]).exits(1);
    let facts = facts(&sandbox.read(PAGE));
    let states = states(&facts);
    assert_eq!(states[3], ("verify".into(), "failed".into()));
    assert_eq!(states[4], ("report".into(), "blocked".into()));
    assert_eq!(facts["nodes"][3]["what"], "the worker ended with exit code 3");
    assert!(sandbox.read(PAGE).contains("claim of E1"), "the last results are still shown");
}

#[test]
fn only_what_changed_is_rendered_again() {
    let sandbox = project();
    sandbox.run(&[]).ok();
    sandbox.write("deviations.md", "# Deviations\n\nOne.\n");
    let run = sandbox.run(&[]).ok();
    assert_eq!(run.nodes("node_done"), ["report"]);
    let facts = facts(&sandbox.read(PAGE));
    assert_eq!(states(&facts)[0].1, "cached");
    assert_eq!(states(&facts)[4].1, "ran");
}

#[test]
fn hostile_text_stays_text_wherever_it_stands() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    let mut claim = verdict("E1", "FAIL", evil);
    for field in ["id", "group", "claim", "paper", "scale", "why", "resolve"] {
        claim[field] = evil.into();
    }
    claim["figures"] = serde_json::json!([evil]);
    claim["tables"] = serde_json::json!([evil]);
    claim["parts"] =
        serde_json::json!([{"name": evil, "rule": evil, "measured": evil, "interval": null, "verdict": "FAIL", "why": evil}]);
    let sandbox = project()
        .with("given/verdicts.json", &verdicts(&[claim]))
        .with("given/figures/energy.json", &serde_json::json!({"title": evil, "caption": evil, "alt": evil, "claims": [evil], "tables": [evil]}).to_string())
        .with("given/figures/energy.svg", "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script><a href='https://evil.example'><text>x</text></a><image href='https://evil.example/x.png'/></svg>")
        .with("given/tables/optima.md", &format!("{evil}\n\n| a |\n|---|\n| {evil} |\n"))
        .with("deviations.md", &format!("{evil} [x](javascript:alert(1)) ![x](https://evil.example/p.png)\n"));
    sandbox.edit("pipeline.yaml", "title: A paper", &format!("title: {}", serde_json::json!(evil)));
    sandbox.edit("pipeline.yaml", "word: quiet", &format!("word: {}", serde_json::json!("'</script><script>alert(1)</script>'")));
    sandbox.run(&[]).ok();
    let page = sandbox.read(PAGE);
    assert!(
        !page.contains("<script>alert") && !page.contains("<img") && !page.contains("onload") && !page.contains("evil.example\"")
    );
    assert_eq!(page.matches("<script").count(), 3, "two scripts and the facts");
    assert_eq!(page.matches("</script>").count(), 3);
    for address in addresses(&page) {
        assert!(address.starts_with('#') || address == "data:,", "the page asks for {address}");
    }
}

#[test]
fn two_thousand_nodes_fit_in_a_page() {
    let sandbox = project();
    let points: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    sandbox.edit("pipeline.yaml", "points: [1, 2, 3]", &format!("points: [{}]", points.join(", ")));
    assert_eq!(sandbox.repro(&["report"]).ok().out, "out/quick/report/index.html\n");
    let page = sandbox.read(PAGE);
    let facts = facts(&page);
    assert_eq!(facts["nodes"].as_array().unwrap().len(), 2002);
    assert_eq!(states(&facts)[7], ("sweep/n7".into(), "stale".into()));
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}

#[test]
fn a_page_can_be_written_at_any_time_and_place() {
    let sandbox = project();
    assert_eq!(sandbox.repro(&["report", "-o", "here.html"]).ok().out, "here.html\n");
    let page = sandbox.read("here.html");
    assert!(page.contains("No claim has been judged yet.") && page.contains("None <strong>so far</strong>."));
    assert_eq!(states(&facts(&page))[4], ("report".into(), "waits".into()));
    assert_eq!(sandbox.repro(&["report", "--json"]).ok().json()["report"], PAGE);
}

#[test]
fn mistakes_are_answered_in_words() {
    let sandbox = project().with("given/verdicts.json", r#"{"verdicts": [{"id": "E1", "verdict": "MAYBE"}]}"#);
    sandbox.run(&[]).exits(1);
    let log = sandbox.repro(&["log", "report"]).ok().out;
    assert!(
        log.ends_with("/in/verdicts/verdicts.json` is not what `verify` writes: unknown variant `MAYBE`, expected one of `PASS`, `FAIL`, `INCONCLUSIVE` at line 1 column 45\n"),
        "{log}"
    );
    let sandbox = project().with("given/figures/energy.svg", "<svg><g></svg>");
    sandbox.run(&[]).exits(1);
    let log = sandbox.repro(&["log", "report"]).ok().out;
    assert!(log.contains("given/figures/energy.svg` is no SVG picture: expected 'g' tag, not 'svg' at 1:9"), "{log}");

    let sandbox = project();
    sandbox.edit("pipeline.yaml", "tables: given/tables", "table: given/tables");
    let error = sandbox.repro(&["plan"]).exits(2).err;
    assert!(error.contains("an input `table` is not read by this kind; did you mean `tables`?"), "{error}");
    let sandbox = project();
    sandbox.edit("pipeline.yaml", "title: A paper", "titel: A paper");
    let error = sandbox.repro(&["plan"]).exits(2).err;
    assert!(error.contains("unknown field `titel`, expected `title`; did you mean `title`?"), "{error}");

    let sandbox = crate::sandbox::Sandbox::new("stages:\n  a: {kind: command, outputs: {x: x}, with: {run: 'echo > x'}}\n");
    for command in ["report", "ui"] {
        assert_eq!(
            sandbox.repro(&[command]).exits(2).err,
            "error: profile `quick` has no stage of kind `report`; add one to pipeline.yaml, as in docs/report.md\n"
        );
    }
}
