//! Token shards: what goes in comes out, in order, whatever the threads.

use crate::sandbox::{Sandbox, contents, small_shards, with_threads};
use repro::paper::data::shards::{Shard, Split, shard_files};
use repro::paper::data::tokenize::{self, held_out};
use std::path::Path;

/// Every document of a split: id and ids.
fn documents(shards: &Path, split: Split) -> Vec<(String, Vec<u32>)> {
    let mut found = Vec::new();
    for file in shard_files(shards, split).unwrap() {
        let shard = Shard::open(&file).unwrap();
        for group in 0..shard.facts.row_groups.len() {
            let (ids, counts) = shard.read(group).unwrap();
            let mut start = 0;
            for (doc_id, count) in shard.read_doc_ids(group).unwrap().into_iter().zip(counts) {
                found.push((doc_id, ids[start..start + count as usize].to_vec()));
                start += count as usize;
            }
        }
    }
    found
}

#[test]
fn shards_decode_to_the_exact_source_and_nothing_is_lost() {
    let sandbox = Sandbox::new().world(600_000).tokenizer(600).shards();
    let encoder = sandbox.encoder();
    let source = sandbox.documents("corpus");
    let (train, heldout) = (documents(&sandbox.path("shards"), Split::Train), documents(&sandbox.path("shards"), Split::Heldout));
    assert_eq!(train.len() + heldout.len(), source.len());
    let (mut train, mut heldout) = (train.into_iter(), heldout.into_iter());
    for (id, text) in source {
        let id = id.unwrap();
        let (found_id, ids) = if held_out(&id, 20) { heldout.next() } else { train.next() }.unwrap();
        assert_eq!(found_id, id);
        assert_eq!(ids[0], encoder.facts().bos_id);
        assert_eq!(encoder.decode(&ids[1..]).unwrap(), text);
    }
}

#[test]
fn one_and_four_threads_write_the_same_shards() {
    let sandbox = Sandbox::new().world(600_000).tokenizer(600);
    for threads in [1, 4, 3] {
        with_threads(threads, || sandbox.tokenize(&small_shards(), &threads.to_string())).unwrap();
    }
    let one = contents(&sandbox.path("1"));
    assert!(one.len() > 4, "several shards: {:?}", one.iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert!(one == contents(&sandbox.path("4")), "4 threads differ");
    assert!(one == contents(&sandbox.path("3")), "3 threads differ");
}

#[test]
fn the_summary_adds_up() {
    let sandbox = Sandbox::new().world(300_000).tokenizer(600);
    let summary = sandbox.tokenize(&small_shards(), "shards").unwrap();
    let source = sandbox.documents("corpus");
    assert_eq!(summary.bytes, source.iter().map(|(_, text)| text.len() as u64).sum::<u64>());
    assert_eq!(summary.train.documents + summary.heldout.documents, source.len() as u64);
    assert!(summary.heldout.documents > 0 && summary.heldout.documents * 8 < summary.train.documents);
    let read: tokenize::Summary =
        serde_json::from_str(&std::fs::read_to_string(sandbox.path("shards/summary.json")).unwrap()).unwrap();
    assert_eq!(read, summary);
    for (split, told) in [(Split::Train, &summary.train), (Split::Heldout, &summary.heldout)] {
        let tokens: u64 = documents(&sandbox.path("shards"), split).iter().map(|(_, ids)| ids.len() as u64).sum();
        assert_eq!(tokens, told.tokens);
    }
}

#[test]
fn no_held_out_documents_when_none_are_wanted() {
    let sandbox = Sandbox::new().world(100_000).tokenizer(300);
    let summary = sandbox.tokenize(&tokenize::Config { held_out: 0, ..small_shards() }, "shards").unwrap();
    assert_eq!(summary.heldout.documents, 0);
    assert!(contents(&sandbox.path("shards/heldout")).is_empty());
}

#[test]
fn the_reference_writes_the_same_shards_as_the_fast_encoder() {
    let sandbox = Sandbox::new().world(150_000).tokenizer(600).shards();
    let mut encoder = sandbox.encoder();
    encoder.use_reference();
    tokenize::run_with(&small_shards(), &mut encoder, &sandbox.path("corpus"), &sandbox.path("slow"), &mut |_| ()).unwrap();
    for split in ["train", "heldout"] {
        assert!(contents(&sandbox.path("shards").join(split)) == contents(&sandbox.path("slow").join(split)), "{split}");
    }
}

#[test]
fn a_shorter_run_into_the_same_folder_leaves_nothing_of_the_longer_one() {
    let sandbox = Sandbox::new().world(200_000).tokenizer(300).shards();
    let config = tokenize::Config { shard_tokens: 10_000_000, ..small_shards() };
    sandbox.tokenize(&config, "shards").unwrap();
    assert_eq!(shard_files(&sandbox.path("shards"), Split::Train).unwrap().len(), 1);
}
