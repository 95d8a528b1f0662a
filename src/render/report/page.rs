//! The page around the sections: head, policy, styles, scripts, and the place where the facts of a run are written in.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::verdicts;
use super::{Content, figures, markdown, tables};

const STYLE: &str = include_str!("page.css");
/// Theme, filter, hover: what works on the page as it stands.
const SCRIPT: &str = include_str!("page.js");
/// Nodes, keys, costs: what shows the facts of a run, and follows one while it goes on.
const RUN_SCRIPT: &str = include_str!("run.js");

const FACTS_OPEN: &str = "<script type=\"application/json\" id=\"facts\">";
const FACTS_CLOSE: &str = "</script>";

/// The page for a content, without the facts of a run. The same content gives the same bytes.
pub fn page(content: &Content) -> String {
    document(&content.title, &main_part(content), &run_part())
}

/// Only what follows from the content: what a live page swaps in when new results are there.
pub fn main_part(content: &Content) -> Markup {
    html! {
        header .title {
            p .kicker { "A reproduction, claim by claim" }
            h1 { (content.title) }
            (verdicts::summary(&content.verdicts))
            p #run-line .quiet {}
        }
        (verdicts::section(&content.verdicts))
        (figures::section(&content.figures, &content.verdicts))
        (tables::section(&content.tables))
        @if !content.deviations.trim().is_empty() {
            section #deviations aria-labelledby="deviations-title" {
                h2 #deviations-title { "Deviations" }
                div .prose tabindex="0" role="group" aria-label="Where this differs from the paper" { (PreEscaped(markdown::html(strip_title(&content.deviations)))) }
            }
        }
    }
}

/// The file's own title says what the section's heading says.
fn strip_title(text: &str) -> &str {
    let text = text.trim_start();
    if text.starts_with("# ") { text.split_once('\n').map_or("", |(_, rest)| rest) } else { text }
}

/// What the scripts fill in.
fn run_part() -> Markup {
    html! {
        section #now aria-labelledby="now-title" hidden { h2 #now-title { "Now" } div .body {} }
        section #pipeline aria-labelledby="pipeline-title" {
            h2 #pipeline-title { "Pipeline" }
            div .body { p .quiet { "How the nodes stand is written into this page at the end of a run, by " code { "repro run" } " or " code { "repro report" } "." } }
        }
        section #costs aria-labelledby="costs-title" hidden { h2 #costs-title { "Costs" } div .body {} }
    }
}

/// A page without a pipeline of its own.
pub fn plain_document(title: &str, body: &Markup) -> String {
    document(title, body, &html! {})
}

fn document(title: &str, main: &Markup, run: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // Nothing is loaded from anywhere; only the two scripts of this page run, none that an input brought along.
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) ": verdicts" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                a .skip href="#verdicts" { "Skip to the verdicts" }
                nav aria-label="Sections" {
                    div {
                        a href="#verdicts" { "Verdicts" }
                        a href="#figures" { "Figures" }
                        a href="#tables" { "Tables" }
                        a href="#deviations" { "Deviations" }
                        a href="#pipeline" { "Pipeline" }
                        a href="#costs" { "Costs" }
                        span #live-mark hidden { "live" }
                        button #theme type="button" title="Light, dark, or as the system says" { "Theme: auto" }
                    }
                }
                main {
                    div #content { (main) }
                    (run)
                }
                footer { p { "Made by " code { "repro" } ". This page holds all it shows and asks the network for nothing." } }
                div #tip role="status" hidden {}
                (PreEscaped(FACTS_OPEN)) "null" (PreEscaped(FACTS_CLOSE))
                script { (PreEscaped(SCRIPT)) }
                script { (PreEscaped(RUN_SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// `connect-src 'self'` lets a page served by `repro ui` ask its own server; opened from disk there is no such server.
fn policy() -> String {
    let hash = |script: &str| {
        use sha2::Digest as _;
        format!("'sha256-{}'", base64(&sha2::Sha256::digest(script.as_bytes())))
    };
    format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {} {}; connect-src 'self'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(RUN_SCRIPT)
    )
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            out.push(if place <= chunk.len() { LETTERS[(word >> (18 - 6 * place) & 63) as usize] as char } else { '=' });
        }
    }
    out
}

/// Writes the facts of a run into a page. A page that has facts gets the new ones instead.
pub fn complete(page: &str, facts: &Value) -> Option<String> {
    let start = page.rfind(FACTS_OPEN)? + FACTS_OPEN.len();
    let end = start + page[start..].find(FACTS_CLOSE)?;
    // `<` as an escape: no text among the facts can end the element.
    let json = serde_json::to_string(facts).expect("facts are plain data").replace('<', "\\u003c");
    let mut out = String::with_capacity(page.len() + json.len());
    out.push_str(&page[..start]);
    out.push_str(&json);
    out.push_str(&page[end..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in pairs {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn facts_cannot_leave_their_element_and_can_be_replaced() {
        let page = page(&Content { title: "t".into(), ..Content::default() });
        let facts = serde_json::json!({"node": "</script><script>alert(1)</script>"});
        let once = complete(&page, &facts).unwrap();
        assert_eq!(once.matches("</script>").count(), page.matches("</script>").count());
        assert_eq!(complete(&once, &Value::Null).unwrap(), page);
        assert_eq!(complete("no page of ours", &facts), None);
    }
}
