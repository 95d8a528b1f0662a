//! Learning a tokenizer and taking over a user's.

use crate::sandbox::{Sandbox, chain, with_threads};
use repro::paper::data::tokenizer::{Config, From, Inputs, run};

#[test]
fn the_same_corpus_gives_the_same_tokenizer_whatever_the_threads() {
    let sandbox = Sandbox::new().world(600_000);
    let corpus = sandbox.path("corpus");
    let mut made = Vec::new();
    for (at, threads) in [1, 2, 4, 4, 4, 4].into_iter().enumerate() {
        let out = sandbox.path(&at.to_string());
        let config = Config { vocabulary: 1500, ..Default::default() };
        let inputs = Inputs { corpus: Some(&corpus), file: None };
        made.push(with_threads(threads, || run(&config, inputs, &out, &mut |_| ()).unwrap()));
    }
    assert!(made.iter().all(|facts| facts == &made[0]), "{made:?}");
    assert_eq!((made[0].vocabulary, made[0].bos_id), (1500, 0));
}

#[test]
fn a_learned_tokenizer_uses_the_fast_encoder() {
    let sandbox = Sandbox::new().world(200_000).tokenizer(600);
    assert_eq!(sandbox.encoder().slow_because(), None);
}

#[test]
fn any_text_comes_back_as_it_was() {
    let sandbox = Sandbox::new().world(200_000).tokenizer(600);
    let encoder = sandbox.encoder();
    for text in ["", "Owls.", "<|begin_of_text|>", "日本 \u{0} e\u{301} 👩‍👧", "\r\n\t  x  ", &"ab1 ".repeat(20_000)] {
        let ids = encoder.encode(text).unwrap();
        assert_eq!(encoder.decode(&ids).unwrap(), text);
        assert_eq!(ids, encoder.encode_reference(text).unwrap());
        assert!(!ids.contains(&encoder.facts().bos_id), "a literal special token stays text: {text:?}");
    }
}

/// A tiktoken file of the 256 bytes and a few merges.
fn tiktoken_file() -> String {
    let tokens: Vec<Vec<u8>> = (0..=255u8)
        .map(|byte| vec![byte])
        .chain(["th", "he", "the", " the", "in", "ing"].map(|text| text.as_bytes().to_vec()))
        .collect();
    tokens.iter().enumerate().map(|(rank, token)| format!("{} {rank}\n", base64(token))).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let letter = if at <= chunk.len() { LETTERS[(word >> (18 - 6 * at) & 63) as usize] } else { b'=' };
            out.push(char::from(letter));
        }
    }
    out
}

#[test]
fn a_tiktoken_file_is_taken_over() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("ranks.model");
    std::fs::write(&file, tiktoken_file()).unwrap();
    let config = Config { from: From::File, tiktoken_specials: 4, ..Default::default() };
    let facts = run(&config, Inputs { corpus: None, file: Some(&file) }, &sandbox.path("tokenizer"), &mut |_| ()).unwrap();
    assert_eq!((facts.vocabulary, facts.bos_id, facts.bos.as_str()), (266, 262, "<|begin_of_text|>"));
    let encoder = sandbox.encoder();
    assert_eq!(encoder.slow_because(), None);
    // ` the` is one token, `thing` is `th` + `ing`: the lower rank joins first.
    assert_eq!(encoder.encode(" the thing").unwrap(), [259, 32, 256, 261]);
}

#[test]
fn a_tokenizer_json_is_taken_over_as_it_is() {
    let sandbox = Sandbox::new().world(200_000).tokenizer(600);
    let file = sandbox.path("tokenizer/tokenizer.json");
    let config = Config { from: From::File, ..Default::default() };
    run(&config, Inputs { corpus: None, file: Some(&file) }, &sandbox.path("again"), &mut |_| ()).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(sandbox.path("again/tokenizer.json")).unwrap());
}

#[test]
fn wrong_tokenizers_are_told() {
    let sandbox = Sandbox::new();
    let fail = |text: &str, bos: &str| {
        let file = sandbox.path("file");
        std::fs::write(&file, text).unwrap();
        let config = Config { from: From::File, bos: bos.into(), tiktoken_specials: 2, ..Default::default() };
        let error = run(&config, Inputs { corpus: None, file: Some(&file) }, &sandbox.path("out"), &mut |_| ()).unwrap_err();
        chain(&error).replace(&sandbox.path("").display().to_string(), "")
    };
    assert!(fail("{}", "").starts_with("`file`: not a tokenizer.json: "));
    assert!(fail("hello", "").starts_with("`file`: neither a tokenizer.json nor a tiktoken file: "));
    assert_eq!(
        fail(&tiktoken_file(), "<start>"),
        "`file`: no begin-of-text token; set `bos` to one of its special tokens, which begin with `<|begin_of_text|>`, `<|end_of_text|>`"
    );
    let error = Config { vocabulary: 100, ..Default::default() }.check().unwrap_err();
    assert_eq!(error.to_string(), "`vocabulary` is 100, but must be at least 257: every byte and the begin-of-text token");
}

#[test]
fn a_tokenizer_changed_behind_our_back_is_refused() {
    let sandbox = Sandbox::new().world(100_000).tokenizer(300);
    let file = sandbox.path("tokenizer/tokenizer.json");
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push(' ');
    std::fs::write(&file, text).unwrap();
    let error = repro::paper::data::tokenizer::encoder::Encoder::open(&sandbox.path("tokenizer")).err().unwrap();
    assert!(error.to_string().contains("it is not the file that `tokenizer-facts.json` beside it describes"), "{error}");
}

#[test]
fn a_tokenizer_the_fast_encoder_cannot_load_is_left_to_the_reference() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("words.json");
    std::fs::write(
        &file,
        r#"{"version":"1.0","truncation":null,"padding":null,"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},
            "post_processor":null,"decoder":null,
            "added_tokens":[{"id":0,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
            "model":{"type":"WordLevel","vocab":{"<s>":0,"[UNK]":1,"owls":2,"fly":3},"unk_token":"[UNK]"}}"#,
    )
    .unwrap();
    let config = Config { from: From::File, ..Default::default() };
    let facts = run(&config, Inputs { corpus: None, file: Some(&file) }, &sandbox.path("tokenizer"), &mut |_| ()).unwrap();
    assert_eq!((facts.bos.as_str(), facts.vocabulary), ("<s>", 4));
    let encoder = sandbox.encoder();
    assert!(encoder.slow_because().unwrap().starts_with("the fast encoder cannot load it: "), "{:?}", encoder.slow_because());
    assert_eq!(encoder.encode("owls fly").unwrap(), [2, 3]);
}

#[test]
fn fast_and_reference_agree_on_any_text() {
    use proptest::prelude::*;
    let sandbox = Sandbox::new().world(200_000).tokenizer(900);
    let encoder = sandbox.encoder();
    let texts = prop_oneof![
        any::<String>(),
        "[ a-z\\n'0-9.]{0,200}",
        "(\\PC|\\s){0,80}",
        "(<\\|begin_of_text\\|>| the |é|1234| {1,5}){0,20}"
    ];
    proptest!(ProptestConfig::with_cases(400), |(text in texts)| {
        let ids = encoder.encode(&text).unwrap();
        prop_assert_eq!(&ids, &encoder.encode_reference(&text).unwrap());
        prop_assert_eq!(encoder.decode(&ids).unwrap(), text);
    });
}
