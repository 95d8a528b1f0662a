//! Places panels on a page: rows and columns with just the room their axes need, a legend on top, a ramp of colours at the right.

use super::heat::Heat;
use super::plot::{Frame, LABEL_SIZE, Plot, Shape, TICK_SIZE, TITLE_SIZE, symbol};
use super::svg::{Anchor, QUIET, Style, Svg, num};
use super::text::{width, wrap};

/// The widths of a page: a whole one and one column of two.
pub const PAGE: f64 = 680.0;
pub const COLUMN: f64 = 400.0;

const EDGE: f64 = 6.0;
const GAP: f64 = 12.0;
const LEGEND_SIZE: f64 = 10.0;

/// What stands at a place of the grid.
#[derive(Clone, Debug)]
pub enum Cell {
    Plot(Plot),
    Heat(Heat),
    /// No data: the reason in words.
    Words {
        title: String,
        text: String,
    },
}

#[derive(Clone, Debug)]
pub struct Row {
    /// Of the panels, without titles and axes.
    pub height: f64,
    pub cells: Vec<Cell>,
}

/// An entry of the legend.
#[derive(Clone, Debug)]
pub struct Key {
    pub sample: Sample,
    pub label: String,
}

#[derive(Clone, Debug)]
pub enum Sample {
    Line {
        colour: String,
        shape: Option<Shape>,
        dash: Option<&'static str>,
    },
    Point {
        colour: String,
        shape: Shape,
        hollow: bool,
    },
    /// Words alone, such as the name of what the colours mean.
    Nothing,
}

/// Colours for ordered things, such as steps.
#[derive(Clone, Debug)]
pub struct Ramp {
    pub label: String,
    /// From the first to the last; colour and name.
    pub steps: Vec<(String, String)>,
}

/// A whole figure.
#[derive(Clone, Debug)]
pub struct Chart {
    pub name: String,
    /// What it shows, for those who cannot see it.
    pub alt: String,
    pub width: f64,
    pub rows: Vec<Row>,
    pub legend: Vec<Key>,
    pub ramp: Option<Ramp>,
    /// Share of the page for each column; empty: all the same.
    pub shares: Vec<f64>,
}

impl Cell {
    fn title(&self) -> (&str, &str) {
        match self {
            Self::Plot(plot) => (&plot.title, ""),
            Self::Heat(heat) => (&heat.title, &heat.subtitle),
            Self::Words { title, .. } => (title, ""),
        }
    }
    fn left(&self, height: f64) -> f64 {
        match self {
            Self::Plot(plot) => plot.left(height),
            Self::Heat(heat) => heat.left(),
            Self::Words { .. } => 0.0,
        }
    }
    /// Room right of the frame.
    fn right(&self) -> f64 {
        match self {
            Self::Heat(heat) => heat.right(),
            Self::Plot(_) | Self::Words { .. } => 0.0,
        }
    }
    fn below(&self) -> f64 {
        match self {
            Self::Plot(plot) => plot.below(),
            Self::Heat(heat) => heat.below(),
            Self::Words { .. } => 0.0,
        }
    }
    fn above(&self) -> f64 {
        let (title, subtitle) = self.title();
        let title = if title.is_empty() { 4.0 } else { TITLE_SIZE + 7.0 };
        title + if subtitle.is_empty() { 0.0 } else { TICK_SIZE + 4.0 }
    }
}

impl Chart {
    pub fn new(name: &str, alt: impl Into<String>, width: f64) -> Chart {
        Chart {
            name: name.to_string(),
            alt: alt.into(),
            width,
            rows: Vec::new(),
            legend: Vec::new(),
            ramp: None,
            shares: Vec::new(),
        }
    }

    fn ramp_room(&self) -> f64 {
        self.ramp.as_ref().map_or(0.0, |ramp| {
            let widest = ramp.steps.iter().map(|(_, name)| width(name, TICK_SIZE, false)).fold(0.0, f64::max);
            10.0 + 9.0 + 4.0 + widest + LABEL_SIZE + 8.0
        })
    }

