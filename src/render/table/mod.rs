//! Tables in three forms: LaTeX (booktabs), Markdown and CSV. What stands in them is said in the files beside; the paper's own
//! tables are computed by the stage kind, which knows the science, and handed over as rows.

pub mod costs;
pub mod diagnostics;
pub mod optima;
pub mod post_training;
pub mod verdicts;

use std::fmt::Write as _;

/// A table ready to be written.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// File name and label.
    pub name: String,
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Entry>>,
    /// Rows before which a thin line stands.
    pub breaks: Vec<usize>,
    /// Spans both columns of a two-column page.
    pub wide: bool,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub head: Entry,
    pub align: Align,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Align {
    Left,
    Centre,
    Right,
    /// Running text, this part of the page wide.
    Text(f64),
}

/// A cell: how people read it, and the same in LaTeX.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub text: String,
    pub tex: String,
}

impl Entry {
    /// Plain words; Greek letters and signs become LaTeX by themselves.
    pub fn new(text: impl Into<String>) -> Entry {
        let text = text.into();
        Entry { tex: tex(&text), text }
    }
    /// A formula, with and without LaTeX.
    pub fn formula(tex: &str, text: &str) -> Entry {
        Entry { text: text.to_string(), tex: format!("${tex}$") }
    }
    pub fn empty() -> Entry {
        Entry::default()
    }
}

impl<T: Into<String>> From<T> for Entry {
    fn from(text: T) -> Entry {
        Entry::new(text)
    }
}

impl Column {
    pub fn left(head: impl Into<Entry>) -> Column {
        Column { head: head.into(), align: Align::Left }
    }
    pub fn right(head: impl Into<Entry>) -> Column {
        Column { head: head.into(), align: Align::Right }
    }
    pub fn centre(head: impl Into<Entry>) -> Column {
        Column { head: head.into(), align: Align::Centre }
    }
    pub fn text(head: impl Into<Entry>, part: f64) -> Column {
        Column { head: head.into(), align: Align::Text(part) }
    }
}

impl Sheet {
    pub fn new(name: &str, caption: impl Into<String>, columns: Vec<Column>) -> Sheet {
        Sheet { name: name.to_string(), caption: caption.into(), columns, ..Sheet::default() }
    }

    pub fn push(&mut self, row: Vec<Entry>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of `{}` has a cell for every column", self.name);
        self.rows.push(row);
    }

    /// A thin line before the next row.
    pub fn line(&mut self) {
        if !self.rows.is_empty() {
            self.breaks.push(self.rows.len());
        }
    }

    /// For `\input`: needs the packages booktabs, array and graphicx. A table wider than the page is shrunk to it, a longer one is
    /// continued in a second.
    pub fn latex(&self) -> String {
        let running_text = self.columns.iter().any(|column| matches!(column.align, Align::Text(_)));
        let per_page = if running_text { 12 } else { 48 };
        let mut out = String::from("% needs \\usepackage{booktabs,array,graphicx}\n");
        for from in (0..self.rows.len().max(1)).step_by(per_page) {
            self.latex_part(&mut out, from, (from + per_page).min(self.rows.len()));
        }
        out
    }

    fn latex_part(&self, out: &mut String, from: usize, to: usize) {
        let environment = if self.wide { "table*" } else { "table" };
        let columns: String = self
            .columns
            .iter()
            .map(|column| match column.align {
                Align::Left => "l".to_string(),
                Align::Centre => "c".to_string(),
                Align::Right => "r".to_string(),
                Align::Text(part) => format!(">{{\\raggedright\\arraybackslash}}p{{{part:.2}\\textwidth}}"),
            })
            .collect();
        let line = |cells: Vec<&str>| format!("{} \\\\\n", cells.join(" & "));
        let _ = writeln!(out, "\\begin{{{environment}}}[t]\n\\centering\n\\footnotesize\n\\setlength{{\\tabcolsep}}{{4pt}}");
        out.push_str("\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n");
        let _ = writeln!(out, "\\begin{{tabular}}{{@{{}}{columns}@{{}}}}\n\\toprule");
        out.push_str(&line(self.columns.iter().map(|column| column.head.tex.as_str()).collect()));
        out.push_str("\\midrule\n");
        for (at, row) in self.rows.iter().enumerate().take(to).skip(from) {
            if at > from && self.breaks.contains(&at) {
                out.push_str("\\midrule\n");
            }
            out.push_str(&line(row.iter().map(|cell| cell.tex.as_str()).collect()));
        }
        if self.rows.is_empty() {
            let columns = self.columns.len();
            let _ = writeln!(out, "\\multicolumn{{{columns}}}{{@{{}}l@{{}}}}{{nothing of this in this profile}} \\\\");
        }
        let (caption, label) = match from {
            0 => (tex(&self.caption), format!("\n\\label{{tab:{}}}", self.name)),
            _ => (format!("Table~\\ref{{tab:{}}}, continued.", self.name), String::new()),
        };
        let _ = writeln!(out, "\\bottomrule\n\\end{{tabular}}}}\n\\caption{{{caption}}}{label}\n\\end{{{environment}}}");
    }

