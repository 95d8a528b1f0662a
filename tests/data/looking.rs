//! `repro data head` and `repro data stats`, as a user runs them.

use crate::sandbox::Sandbox;
use std::process::{Command, Output};

fn repro(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_repro")).arg("data").args(arguments).current_dir(sandbox.path("")).output().unwrap()
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn head_shows_documents_and_decodes_shards_back_to_them() {
    let sandbox = Sandbox::new().world(60_000).tokenizer(300).shards();
    let source = sandbox.documents("corpus");
    let text = told(&repro(&sandbox, &["head", "corpus", "-n", "2", "--chars", "0"]));
    assert!(text.contains(&source[0].1) && text.contains(&source[1].1) && !text.contains(&source[2].1));
    let json = told(&repro(&sandbox, &["head", "shards/train", "--tokenizer", "tokenizer", "--json", "--chars", "0", "-n", "1"]));
    let shown: serde_json::Value = serde_json::from_str(&json).unwrap();
    let id = shown[0]["id"].as_str().unwrap();
    let (_, text) = source.iter().find(|(found, _)| found.as_deref() == Some(id)).unwrap();
    assert_eq!(shown[0]["text"].as_str().unwrap(), text);
    let bare = told(&repro(&sandbox, &["head", "shards/train", "-n", "1"]));
    assert!(bare.contains("give --tokenizer to decode it"), "{bare}");
}

#[test]
fn stats_tell_of_text_and_of_tokens() {
    let sandbox = Sandbox::new().world(300_000).tokenizer(400).shards();
    let text: serde_json::Value = serde_json::from_str(&told(&repro(&sandbox, &["stats", "corpus", "--json"]))).unwrap();
    assert_eq!(text["kind"], "text");
    assert_eq!(text["documents"], sandbox.documents("corpus").len());
    let bits: Vec<f64> =
        text["byte_entropies"].as_array().unwrap().iter().map(|entropy| entropy["bits"].as_f64().unwrap()).collect();
    assert!(bits[0] > bits[1] + 0.5 && bits[1] > bits[2] + 0.3, "context helps: {bits:?}");
    let tokens: serde_json::Value =
        serde_json::from_str(&told(&repro(&sandbox, &["stats", "shards/train", "--tokenizer", "tokenizer", "--json"]))).unwrap();
    assert_eq!((tokens["kind"].as_str(), tokens["vocabulary"].as_u64()), (Some("tokens"), Some(400)));
    assert!(told(&repro(&sandbox, &["stats", "shards/heldout"])).starts_with("documents  "));
}

#[test]
fn wrong_input_is_told_with_exit_code_2() {
    let sandbox = Sandbox::new().world(30_000).tokenizer(300).shards();
    let fail = |arguments: &[&str]| {
        let output = repro(&sandbox, arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    };
    assert_eq!(
        fail(&["head", "nowhere"]),
        (Some(2), "error: cannot read `nowhere`: No such file or directory (os error 2)".into())
    );
    assert_eq!(
        fail(&["head", "corpus", "--text-column", "body"]).1,
        "error: `corpus/00000.parquet`: no column `body`; its columns are `text`, `id`, `dump`, `url`, `file_path`, `language`, \
         `language_score`, `token_count`, `score`, `int_score`"
    );
    assert_eq!(fail(&["stats"]).0, Some(2));
    std::fs::write(sandbox.path("x.parquet"), "not parquet").unwrap();
    let (code, text) = fail(&["stats", "x.parquet"]);
    assert_eq!(code, Some(2));
    assert!(
        text.starts_with("error: `x.parquet`: not a readable Parquet file; it may be cut short: fetch or write it again: "),
        "{text}"
    );
}