    /// Lines of the legend: entries with their widths.
    fn legend_lines(&self) -> Vec<Vec<(&Key, f64)>> {
        let room = self.width - 2.0 * EDGE;
        let mut lines: Vec<Vec<(&Key, f64)>> = Vec::new();
        let mut used = f64::INFINITY;
        for key in &self.legend {
            let wide = sample_width(&key.sample) + width(&key.label, LEGEND_SIZE, false) + 14.0;
            if used + wide > room {
                lines.push(Vec::new());
                used = 0.0;
            }
            used += wide;
            if let Some(line) = lines.last_mut() {
                line.push((key, wide));
            }
        }
        lines
    }

    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let lines = self.legend_lines();
        let legend_height = if lines.is_empty() { 0.0 } else { lines.len() as f64 * (LEGEND_SIZE + 5.0) + 4.0 };
        let columns = self.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
        let left: Vec<f64> = (0..columns)
            .map(|c| self.rows.iter().filter_map(|row| row.cells.get(c).map(|cell| cell.left(row.height))).fold(0.0, f64::max))
            .collect();
        let right: Vec<f64> = (0..columns)
            .map(|c| self.rows.iter().filter_map(|row| row.cells.get(c).map(Cell::right)).fold(0.0, f64::max))
            .collect();
        let gaps = GAP * columns.saturating_sub(1) as f64;
        let free = self.width - 2.0 * EDGE - 6.0 - self.ramp_room() - gaps - left.iter().chain(&right).sum::<f64>();
        let shares: Vec<f64> = (0..columns).map(|c| self.shares.get(c).copied().unwrap_or(1.0)).collect();
        let wide: Vec<f64> = shares.iter().map(|share| (free * share / shares.iter().sum::<f64>()).max(20.0)).collect();

        let mut top = EDGE + legend_height;
        let mut frames: Vec<Vec<Frame>> = Vec::new();
        for row in &self.rows {
            let above = row.cells.iter().map(Cell::above).fold(0.0, f64::max);
            let below = row.cells.iter().map(Cell::below).fold(0.0, f64::max);
            let mut x = EDGE;
            frames.push(
                (0..row.cells.len())
                    .map(|c| {
                        x += left[c];
                        let frame = Frame { x, y: top + above, width: wide[c], height: row.height };
                        x += wide[c] + right[c] + GAP;
                        frame
                    })
                    .collect(),
            );
            top += above + row.height + below + 6.0;
        }
        let height = top + EDGE - 4.0;

