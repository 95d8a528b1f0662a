//! The loader: every token once per epoch, the same order for everyone, exact resumption, no held-out document.

use crate::sandbox::{Sandbox, chain};
use repro::paper::batch::{Position, TokenSource};
use repro::paper::data::loader::{Loader, Order};
use repro::paper::data::shards::{Shard, Split, shard_files};
use std::collections::HashSet;
use std::path::Path;

const SHUFFLED: Order = Order::Shuffled { seed: 7 };

fn open(shards: &Path, order: Order, readers: usize) -> Loader {
    Loader::open(shards, Split::Train, order, readers).unwrap()
}

/// All documents of a split as lists of ids.
fn documents(shards: &Path, split: Split) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    for file in shard_files(shards, split).unwrap() {
        let shard = Shard::open(&file).unwrap();
        for group in 0..shard.facts.row_groups.len() {
            let (ids, counts) = shard.read(group).unwrap();
            let mut rest = ids.as_slice();
            for count in counts {
                let (document, left) = rest.split_at(count as usize);
                found.push(document.to_vec());
                rest = left;
            }
        }
    }
    found
}

/// So many tokens of the stream, put together from batches of any shape.
fn stream(loader: &mut Loader, tokens: usize, rows: usize, seq_len: usize) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    while found.len() < tokens {
        let batch = loader.next_batch(rows, seq_len).unwrap();
        assert_eq!(batch.tokens.len(), rows * (seq_len + 1));
        for row in batch.tokens.chunks(seq_len + 1) {
            // The first token of a row is the last target of the row before.
            if let Some(last) = found.pop() {
                assert_eq!(last, row[0]);
            }
            found.extend_from_slice(row);
        }
    }
    found.truncate(tokens);
    found
}

#[test]
fn every_training_token_is_seen_once_per_epoch_and_no_held_out_document_leaks() {
    let sandbox = Sandbox::new().world(500_000).tokenizer(600).shards();
    let shards = sandbox.path("shards");
    let mut loader = open(&shards, SHUFFLED, 2);
    let epoch = loader.tokens() as usize;
    let mut expected = documents(&shards, Split::Train);
    expected.sort();
    let heldout: HashSet<Vec<u32>> = documents(&shards, Split::Heldout).into_iter().collect();
    assert!(!heldout.is_empty());
    let two = stream(&mut loader, 2 * epoch, 3, 100);
    let mut orders = Vec::new();
    for tokens in two.chunks(epoch) {
        // Begin-of-text is 0 and stands nowhere but at the start of documents.
        let starts: Vec<usize> = (0..epoch).filter(|&at| tokens[at] == 0).chain([epoch]).collect();
        let mut found: Vec<Vec<u32>> = starts.windows(2).map(|pair| tokens[pair[0]..pair[1]].to_vec()).collect();
        assert!(found.iter().all(|document| !heldout.contains(document)));
        orders.push(found.clone());
        found.sort();
        assert!(found == expected, "an epoch is every document once");
    }
    assert!(orders[0] != orders[1], "each epoch has an order of its own");
}

#[test]
fn two_loaders_made_alike_give_the_same_batches_whatever_the_readers() {
    let sandbox = Sandbox::new().world(300_000).tokenizer(600).shards();
    let shards = sandbox.path("shards");
    let (mut one, mut three) = (open(&shards, SHUFFLED, 1), open(&shards, SHUFFLED, 3));
    for _ in 0..200 {
        assert_eq!(one.next_batch(4, 64).unwrap(), three.next_batch(4, 64).unwrap());
        assert_eq!(one.position(), three.position());
    }
    let mut other = open(&shards, Order::Shuffled { seed: 8 }, 1);
    one.seek(Position::default()).unwrap();
    assert_ne!(one.next_batch(4, 64).unwrap(), other.next_batch(4, 64).unwrap());
}

#[test]
fn a_batch_does_not_depend_on_how_many_rows_were_asked_at_a_time() {
    let sandbox = Sandbox::new().world(200_000).tokenizer(600).shards();
    let shards = sandbox.path("shards");
    let epoch = open(&shards, SHUFFLED, 1).tokens() as usize;
    let whole = stream(&mut open(&shards, SHUFFLED, 1), epoch, 16, 128);
    assert_eq!(whole, stream(&mut open(&shards, SHUFFLED, 2), epoch, 1, 128));
    assert_eq!(whole, stream(&mut open(&shards, SHUFFLED, 2), epoch, 5, 77), "the stream is the same for every length");
}

