//! The built-in corpus, and a user's own folder.

use crate::sandbox::{Sandbox, chain, contents, documents, with_threads, write_texts};
use repro::paper::data::corpus::{Config, From, Inputs, run};
use std::collections::HashSet;

fn small() -> Config {
    Config { bytes: 400_000, people: 200, file_bytes: 150_000, ..Default::default() }
}

#[test]
fn one_and_four_threads_write_the_same_bytes() {
    let sandbox = Sandbox::new();
    for threads in [1, 4] {
        let out = sandbox.path(&threads.to_string());
        with_threads(threads, || run(&small(), Inputs::default(), &out, &mut |_| ())).unwrap();
    }
    assert_eq!(contents(&sandbox.path("1")), contents(&sandbox.path("4")));
}

#[test]
fn a_longer_corpus_begins_with_the_shorter_one() {
    let sandbox = Sandbox::new();
    run(&small(), Inputs::default(), &sandbox.path("short"), &mut |_| ()).unwrap();
    run(&Config { bytes: 600_000, ..small() }, Inputs::default(), &sandbox.path("long"), &mut |_| ()).unwrap();
    let (short, long) = (sandbox.documents("short"), sandbox.documents("long"));
    assert_eq!(short[..], long[..short.len()]);
}

#[test]
fn the_columns_are_those_of_fineweb_edu() {
    let sandbox = Sandbox::new().world(50_000);
    let file = std::fs::File::open(sandbox.path("corpus/00000.parquet")).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let columns: Vec<String> =
        reader.schema().fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
    assert_eq!(
        columns,
        [
            "text: Utf8",
            "id: Utf8",
            "dump: Utf8",
            "url: Utf8",
            "file_path: Utf8",
            "language: Utf8",
            "language_score: Float64",
            "token_count: Int64",
            "score: Float64",
            "int_score: Int64",
        ]
    );
}

#[test]
fn documents_and_their_ids_do_not_repeat() {
    let sandbox = Sandbox::new().world(2_000_000);
    let all = sandbox.documents("corpus");
    let ids: HashSet<&str> = all.iter().map(|(id, _)| id.as_deref().unwrap()).collect();
    let texts: HashSet<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(ids.len(), all.len());
    assert_eq!(texts.len(), all.len());
}

#[test]
fn a_folder_of_texts_lines_and_rows_becomes_one_corpus() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("mine");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(folder.join("a.txt"), "first\ntext").unwrap();
    std::fs::write(folder.join("b.jsonl"), "{\"text\":\"second\",\"id\":\"two\"}\n\n{\"text\":\"\"}\n{\"text\":null}\n").unwrap();
    std::fs::write(folder.join("notes.pdf"), "not a text").unwrap();
    std::fs::write(folder.join("z.txt"), b"\xff\xfe").unwrap();
    write_texts(&folder.join("sub/c.parquet"), &[(Some("three"), Some("third")), (None, None)], 10);
    let config = Config { from: From::Folder, bytes: 0, ..Default::default() };
    let summary = run(&config, Inputs { folder: Some(&folder) }, &sandbox.path("out"), &mut |_| ()).unwrap();
    assert_eq!((summary.documents, summary.bytes), (3, 21));
    assert_eq!(summary.rejects.told(), "1 empty, 1 invalid UTF-8, 2 null text");
    let found = documents(&sandbox.path("out"));
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["first\ntext", "second", "third"]);
    assert_eq!(found[1].0.as_deref(), Some("two"));
    assert_eq!(found[2].0.as_deref(), Some("three"));
}

#[test]
fn a_folder_that_moved_gives_the_same_corpus() {
    let sandbox = Sandbox::new();
    for place in ["here", "there"] {
        let folder = sandbox.path(place);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), "some text").unwrap();
        let config = Config { from: From::Folder, ..Default::default() };
        run(&config, Inputs { folder: Some(&folder) }, &sandbox.path(&format!("{place}-out")), &mut |_| ()).unwrap();
    }
    assert_eq!(contents(&sandbox.path("here-out")), contents(&sandbox.path("there-out")));
}

#[test]
fn wrong_folders_are_told() {
    let sandbox = Sandbox::new();
    let config = Config { from: From::Folder, ..Default::default() };
    let fail = |folder: Option<&std::path::Path>| {
        let error = run(&config, Inputs { folder }, &sandbox.path("out"), &mut |_| ()).unwrap_err();
        chain(&error).replace(&sandbox.path("").display().to_string(), "")
    };
    assert_eq!(fail(None), "`folder` is needed when `from: folder`; name the folder of texts as the step's input");
    std::fs::create_dir_all(sandbox.path("empty")).unwrap();
    assert_eq!(fail(Some(&sandbox.path("empty"))), "`empty` holds no texts; it should hold .txt, .md, .jsonl or .parquet files");
    assert_eq!(fail(Some(&sandbox.path("nowhere"))), "cannot read `nowhere`: No such file or directory (os error 2)");
    std::fs::create_dir_all(sandbox.path("lines")).unwrap();
    std::fs::write(sandbox.path("lines/a.jsonl"), "{\"text\":\"fine\"}\n{\"body\":\"x\"}\n").unwrap();
    assert_eq!(
        fail(Some(&sandbox.path("lines"))),
        "`lines/a.jsonl`, line 2: no field `text`; set `text_column` to the field that holds the text"
    );
    std::fs::write(sandbox.path("lines/a.jsonl"), "{\"text\":\"cut sho").unwrap();
    assert!(fail(Some(&sandbox.path("lines"))).starts_with("`lines/a.jsonl`, line 1: not JSON: EOF while parsing a string"));
}
