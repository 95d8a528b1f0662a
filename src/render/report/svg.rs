//! Takes an SVG file into a page: only drawing elements, nothing that runs or loads, and ids that no other picture has.

use crate::render::chart::svg::escape;
use roxmltree::{Document, Error, Node, NodeType, ParsingOptions};

/// Elements that draw. Everything else is left out with all it holds.
const DRAWING: [&str; 25] = [
    "svg",
    "g",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "text",
    "tspan",
    "textPath",
    "title",
    "desc",
    "defs",
    "clipPath",
    "mask",
    "linearGradient",
    "radialGradient",
    "stop",
    "pattern",
    "marker",
    "symbol",
    "use",
    "style",
];

/// Letters that are right in a column of a paper are small on a screen.
const ON_SCREEN: f64 = 1.5;

fn natural_width(root: Node) -> Option<f64> {
    let written = root.attribute("width").and_then(|width| width.trim_end_matches("px").parse().ok());
    let width: f64 =
        written.or_else(|| root.attribute("viewBox")?.split([' ', ',']).filter(|part| !part.is_empty()).nth(2)?.parse().ok())?;
    width.is_finite().then_some(width)
}

/// The picture as an element of a page. `name` sets its ids apart, `alt` is read aloud.
pub fn inline(text: &str, name: &str, alt: &str) -> Result<String, Error> {
    let document = Document::parse_with_options(text, ParsingOptions { allow_dtd: true, nodes_limit: 4_000_000 })?;
    let mut out = String::with_capacity(text.len());
    write(document.root_element(), name, Some(alt), &mut out);
    Ok(out)
}

fn write(node: Node, name: &str, alt: Option<&str>, out: &mut String) {
    match node.node_type() {
        NodeType::Text => return out.push_str(&escape(node.text().unwrap_or_default())),
        NodeType::Element => {}
        _ => return,
    }
    let tag = node.tag_name().name();
    if !DRAWING.contains(&tag) {
        return;
    }
    if tag == "style" && !harmless_style(node.text().unwrap_or_default()) {
        return;
    }
    out.push('<');
    out.push_str(tag);
    for attribute in node.attributes() {
        let (key, value) = (attribute.name(), attribute.value());
        if alt.is_some() && matches!(key, "aria-label" | "role" | "aria-labelledby" | "width" | "height" | "style") {
            continue;
        }
        if let Some(value) = kept(key, value, name) {
            out.push(' ');
            out.push_str(key);
            out.push_str("=\"");
            out.push_str(&escape(&value));
            out.push('"');
        }
    }
    if let Some(alt) = alt {
        out.push_str(" role=\"img\" aria-label=\"");
        out.push_str(&escape(alt));
        out.push('"');
        if let Some(width) = natural_width(node) {
            out.push_str(&format!(" style=\"width:{:.1}rem\"", width * ON_SCREEN / 16.0));
        }
    }
    out.push('>');
    for child in node.children() {
        // The root's title would show as a hint over the whole picture, and its label says the same; a mark's says what its
        // `data-tip` says.
        let said = alt.is_some() || node.attribute("data-tip").is_some();
        if said && child.tag_name().name() == "title" {
            continue;
        }
        if tag == "style" {
            // Nested, so that its rules reach this picture and no other part of the page.
            let rules = child.text().unwrap_or_default().replace('<', " ");
            out.push_str(&format!("[data-figure=\"{}\"] svg{{{rules}}}", name.replace(['"', '\\'], "")));
        } else {
            write(child, name, None, out);
        }
    }
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}

/// A style sheet that loads nothing and closes what it opens can be kept.
fn harmless_style(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut depth = 0i32;
    let balanced = text.chars().all(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth >= 0
    });
    if !balanced || depth != 0 {
        return false;
    }
    !["@import", "url(", "http:", "https:", "expression", "</"].iter().any(|word| lower.contains(word))
}

/// The value an attribute may have in a page, or nothing.
fn kept(key: &str, value: &str, name: &str) -> Option<String> {
    let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !plain || key.to_ascii_lowercase().starts_with("on") || key == "tabindex" {
        return None;
    }
    let lower = value.to_ascii_lowercase();
    match key {
        "id" => Some(format!("{name}-{value}")),
        "href" => value.strip_prefix('#').map(|id| format!("#{name}-{id}")),
        "data-tip" | "aria-label" => Some(value.to_string()),
        "style" if lower.contains("http:") || lower.contains("https:") || lower.contains("@import") => None,
        _ if lower.contains("javascript:") => None,
        _ if lower.contains("url(") => value.contains("url(#").then(|| value.replace("url(#", &format!("url(#{name}-"))),
        _ => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_loads_is_left_out_and_what_draws_is_kept() {
        let text = r##"<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
            viewBox="0 0 1 1" onload="alert(1)"><script>alert(2)</script><foreignObject><p>x</p></foreignObject>
            <image href="http://evil/x.png"/><a href="https://evil/"><text>gone</text></a>
            <defs><clipPath id="c"><rect width="1"/></clipPath></defs><use xlink:href="#c"/><use xlink:href="http://evil/#c"/>
            <circle class="mark" data-tip="a &lt;b&gt; &quot;c&quot;" clip-path="url(#c)" fill="url(http://evil/#f)" r="1"><title>N=1</title></circle><rect width="1"><title>kept</title></rect></svg>"##;
        let out = inline(text, "energy", "an \"alt\"").unwrap();
        for gone in ["script", "alert", "http", "foreignObject", "image", "gone", "xmlns"] {
            assert!(!out.contains(gone), "{gone} in {out}");
        }
        assert!(out.contains(r#"id="energy-c""#) && out.contains(r#"clip-path="url(#energy-c)""#), "{out}");
        assert!(out.contains(r##"<use href="#energy-c">"##), "{out}");
        assert!(out.contains(r#"data-tip="a &lt;b&gt; &quot;c&quot;""#) && out.contains("<title>kept</title>"), "{out}");
        assert!(!out.contains("<title>N=1</title>") && out.contains("style=\"width:0.1rem\""), "{out}");
        assert!(out.contains(r#"role="img" aria-label="an &quot;alt&quot;""#), "{out}");
    }

    #[test]
    fn a_style_sheet_that_loads_is_left_out() {
        let with = |style: &str| inline(&format!("<svg><style>{style}</style></svg>"), "x", "").unwrap();
        assert!(with("text{font:10px serif}").contains("font:10px"));
        assert!(!with("@import 'x'").contains("import"));
        assert!(!with("text{fill:url(http://x)}").contains("fill"));
    }
}