        let mut svg = Svg::new(&self.name, &self.alt, self.width, height);
        self.draw_legend(&mut svg, &lines);
        for (r, row) in self.rows.iter().enumerate() {
            for (c, cell) in row.cells.iter().enumerate() {
                let frame = frames[r][c];
                self.draw_cell(&mut svg, cell, frame, &format!("{}-clip-{r}-{c}", self.name));
            }
        }
        if let (Some(ramp), Some(first), Some(last)) =
            (&self.ramp, frames.first().and_then(|row| row.first()), frames.last().and_then(|row| row.first()))
        {
            let x = self.width - EDGE - self.ramp_room() + 10.0;
            draw_ramp(&mut svg, ramp, x, first.y, last.y + last.height);
        }
        svg.finish()
    }

    fn draw_cell(&self, svg: &mut Svg, cell: &Cell, frame: Frame, clip: &str) {
        let (title, subtitle) = cell.title();
        let lift = if subtitle.is_empty() { 0.0 } else { TICK_SIZE + 4.0 };
        if !title.is_empty() {
            svg.text((frame.x, frame.y - 6.0 - lift), Style::new(TITLE_SIZE, Anchor::Start), title);
        }
        if !subtitle.is_empty() {
            svg.text((frame.x, frame.y - 5.0), Style::new(TICK_SIZE, Anchor::Start).colour(QUIET), subtitle);
        }
        match cell {
            Cell::Plot(plot) => plot.draw(svg, frame, clip),
            Cell::Heat(heat) => heat.draw(svg, frame),
            Cell::Words { text, .. } => {
                let box_style = "fill=\"#fafafa\" stroke=\"#cccccc\" stroke-width=\"0.8\" stroke-dasharray=\"3 3\"";
                svg.rect("nothing", (frame.x, frame.y), (frame.width, frame.height), box_style);
                let lines = wrap(text, LEGEND_SIZE, frame.width - 16.0);
                let step = LEGEND_SIZE * 1.35;
                let first = frame.y + frame.height / 2.0 - step * (lines.len() as f64 - 1.0) / 2.0;
                for (at, line) in lines.iter().enumerate() {
                    let place = (frame.x + frame.width / 2.0, first + at as f64 * step + LEGEND_SIZE * 0.35);
                    svg.text(place, Style::new(LEGEND_SIZE, Anchor::Middle).colour(QUIET), line);
                }
            }
        }
    }

    fn draw_legend(&self, svg: &mut Svg, lines: &[Vec<(&Key, f64)>]) {
        for (at, line) in lines.iter().enumerate() {
            let total: f64 = line.iter().map(|(_, wide)| wide).sum::<f64>() - 14.0;
            let mut x = ((self.width - total) / 2.0).max(EDGE);
            let y = EDGE + (at as f64 + 0.5) * (LEGEND_SIZE + 5.0);
            for (key, wide) in line {
                let start = x + sample_width(&key.sample);
                draw_sample(svg, &key.sample, (x, y), 22.0);
                svg.text((start, y + LEGEND_SIZE * 0.35), Style::new(LEGEND_SIZE, Anchor::Start), &key.label);
                x += wide;
            }
        }
    }
}

/// Room for a sample and the gap behind it.
fn sample_width(sample: &Sample) -> f64 {
    match sample {
        Sample::Line { .. } => 26.0,
        Sample::Point { .. } => 14.0,
        Sample::Nothing => 0.0,
    }
}

/// A sample whose left end and middle height are at a point; a line is `wide`.
pub fn draw_sample(svg: &mut Svg, sample: &Sample, (x, y): (f64, f64), wide: f64) {
    match sample {
        Sample::Nothing => {}
        Sample::Line { colour, shape, dash } => {
            let dash = dash.map(|dash| format!(" stroke-dasharray=\"{dash}\"")).unwrap_or_default();
            let (x0, y0) = (num(x), num(y));
            svg.raw(&format!("<path d=\"M{x0} {y0}h{}\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>", num(wide)));
            if let Some(shape) = shape {
                svg.raw(&format!("<{}/>", symbol(*shape, (x + wide / 2.0, y), 2.9, colour, false)));
            }
        }
        Sample::Point { colour, shape, hollow } => {
            svg.raw(&format!("<{}/>", symbol(*shape, (x + 5.0, y), 4.0, colour, *hollow)));
        }
    }
}

/// The first step at the bottom, as on an axis.
fn draw_ramp(svg: &mut Svg, ramp: &Ramp, x: f64, top: f64, bottom: f64) {
    let middle = (top + bottom) / 2.0;
    let tall = (bottom - top).min(16.0 * ramp.steps.len() as f64);
    let (top, each) = (middle - tall / 2.0, tall / ramp.steps.len().max(1) as f64);
    for (at, (colour, name)) in ramp.steps.iter().enumerate() {
        let y = top + tall - (at + 1) as f64 * each;
        svg.rect("ramp", (x, y), (9.0, each), &format!("fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.5\""));
        svg.text((x + 13.0, y + each / 2.0 + TICK_SIZE * 0.35), Style::new(TICK_SIZE, Anchor::Start), name);
    }
    let widest = ramp.steps.iter().map(|(_, name)| width(name, TICK_SIZE, false)).fold(0.0, f64::max);
    let at = (x + 13.0 + widest + LABEL_SIZE + 3.0, middle);
    svg.text(at, Style::new(LABEL_SIZE, Anchor::Middle).upright(), &ramp.label);
}