    pub fn markdown(&self) -> String {
        let clean = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let mut out = String::new();
        let heads: Vec<String> = self.columns.iter().map(|column| clean(&column.head.text)).collect();
        let _ = writeln!(out, "{}\n", self.caption);
        let _ = writeln!(out, "| {} |", heads.join(" | "));
        let marks: Vec<&str> = self
            .columns
            .iter()
            .map(|column| match column.align {
                Align::Left | Align::Text(_) => "---",
                Align::Centre => ":-:",
                Align::Right => "--:",
            })
            .collect();
        let _ = writeln!(out, "| {} |", marks.join(" | "));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| clean(&cell.text)).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        if self.rows.is_empty() {
            out.push_str("\nNothing of this in this profile.\n");
        }
        out
    }

    pub fn csv(&self) -> String {
        let quote = |text: &str| {
            // A true minus sign is for eyes; programs want a hyphen.
            let text = text.replace('−', "-");
            if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
        };
        let line = |cells: Vec<&str>| cells.iter().map(|cell| quote(cell)).collect::<Vec<_>>().join(",") + "\n";
        let mut out = line(self.columns.iter().map(|column| column.head.text.as_str()).collect());
        for row in &self.rows {
            out.push_str(&line(row.iter().map(|cell| cell.text.as_str()).collect()));
        }
        out
    }
}

/// Words as LaTeX: what is special there is escaped, signs and letters outside ASCII become formulas.
pub fn tex(text: &str) -> String {
    // Stands for a dollar sign of our own until formulas side by side have been joined.
    const MATH: char = '\u{1}';
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if let Some(formula) = formula_of(c) {
            out.extend([MATH]);
            out.push_str(&formula);
            out.push(MATH);
            continue;
        }
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            '"' | '”' => out.push_str("''"),
            '“' => out.push_str("``"),
            '`' | '’' => out.push('\''),
            '–' => out.push_str("--"),
            '—' => out.push_str("---"),
            '…' => out.push_str("\\dots{}"),
            '\u{a0}' => out.push('~'),
            // A letter that LaTeX does not have in its fonts would stop it.
            c if c.is_ascii() || (c.is_alphabetic() && (c as u32) < 0x180) => out.push(c),
            _ => out.push('?'),
        }
    }
    out.replace("\u{1}\u{1}", "").replace(MATH, "$")
}

fn formula_of(c: char) -> Option<String> {
    let name = match c {
        '<' | '>' => return Some(c.to_string()),
        '−' => return Some("-".into()),
        '²' => return Some("^2".into()),
        '½' => return Some("\\frac12".into()),
        '₀'..='₉' => return Some(format!("_{}", c as u32 - '₀' as u32)),
        '±' => "pm",
        '×' => "times",
        '√' => "surd",
        '≤' => "le",
        '≥' => "ge",
        '≈' => "approx",
        '∝' => "propto",
        '∞' => "infty",
        '‖' => "Vert",
        '·' => "cdot",
        '→' => "rightarrow",
        '∈' => "in",
        'Θ' => "Theta",
        'Δ' => "Delta",
        'α' => "alpha",
        'β' => "beta",
        'δ' => "delta",
        'ε' => "varepsilon",
        'ϵ' => "epsilon",
        'ζ' => "zeta",
        'η' => "eta",
        'θ' => "theta",
        'λ' => "lambda",
        'σ' => "sigma",
        'φ' => "phi",
        'ω' => "omega",
        _ => return None,
    };
    // A letter may follow in the same formula.
    Some(format!("\\{name} "))
}

/// A number with this many significant digits, plain: 0.00125, 1.3e-8.
pub fn significant(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "—".to_string();
    }
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let size = value.abs().log10().floor() as i32;
    let text = if (-4..7).contains(&size) {
        let places = (digits as i32 - 1 - size).max(0) as usize;
        let text = format!("{value:.places$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    } else {
        let text = format!("{value:.*e}", digits.saturating_sub(1));
        match text.split_once('e') {
            Some((number, power)) if number.contains('.') => {
                format!("{}e{power}", number.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => text,
        }
    };
    text.replace('-', "−").replace("e−", "e-")
}

/// This many digits after the point, with a true minus.
pub fn fixed(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}").replace('-', "−") } else { "—".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet =
            Sheet::new("optima", "Optima & losses, 100% of runs", vec![Column::left("rule"), Column::right("η₀ | x")]);
        sheet.push(vec!["sqrt".into(), "−1.5 ± 0.2".into()]);
        sheet.line();
        sheet.push(vec!["a, \"b\"".into(), Entry::formula("m_L^{-1/2}", "m_L^-1/2")]);
        sheet
    }

    #[test]
    fn latex_is_escaped_and_ruled() {
        let tex = sheet().latex();
        assert!(tex.contains("\\caption{Optima \\& losses, 100\\% of runs}"));
        assert!(tex.contains("sqrt & $-$1.5 $\\pm $ 0.2 \\\\\n\\midrule\n"));
        assert!(tex.contains("$m_L^{-1/2}$"));
        assert_eq!(tex.matches("\\midrule").count(), 2);
    }

    #[test]
    fn markdown_and_csv_keep_their_separators() {
        assert!(sheet().markdown().contains("| rule | η₀ \\| x |\n| --- | --: |\n| sqrt | −1.5 ± 0.2 |"));
        assert_eq!(sheet().csv(), "rule,η₀ | x\nsqrt,-1.5 ± 0.2\n\"a, \"\"b\"\"\",m_L^-1/2\n");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.00125, 1e-8, 8.8388e-4, 183_454_464.0, 0.5, -0.25].map(|value| significant(value, 4));
        assert_eq!(shown, ["0.00125", "1e-8", "0.0008839", "1.835e8", "0.5", "−0.25"].map(str::to_string));
    }
}
