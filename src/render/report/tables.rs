//! The tables, as `tables` wrote them in Markdown.

use std::path::Path;

use maud::{Markup, PreEscaped, html};

use super::{ReportError, anchor, list, markdown, read_text, stem};

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub name: String,
    pub markdown: String,
}

/// A longer table is a file to open, not a thing to read.
const ROWS_SHOWN: usize = 400;

pub fn read(folder: &Path) -> Result<Vec<Table>, ReportError> {
    list(folder, &["md"])?.iter().map(|path| Ok(Table { name: stem(path), markdown: read_text(path)? })).collect()
}

pub fn section(tables: &[Table]) -> Markup {
    html! {
        @if !tables.is_empty() {
            section #tables aria-labelledby="tables-title" {
                h2 #tables-title { "Tables" }
                p .lead { "The same as LaTeX, Markdown and CSV in the folder " code { "tables" } " beside this report." }
                @for table in tables {
                    @let (text, left) = cut(&table.markdown);
                    details .table id=(anchor("table", &table.name)) open[tables.len() <= 6] {
                        summary { (table.name) }
                        div .scroll tabindex="0" role="region" aria-label={ "Table " (table.name) } { (PreEscaped(markdown::html(&text))) }
                        @if left > 0 { p .quiet { (left) " more rows in " code { (table.name) ".csv" } "." } }
                    }
                }
            }
        }
    }
}

/// The text without the rows past [`ROWS_SHOWN`], and how many those are.
fn cut(text: &str) -> (String, usize) {
    let mut rows = 0;
    let mut left = 0;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        if line.trim_start().starts_with('|') {
            rows += 1;
            if rows > ROWS_SHOWN + 2 {
                left += 1;
                continue;
            }
        }
        kept.push_str(line);
        kept.push('\n');
    }
    (kept, left)
}
