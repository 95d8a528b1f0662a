//! Reads a tiktoken ranks file (`base64-of-token rank` per line) and restates it as a `tokenizer.json`,
//! so that everything downstream knows one format.

use super::BOS;
use super::train::WORDS;
use serde_json::json;
use std::collections::HashMap;

/// The text of the `tokenizer.json`. The ranks get Llama-3's rule for words and `specials` special tokens after them.
pub fn to_json(file: &[u8], specials: usize) -> Result<Vec<u8>, String> {
    let text = std::str::from_utf8(file).map_err(|_| "neither a tokenizer.json nor a tiktoken file: not text".to_owned())?;
    let mut ranks = fastokens::tiktoken::parse_tiktoken_model(text)
        .map_err(|error| format!("neither a tokenizer.json nor a tiktoken file: {error}"))?;
    ranks.sort_by_key(|(_, rank)| *rank);
    if let Some((at, (_, rank))) = ranks.iter().enumerate().find(|(at, (_, rank))| *at as u32 != *rank) {
        return Err(format!("the ranks of a tiktoken file must count up from 0, but {at} is missing before {rank}"));
    }
    let by_token: HashMap<&[u8], u32> = ranks.iter().map(|(token, rank)| (token.as_slice(), *rank)).collect();
    if by_token.len() != ranks.len() {
        return Err("a token occurs twice in the tiktoken file".into());
    }
    if let Some(byte) = (0..=255u8).find(|&byte| !by_token.contains_key([byte].as_slice())) {
        return Err(format!("the tiktoken file has no token for byte {byte}, so some texts could not be encoded"));
    }

    let letters = byte_letters();
    let spell = |token: &[u8]| token.iter().map(|&byte| letters[byte as usize]).collect::<String>();
    let mut vocabulary = serde_json::Map::with_capacity(ranks.len());
    let mut merges: Vec<[String; 2]> = Vec::new();
    for (token, rank) in &ranks {
        vocabulary.insert(spell(token), json!(rank));
        // tiktoken joins any two neighbours that make up a token, so every way to cut the token in two is a merge of its rank.
        let mut cuts: Vec<(u32, u32, usize)> =
            (1..token.len()).filter_map(|at| Some((*by_token.get(&token[..at])?, *by_token.get(&token[at..])?, at))).collect();
        cuts.sort_unstable();
        merges.extend(cuts.into_iter().map(|(_, _, at)| [spell(&token[..at]), spell(&token[at..])]));
    }
    let added: Vec<serde_json::Value> = (0..specials)
        .map(|at| {
            let content = match at {
                0 => BOS.to_owned(),
                1 => "<|end_of_text|>".to_owned(),
                _ => format!("<|reserved_special_token_{}|>", at - 2),
            };
            json!({
                "id": ranks.len() + at, "content": content, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false, "special": true,
            })
        })
        .collect();
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        // tiktoken takes a word that is a token as it is, without merging up to it.
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": true, "vocab": vocabulary, "merges": merges},
    });
    Ok(serde_json::to_vec(&tokenizer).expect("a tokenizer is plain data"))
}

/// The printable letter that stands for each byte in a byte-level vocabulary: printable Latin-1 for itself, the rest from U+0100 on.
fn byte_letters() -> Vec<char> {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut others = 0;
    (0..=255u8)
        .map(|byte| {
            if plain(byte) {
                return char::from(byte);
            }
            others += 1;
            char::from_u32(0xff + others).expect("the letters after U+00FF are assigned")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    #[test]
    fn the_letters_of_bytes_are_those_of_the_reference() {
        let mut ours = byte_letters();
        let mut theirs: Vec<char> = ByteLevel::alphabet().into_iter().collect();
        assert_eq!((ours[b' ' as usize], ours[b'\n' as usize]), ('Ġ', 'Ċ'));
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn a_file_that_is_neither_format_says_so() {
        for (bytes, told) in [
            (b"hello world".as_slice(), "neither a tokenizer.json nor a tiktoken file"),
            (b"\xff\xfe", "not text"),
            (b"YQ== 0\nYg== 2\n", "must count up from 0, but 1 is missing before 2"),
            (b"YQ== 0\nYg== 1\n", "no token for byte 0"),
        ] {
            let error = to_json(bytes, 4).expect_err("these are no tokenizers");
            assert!(error.contains(told), "{error}");
        }
    }
}
