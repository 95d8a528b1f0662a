//! Markdown to HTML that cannot do harm: raw HTML is shown as text, and nothing leads or loads from outside the page.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Headings start below the page's own: `#` becomes `<h3>`.
pub fn html(text: &str) -> String {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    // The addresses of open links, to be said after their text.
    let mut links: Vec<Option<CowStr>> = Vec::new();
    let mut events = Vec::new();
    for event in parser {
        match event {
            Event::Html(raw) | Event::InlineHtml(raw) => events.push(Event::Text(raw)),
            Event::Start(Tag::Link { dest_url, link_type, title, id }) => {
                if dest_url.starts_with('#') {
                    events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                    links.push(None);
                } else {
                    links.push(Some(dest_url));
                }
            }
            Event::End(TagEnd::Link) => match links.pop().flatten() {
                Some(address) => events.push(Event::Text(format!(" ({address})").into())),
                None => events.push(event),
            },
            // A picture is named, not loaded.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            Event::Start(Tag::Heading { level, .. }) => {
                events.push(Event::Start(Tag::Heading { level: lower(level), id: None, classes: Vec::new(), attrs: Vec::new() }));
            }
            Event::End(TagEnd::Heading(level)) => events.push(Event::End(TagEnd::Heading(lower(level)))),
            other => events.push(other),
        }
    }
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events.into_iter());
    // A heading that says nothing is a corner of the table.
    out.replace("<th></th>", "<td></td>")
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        _ => HeadingLevel::H5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_html_is_text_and_outside_links_are_words() {
        let out = html(
            "# A\n\n<script>alert(1)</script> <b onclick=x>b</b>\n\n[here](https://evil.example/) ![p](http://x/y.png) [in](#verdicts)",
        );
        assert!(!out.contains("<script") && !out.contains("<b ") && !out.contains("<img"), "{out}");
        assert!(!out.contains("href=\"http"), "{out}");
        assert!(out.contains("here (https://evil.example/)"), "{out}");
        assert!(out.contains("<a href=\"#verdicts\">in</a>"), "{out}");
        assert!(out.contains("<h3>A</h3>"), "{out}");
    }

    #[test]
    fn a_link_of_another_scheme_is_words_too() {
        assert!(!html("[x](javascript:alert(1))").contains("<a"));
    }
}
