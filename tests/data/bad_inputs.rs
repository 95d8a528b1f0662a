//! Input that is not as it should be: counted where a document is at fault, an error that names the place where a file is.

use crate::sandbox::{Sandbox, chain, ints, small_shards, write_bytes, write_columns, write_texts};
use repro::paper::data::tokenize;

/// A sandbox with a tokenizer and an empty corpus folder to fill.
fn ready() -> Sandbox {
    let sandbox = Sandbox::new().world(100_000).tokenizer(300);
    std::fs::remove_dir_all(sandbox.path("corpus")).unwrap();
    sandbox
}

fn fail(sandbox: &Sandbox, config: &tokenize::Config) -> String {
    let error = sandbox.tokenize(config, "out").unwrap_err();
    chain(&error).replace(&sandbox.path("").display().to_string(), "")
}

#[test]
fn nulls_and_empty_documents_are_counted() {
    let sandbox = ready();
    let texts =
        [(Some("a"), Some("one")), (Some("b"), None), (Some("c"), Some("")), (None, Some("two")), (Some("e"), Some("three"))];
    write_texts(&sandbox.path("corpus/x.parquet"), &texts, 2);
    let summary = sandbox.tokenize(&small_shards(), "out").unwrap();
    assert_eq!(summary.train.documents + summary.heldout.documents, 3);
    assert_eq!(summary.rejects.told(), "1 empty, 1 null text");
    assert_eq!(summary.ids_made, 1);
    // No path of this machine: the examples go into the output.
    assert_eq!(summary.rejects.examples, ["x.parquet, row group 0, row 1: null text", "x.parquet, row group 1, row 0: empty"]);
}

#[test]
fn invalid_utf8_rejects_one_document_and_not_its_neighbours() {
    let sandbox = ready();
    write_bytes(&sandbox.path("corpus/x.parquet"), &[b"fine", b"not \xff fine", b"fine too"], 10);
    let summary = sandbox.tokenize(&small_shards(), "out").unwrap();
    assert_eq!(summary.train.documents + summary.heldout.documents, 2);
    assert_eq!(summary.rejects.told(), "1 invalid UTF-8");
}

#[test]
fn a_corpus_of_nothing_but_nulls_is_an_error() {
    let sandbox = ready();
    write_texts(&sandbox.path("corpus/x.parquet"), &[(Some("a"), None), (Some("b"), None)], 10);
    assert_eq!(fail(&sandbox, &small_shards()), "all 2 documents were rejected (2 null text); check the text column");
}

#[test]
fn a_missing_column_is_named_with_those_there_are() {
    let sandbox = ready();
    write_columns(&sandbox.path("corpus/x.parquet"), &[("body", ints(3)), ("score", ints(3))], 10);
    assert_eq!(fail(&sandbox, &small_shards()), "`corpus/x.parquet`: no column `text`; its columns are `body`, `score`");
    let config = tokenize::Config { text_column: "body".into(), ..small_shards() };
    assert_eq!(fail(&sandbox, &config), "`corpus/x.parquet`: column `body` holds INT64, not text");
}

#[test]
fn a_corpus_without_ids_can_be_split_by_its_texts() {
    let sandbox = ready();
    let texts: arrow::array::ArrayRef = std::sync::Arc::new(arrow::array::StringArray::from(vec!["one", "two"]));
    write_columns(&sandbox.path("corpus/x.parquet"), &[("text", texts)], 10);
    assert_eq!(fail(&sandbox, &small_shards()), "`corpus/x.parquet`: no column `id`; its columns are `text`");
    let summary = sandbox.tokenize(&tokenize::Config { id_column: String::new(), ..small_shards() }, "out").unwrap();
    assert_eq!(summary.ids_made, 2);
}

#[test]
fn a_file_cut_short_is_an_error_that_names_it() {
    let sandbox = Sandbox::new().world(100_000).tokenizer(300);
    let file = sandbox.path("corpus/00001.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 100]).unwrap();
    assert!(
        fail(&sandbox, &small_shards()).starts_with("`corpus/00001.parquet`: not a readable Parquet file; it may be cut short")
    );
    std::fs::write(&file, b"").unwrap();
    assert!(fail(&sandbox, &small_shards()).starts_with("`corpus/00001.parquet`: not a readable Parquet file"));
}

#[test]
fn a_damaged_row_group_is_an_error_that_names_it() {
    let sandbox = Sandbox::new().world(100_000).tokenizer(300);
    let file = sandbox.path("corpus/00002.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    for byte in &mut bytes[60..2000] {
        *byte = 0x77;
    }
    std::fs::write(&file, bytes).unwrap();
    let told = fail(&sandbox, &small_shards());
    assert!(
        told.starts_with("`corpus/00002.parquet`, row group 0: cannot decode column `text`; fetch or write the file again"),
        "{told}"
    );
}

#[test]
fn settings_out_of_range_are_told() {
    let check = |config: tokenize::Config| config.check().unwrap_err().to_string();
    assert_eq!(
        check(tokenize::Config { held_out: 1, ..Default::default() }),
        "`held_out` is 1, but must be 0 or at least 2: 1 would hold out every document"
    );
    assert_eq!(
        check(tokenize::Config { shard_tokens: 10, ..Default::default() }),
        "`shard_tokens` is 10, but must be at least `row_group_tokens`"
    );
    let error = serde_json::from_str::<tokenize::Config>(r#"{"held_uot": 5}"#).unwrap_err();
    assert!(
        error.to_string().starts_with("unknown field `held_uot`, expected one of `text_column`, `id_column`, `held_out`"),
        "{error}"
    );
}

/// Reads a damaged file to its end, or to its first error.
fn read_all(path: &std::path::Path) {
    use repro::paper::data::rows::{Columns, Rows};
    use repro::paper::data::shards::Shard;
    if let Ok(mut rows) = Rows::open(path, &Columns { text: "text".into(), id: Some("id".into()) }) {
        while let Ok(Some(_)) = rows.next(1 << 16) {}
    }
    if let Ok(shard) = Shard::open(path) {
        for group in 0..shard.facts.row_groups.len() {
            let _ = (shard.read(group), shard.read_doc_ids(group));
        }
    }
}

#[test]
fn a_file_damaged_anywhere_never_panics() {
    let sandbox = Sandbox::new().world(30_000).tokenizer(300).shards();
    for source in ["corpus/00000.parquet", "shards/train/shard-00000.parquet"] {
        let whole = std::fs::read(sandbox.path(source)).unwrap();
        let damaged = sandbox.path("damaged.parquet");
        let mut random = repro::paper::data::random::Random::new(&[5]);
        for _ in 0..600 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(8) {
                // The end of a Parquet file says where everything is, so half of the damage is done there.
                let from = if random.chance(0.5) { bytes.len().saturating_sub(3000) } else { 0 };
                let at = from + random.below(bytes.len() - from);
                bytes[at] ^= 1 << random.below(8);
            }
            std::fs::write(&damaged, bytes).unwrap();
            read_all(&damaged);
        }
    }
}
