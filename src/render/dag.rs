//! Draws a graph of stages as text, Mermaid, Graphviz or SVG.

use std::fmt::Write as _;

use serde::Serialize;

use super::chart::svg::escape;

/// A stage: how many nodes it has and how many are done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Box {
    pub name: String,
    pub kind: String,
    pub nodes: usize,
    pub done: usize,
    pub failed: usize,
    pub running: usize,
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
            _ if self.failed > 0 => "failed",
            _ if self.running > 0 => "running",
            done if done == self.nodes => "done",
            0 => "to do",
            _ => "partly done",
        }
    }
    fn colour(&self) -> &'static str {
        match self.state() {
            "done" => "#d3ecd9",
            "failed" => "#f6d5d3",
            "running" => "#d5e4f7",
            "partly done" => "#fdf0c8",
            _ => "#eceff4",
        }
    }
    /// The name by which a page's style sheet knows the state.
    fn class(&self) -> &'static str {
        match self.state() {
            "partly done" => "part",
            "to do" => "todo",
            state => state,
        }
    }
    fn counts(&self) -> String {
        let mut text = format!("{}/{} done", self.done, self.nodes);
        for (count, word) in [(self.failed, "failed"), (self.running, "running")] {
            if count > 0 {
                let _ = write!(text, ", {count} {word}");
            }
        }
        text
    }
}

impl Dag {
    pub fn text(&self) -> String {
        let width = self.boxes.iter().map(|stage| stage.label().chars().count()).max().unwrap_or(0);
        let mut out = String::new();
        for stage in &self.boxes {
            let names: Vec<&str> = stage.upstream.iter().map(|at| self.boxes[*at].name.as_str()).collect();
            let from = if names.is_empty() { String::new() } else { format!("  <- {}", names.join(", ")) };
            let _ = writeln!(out, "{:width$}  {:>11}{from}", stage.label(), stage.counts());
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

    /// A picture that stands by itself.
    pub fn svg(&self) -> String {
        self.draw(false)
    }

    /// A picture for a page, whose style sheet gives the colours: light or dark, or ink alone.
    pub fn svg_for_page(&self) -> String {
        self.draw(true)
    }

    /// Layers by distance from the sources: left to right, or from top to bottom on a page, which is long rather than wide.
    fn draw(&self, for_page: bool) -> String {
        const HEIGHT: usize = 46;
        const EDGE: usize = 16;
        let (width, gap_x, gap_y) = if for_page { (212, 24, 34) } else { (190, 60, 26) };
        let mut layer = vec![0usize; self.boxes.len()];
        for (from, to) in self.edges() {
            layer[to] = layer[to].max(layer[from] + 1);
        }
        let layers = layer.iter().max().map_or(0, |last| last + 1);
        let mut rank = vec![0usize; self.boxes.len()];
        let mut filled = vec![0usize; layers];
        for at in 0..self.boxes.len() {
            rank[at] = filled[layer[at]];
            filled[layer[at]] += 1;
        }
        let most = filled.iter().copied().max().unwrap_or(0);
        let over = !for_page && self.edges().any(|(from, to)| layer[to] > layer[from] + 1);
        let top = EDGE + if over { HEIGHT / 2 } else { 0 };
        let (columns, rows) = if for_page { (most, layers) } else { (layers, most) };
        let total_height = top + EDGE + rows * (HEIGHT + gap_y);
        let total_width = 2 * EDGE + columns * (width + gap_x);
        // Short layers stand in the middle.
        let place = |at: usize| {
            let spare = most - filled[layer[at]];
            let (column, row) = if for_page { (rank[at], layer[at]) } else { (layer[at], rank[at]) };
            let (right, down) = if for_page { (spare * (width + gap_x) / 2, 0) } else { (0, spare * (HEIGHT + gap_y) / 2) };
            (EDGE + right + column * (width + gap_x), top + down + row * (HEIGHT + gap_y))
        };
        let size = format!("viewBox=\"0 0 {total_width} {total_height}\" width=\"{total_width}\" height=\"{total_height}\"");
        let mut out = if for_page {
            format!("<svg {size} role=\"img\" aria-label=\"Stages of the pipeline\" font-size=\"13\">\n")
        } else {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} font-family=\"sans-serif\" font-size=\"13\">\n\
                 <title>Stages of the pipeline</title>\n\
                 <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
            )
        };
        for (from, to) in self.edges() {
            let ((x1, y1), (x2, y2)) = (place(from), place(to));
            let path = if for_page {
                let (x1, y1, x2) = (x1 + width / 2, y1 + HEIGHT, x2 + width / 2);
                let (c1, c2) = (y1 + gap_y, y2 - gap_y);
                format!("M{x1} {y1} C{x1} {c1} {x2} {c2} {x2} {y2}")
            } else {
                let (x1, y1, y2) = (x1 + width, y1 + HEIGHT / 2, y2 + HEIGHT / 2);
                // An edge that passes over other columns takes the way above their boxes.
                let lift = if layer[to] > layer[from] + 1 { HEIGHT + gap_y / 2 } else { 0 };
                let (reach, up1, up2) = (gap_x / 2 + lift, y1 - lift, y2 - lift);
                let (c1, c2) = (x1 + reach, x2 - reach);
                format!("M{x1} {y1} C{c1} {up1} {c2} {up2} {x2} {y2}")
            };
            let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"#7b8794\"/>");
        }
        for (at, stage) in self.boxes.iter().enumerate() {
            let (x, y) = place(at);
            let colour = stage.colour();
            let label = escape(&stage.label());
            let (class, state) = (stage.class(), stage.state());
            // What goes on matters more than the kind, and both would not fit.
            let busy = stage.failed + stage.running > 0;
            let sub = if busy { stage.counts() } else { format!("{}, {}", escape(&stage.kind), stage.counts()) };
            let _ = writeln!(
                out,
                "<g class=\"box {class}\"><title>{label}: {state}</title>\
                 <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"7\" fill=\"{colour}\" stroke=\"#52606d\"/>\
                 <text x=\"{tx}\" y=\"{ty}\" fill=\"#1f2933\" font-weight=\"bold\">{label}</text>\
                 <text class=\"sub\" x=\"{tx}\" y=\"{ty2}\" fill=\"#3e4c59\" font-size=\"11\">{sub}</text></g>",
                tx = x + 10,
                ty = y + 19,
                ty2 = y + 36,
            );
        }
        out.push_str("</svg>\n");
        out
    }
}