#[test]
fn a_loader_resumes_exactly_at_any_position() {
    let sandbox = Sandbox::new().world(150_000).tokenizer(600).shards();
    let shards = sandbox.path("shards");
    let mut loader = open(&shards, SHUFFLED, 2);
    let epoch = loader.tokens();
    let batches = (epoch / (3 * 50) * 5 / 2) as usize;
    let mut saved = vec![loader.position()];
    let mut seen = Vec::new();
    for _ in 0..batches {
        seen.push(loader.next_batch(3, 50).unwrap());
        saved.push(loader.position());
    }
    assert!(saved.last().unwrap().epoch >= 2, "{saved:?}");
    assert!(saved.windows(2).all(|pair| (pair[0].epoch, pair[0].sequence) < (pair[1].epoch, pair[1].sequence)));
    for at in (0..batches).step_by(7).chain([batches - 1]) {
        // A fresh process: nothing but the position is carried over.
        let text = serde_json::to_string(&saved[at]).unwrap();
        let mut resumed = open(&shards, SHUFFLED, 1 + at % 3);
        resumed.seek(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(resumed.position(), saved[at]);
        assert_eq!(resumed.next_batch(3, 50).unwrap(), seen[at], "batch {at}");
    }
}

#[test]
fn the_fixed_order_is_that_of_the_shards() {
    let sandbox = Sandbox::new().world(100_000).tokenizer(400).shards();
    let shards = sandbox.path("shards");
    let mut loader = Loader::open(&shards, Split::Heldout, Order::Fixed, 1).unwrap();
    let all = documents(&shards, Split::Heldout).concat();
    assert_eq!(stream(&mut loader, all.len(), 1, 16), all);
    assert_eq!(loader.vocabulary(), 400);
}

#[test]
fn a_corpus_shorter_than_a_sequence_goes_round() {
    let sandbox = Sandbox::new().world(3_000).tokenizer(300).shards();
    let shards = sandbox.path("shards");
    let mut loader = open(&shards, Order::Fixed, 1);
    let epoch = loader.tokens() as usize;
    let long = stream(&mut loader, 5 * epoch, 2, 2 * epoch + 3);
    assert_eq!(long[..epoch], long[3 * epoch..4 * epoch]);
    let at = loader.position();
    let next = loader.next_batch(2, 2 * epoch + 3).unwrap();
    loader.seek(at).unwrap();
    assert_eq!(loader.next_batch(2, 2 * epoch + 3).unwrap(), next);
}

#[test]
fn a_new_length_in_the_middle_of_an_epoch_is_refused() {
    let sandbox = Sandbox::new().world(50_000).tokenizer(300).shards();
    let mut loader = open(&sandbox.path("shards"), SHUFFLED, 1);
    loader.next_batch(1, 32).unwrap();
    let error = loader.next_batch(1, 64).unwrap_err();
    assert_eq!(
        chain(&error),
        "cannot read the next batch: `seq_len` is 64 after batches of 32, but must be the same until the next seek"
    );
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let sandbox = Sandbox::new().world(60_000).tokenizer(300).shards();
    let shards = sandbox.path("shards");
    let name = |error: repro::paper::data::Error| chain(&error).replace(&sandbox.path("").display().to_string(), "");
    let open = |split| Loader::open(&shards, split, Order::Fixed, 1).err().unwrap();

    std::fs::copy(shards.join("heldout/shard-00000.parquet"), shards.join("train/zz.parquet")).unwrap();
    assert!(name(open(Split::Train)).starts_with("`shards/train/zz.parquet`: it holds the heldout split but lies in `train`"));
    std::fs::copy(sandbox.path("corpus/00000.parquet"), shards.join("train/zz.parquet")).unwrap();
    assert!(
        name(open(Split::Train))
            .starts_with("`shards/train/zz.parquet`: no `repro.shard` in its metadata; it is not a token shard")
    );
    let bytes = std::fs::read(shards.join("train/shard-00000.parquet")).unwrap();
    std::fs::write(shards.join("train/zz.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(name(open(Split::Train)).starts_with("`shards/train/zz.parquet`: not a readable Parquet file; it may be cut short"));
    std::fs::remove_dir_all(shards.join("heldout")).unwrap();
    assert_eq!(name(open(Split::Heldout)), "`shards/heldout` holds no token shards; make them with the tokenize step");
}

#[test]
fn a_damaged_row_group_is_an_error_that_names_it() {
    let sandbox = Sandbox::new().world(100_000).tokenizer(300).shards();
    let shards = sandbox.path("shards");
    let file = shards.join("train/shard-00000.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    for byte in &mut bytes[40..4000] {
        *byte ^= 0x5a;
    }
    std::fs::write(&file, bytes).unwrap();
    let mut loader = open(&shards, Order::Fixed, 1);
    let error = chain(&loader.next_batch(4, 512).unwrap_err());
    assert!(error.contains("shard-00000.parquet`, row group 0: cannot decode column"), "{error}");
}
