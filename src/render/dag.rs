//! Draws a graph of stages as text, Mermaid, Graphviz or SVG.

use std::fmt::Write as _;

use serde::Serialize;

/// A stage: how many nodes it has and how many are done.
#[derive(Clone, Debug, Serialize)]
pub struct Box {
    pub name: String,
    pub kind: String,
    pub nodes: usize,
    pub done: usize,
    /// Indices of the stages it reads from or waits for; all are smaller than its own.
    pub upstream: Vec<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Dag {
    pub boxes: Vec<Box>,
}

impl Box {
    fn label(&self) -> String {
        if self.nodes == 1 { self.name.clone() } else { format!("{} ×{}", self.name, self.nodes) }
    }
    fn state(&self) -> &'static str {
        match self.done {
            done if done == self.nodes => "done",
            0 => "to do",
            _ => "partly done",
        }
    }
    fn colour(&self) -> &'static str {
        match self.state() {
            "done" => "#d3ecd9",
            "partly done" => "#fdf0c8",
            _ => "#eceff4",
        }
    }
}

impl Dag {
    pub fn text(&self) -> String {
        let width = self.boxes.iter().map(|stage| stage.label().chars().count()).max().unwrap_or(0);
        let mut out = String::new();
        for stage in &self.boxes {
            let names: Vec<&str> = stage.upstream.iter().map(|at| self.boxes[*at].name.as_str()).collect();
            let from = if names.is_empty() { String::new() } else { format!("  <- {}", names.join(", ")) };
            let _ = writeln!(out, "{:width$}  {:>11}{from}", stage.label(), format!("{}/{} done", stage.done, stage.nodes));
        }
        out
    }

    pub fn mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        for (at, stage) in self.boxes.iter().enumerate() {
            let _ = writeln!(out, "    s{at}[\"{}<br>{}/{} done\"]", stage.label(), stage.done, stage.nodes);
        }
        for (from, to) in self.edges() {
            let _ = writeln!(out, "    s{from} --> s{to}");
        }
        out
    }

    pub fn dot(&self) -> String {
        let mut out = String::from("digraph repro {\n    rankdir=LR;\n    node [shape=box, style=\"rounded,filled\"];\n");
        for (at, stage) in self.boxes.iter().enumerate() {
            let _ = writeln!(
                out,
                "    s{at} [label=\"{}\\n{}/{} done\", fillcolor=\"{}\"];",
                stage.label(),
                stage.done,
                stage.nodes,
                stage.colour()
            );
        }
        for (from, to) in self.edges() {
            let _ = writeln!(out, "    s{from} -> s{to};");
        }
        out.push_str("}\n");
        out
    }

    fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.boxes.iter().enumerate().flat_map(|(to, stage)| stage.upstream.iter().map(move |from| (*from, to)))
    }

    /// Columns by distance from the sources, left to right.
    pub fn svg(&self) -> String {
        const WIDTH: usize = 190;
        const HEIGHT: usize = 46;
        const GAP_X: usize = 60;
        const GAP_Y: usize = 26;
        const EDGE: usize = 16;
        let mut column = vec![0usize; self.boxes.len()];
        for (from, to) in self.edges() {
            column[to] = column[to].max(column[from] + 1);
        }
        let columns = column.iter().max().map_or(0, |last| last + 1);
        let mut row = vec![0usize; self.boxes.len()];
        let mut filled = vec![0usize; columns];
        for at in 0..self.boxes.len() {
            row[at] = filled[column[at]];
            filled[column[at]] += 1;
        }
        let rows = filled.iter().copied().max().unwrap_or(0);
        let over = self.edges().any(|(from, to)| column[to] > column[from] + 1);
        let top = EDGE + if over { HEIGHT / 2 } else { 0 };
        let total_height = top + EDGE + rows * (HEIGHT + GAP_Y);
        let total_width = 2 * EDGE + columns * (WIDTH + GAP_X);
        // Short columns stand in the middle.
        let place = |at: usize| {
            let spare = (rows - filled[column[at]]) * (HEIGHT + GAP_Y) / 2;
            (EDGE + column[at] * (WIDTH + GAP_X), top + spare + row[at] * (HEIGHT + GAP_Y))
        };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {total_width} {total_height}\" \
             width=\"{total_width}\" height=\"{total_height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <title>Stages of the pipeline</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        for (from, to) in self.edges() {
            let ((x1, y1), (x2, y2)) = (place(from), place(to));
            let (x1, y1, y2) = (x1 + WIDTH, y1 + HEIGHT / 2, y2 + HEIGHT / 2);
            // An edge that passes over other columns takes the way above their boxes.
            let lift = if column[to] > column[from] + 1 { HEIGHT + GAP_Y / 2 } else { 0 };
            let (reach, up1, up2) = (GAP_X / 2 + lift, y1 - lift, y2 - lift);
            let (c1, c2) = (x1 + reach, x2 - reach);
            let _ = writeln!(out, "<path d=\"M{x1} {y1} C{c1} {up1} {c2} {up2} {x2} {y2}\" fill=\"none\" stroke=\"#7b8794\"/>");
        }
        for (at, stage) in self.boxes.iter().enumerate() {
            let (x, y) = place(at);
            let colour = stage.colour();
            let label = escape(&stage.label());
            let _ = writeln!(
                out,
                "<g><title>{label}: {}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"7\" \
                 fill=\"{colour}\" stroke=\"#52606d\"/>\
                 <text x=\"{tx}\" y=\"{ty}\" fill=\"#1f2933\" font-weight=\"bold\">{label}</text>\
                 <text x=\"{tx}\" y=\"{ty2}\" fill=\"#3e4c59\" font-size=\"11\">{}, {}/{} done</text></g>",
                stage.state(),
                escape(&stage.kind),
                stage.done,
                stage.nodes,
                tx = x + 10,
                ty = y + 19,
                ty2 = y + 36,
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
