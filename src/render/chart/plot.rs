//! A panel with two axes: lines, bands, points and words at places given in the units of the data.

use super::axis::{Axis, Scale, Tick};
use super::layout::{Key, draw_sample};
use super::svg::{Anchor, GRID, INK, QUIET, Style, Svg, num, path};
use super::text::width;

pub const TICK_SIZE: f64 = 9.5;
pub const LABEL_SIZE: f64 = 11.0;
pub const TITLE_SIZE: f64 = 11.0;
const TICK_LENGTH: f64 = 3.5;

/// A rectangle on the page.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Star,
    Cross,
}

impl Shape {
    /// Shapes that go with the qualitative colours, so that nothing hangs on colour alone.
    pub const ALL: [Shape; 4] = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond];

    /// The outline around a point, about `2 * size` across.
    fn outline(self, x: f64, y: f64, size: f64) -> String {
        let ring = |corners: usize, radius: &dyn Fn(usize) -> f64, turn: f64| {
            let at = |n: usize| {
                let angle = std::f64::consts::TAU * n as f64 / corners as f64 - std::f64::consts::FRAC_PI_2 + turn;
                (x + radius(n) * angle.cos(), y + radius(n) * angle.sin())
            };
            format!("{}Z", path((0..corners).map(at)))
        };
        match self {
            Self::Circle => String::new(),
            Self::Square => ring(4, &|_| size * 1.22, std::f64::consts::FRAC_PI_4),
            Self::Diamond => ring(4, &|_| size * 1.25, 0.0),
            Self::Triangle => ring(3, &|_| size * 1.3, 0.0),
            Self::Star => ring(10, &|n| if n % 2 == 0 { size * 1.35 } else { size * 0.58 }, 0.0),
            Self::Cross => {
                let s = size * 0.85;
                let stroke = |a: (f64, f64), b: (f64, f64)| path([a, b]);
                stroke((x - s, y - s), (x + s, y + s)) + &stroke((x - s, y + s), (x + s, y - s))
            }
        }
    }
}

/// A value with what it says when pointed at.
#[derive(Clone, Debug)]
pub struct Dot {
    pub x: f64,
    pub y: f64,
    pub tip: String,
}

#[derive(Clone, Debug)]
pub enum Layer {
    /// A line through points. With a tip it is a mark of its own.
    Line {
        points: Vec<(f64, f64)>,
        colour: String,
        width: f64,
        dash: Option<&'static str>,
        tip: Option<String>,
    },
    /// x, low, high.
    Band {
        points: Vec<(f64, f64, f64)>,
        colour: String,
    },
    Dots {
        dots: Vec<Dot>,
        shape: Shape,
        size: f64,
        colour: String,
        hollow: bool,
    },
    /// A vertical interval with caps.
    Interval {
        x: f64,
        low: f64,
        high: f64,
        colour: String,
        tip: String,
    },
    /// Something that has no place on the axis: a cross for no value, another shape for one beyond it. At the top edge, `slot`
    /// places right of x.
    Above {
        x: f64,
        slot: f64,
        shape: Shape,
        colour: String,
        tip: String,
    },
    /// A dashed grey line that does not widen the axes, named at its right end.
    Reference {
        points: Vec<(f64, f64)>,
        label: String,
    },
    /// A bar of a histogram, from zero.
    Column {
        from: f64,
        to: f64,
        y: f64,
        colour: String,
        tip: String,
    },
    /// A thin line across the panel.
    Level {
        y: f64,
        colour: String,
    },
    Upright {
        x: f64,
        colour: String,
    },
}

/// A panel.
#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub layers: Vec<Layer>,
    /// Lines of small print in a corner.
    pub notes: Vec<String>,
    pub notes_at: Corner,
    /// A legend of the panel's own, in a corner.
    pub keys: Vec<Key>,
    pub keys_at: Corner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    TopLeft,
    TopRight,
    BottomRight,
    BottomLeft,
}

impl Plot {
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        Plot {
            title: title.into(),
            x,
            y,
            layers: Vec::new(),
            notes: Vec::new(),
            notes_at: Corner::TopRight,
            keys: Vec::new(),
            keys_at: Corner::TopLeft,
        }
    }

    pub fn add(&mut self, layer: Layer) {
        self.layers.push(layer);
    }

    /// All values that the axes have to hold.
    fn values(&self) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        for layer in &self.layers {
            match layer {
                Layer::Line { points, .. } => found.extend(points.iter().copied()),
                Layer::Band { points, .. } => found.extend(points.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)])),
                Layer::Dots { dots, .. } => found.extend(dots.iter().map(|dot| (dot.x, dot.y))),
                Layer::Interval { x, low, high, .. } => found.extend([(*x, *low), (*x, *high)]),
                Layer::Above { x, .. } | Layer::Upright { x, .. } => found.push((*x, f64::NAN)),
                Layer::Column { from, to, y, .. } => found.extend([(*from, 0.0), (*to, *y)]),
                Layer::Level { y, .. } => found.push((f64::NAN, *y)),
                Layer::Reference { .. } => {}
            }
        }
        found
    }

    pub fn x_range(&self) -> (f64, f64) {
        self.x.range.unwrap_or_else(|| self.x.scale.around(self.values().into_iter().map(|(x, _)| x), 0.045))
    }

    pub fn y_range(&self) -> (f64, f64) {
        self.y.range.unwrap_or_else(|| self.y.scale.around(self.values().into_iter().map(|(_, y)| y), 0.06))
    }

    pub fn y_ticks(&self, height: f64) -> Vec<Tick> {
        let ticks = self.y.ticks.clone();
        ticks.unwrap_or_else(|| self.y.scale.ticks(self.y_range(), (height / 28.0).round().clamp(2.0, 8.0) as usize))
    }

    fn x_ticks(&self, width: f64) -> Vec<Tick> {
        let ticks = self.x.ticks.clone();
        ticks.unwrap_or_else(|| {
            let each = if self.x.scale == Scale::Log2 { 22.0 } else { 34.0 };
            self.x.scale.ticks(self.x_range(), (width / each).round().clamp(2.0, 9.0) as usize)
        })
    }

    /// Room that the vertical axis needs left of the frame.
    pub fn left(&self, height: f64) -> f64 {
        let label = if self.y.label.is_empty() { 0.0 } else { LABEL_SIZE + 6.0 };
        if !self.y.numbers {
            return label + 6.0;
        }
        let numbers = self.y_ticks(height).iter().map(|tick| width(&tick.label, TICK_SIZE, false)).fold(0.0, f64::max);
        label + numbers + TICK_LENGTH + 4.0
    }

    /// Room that the horizontal axis needs below the frame.
    pub fn below(&self) -> f64 {
        let numbers = if self.x.numbers { TICK_LENGTH + 2.0 + TICK_SIZE } else { 4.0 };
        numbers + if self.x.label.is_empty() { 2.0 } else { LABEL_SIZE + 7.0 }
    }

    /// `clip` is an id that nothing else on the page has.
    pub fn draw(&self, svg: &mut Svg, frame: Frame, clip: &str) {
        let view = View::new(self, frame);
        self.draw_axes(svg, &view);
        svg.raw(&format!(
            "<clipPath id=\"{clip}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>",
            num(frame.x),
            num(frame.y),
            num(frame.width),
            num(frame.height)
        ));
        svg.raw(&format!("<g clip-path=\"url(#{clip})\">"));
        for layer in &self.layers {
            view.draw_line(svg, layer);
        }
        svg.raw("</g>");
        for layer in &self.layers {
            view.draw_point(svg, layer);
        }
        self.draw_notes(svg, frame);
        self.draw_keys(svg, frame);
    }

    fn draw_axes(&self, svg: &mut Svg, view: &View) {
        let frame = view.frame;
        let (right, bottom) = (frame.x + frame.width, frame.y + frame.height);
        for tick in self.y_ticks(frame.height) {
            let y = view.y(tick.at);
            if !(frame.y - 0.5..=bottom + 0.5).contains(&y) {
                continue;
            }
            let minor = tick.label.is_empty();
            if !minor {
                svg.line("grid", (frame.x, y), (right, y), GRID, 0.6);
            }
            let length = if minor { TICK_LENGTH * 0.55 } else { TICK_LENGTH };
            svg.line("tick", (frame.x - length, y), (frame.x, y), INK, if minor { 0.5 } else { 0.8 });
            if self.y.numbers && !minor {
                let style = Style::new(TICK_SIZE, Anchor::End);
                svg.text((frame.x - TICK_LENGTH - 2.5, y + TICK_SIZE * 0.35), style, &tick.label);
            }
        }
        // Numbers that would touch their left neighbour are left out; their ticks stay.
        let mut free_from = f64::NEG_INFINITY;
        for tick in self.x_ticks(frame.width) {
            let x = view.x(tick.at);
            if !(frame.x - 0.5..=right + 0.5).contains(&x) {
                continue;
            }
            let minor = tick.label.is_empty();
            let length = if minor { TICK_LENGTH * 0.55 } else { TICK_LENGTH };
            svg.line("tick", (x, bottom), (x, bottom + length), INK, if minor { 0.5 } else { 0.8 });
            let half = width(&tick.label, TICK_SIZE, false) / 2.0;
            if self.x.numbers && !minor && x - half >= free_from {
                let style = Style::new(TICK_SIZE, Anchor::Middle);
                svg.text((x, bottom + TICK_LENGTH + 1.5 + TICK_SIZE * 0.85), style, &tick.label);
                free_from = x + half + 4.0;
            }
        }
        svg.line("axis", (frame.x, frame.y), (frame.x, bottom), INK, 0.8);
        svg.line("axis", (frame.x - 0.4, bottom), (right, bottom), INK, 0.8);
        if !self.x.label.is_empty() {
            let y = bottom + self.below() - 5.0;
            svg.text((frame.x + frame.width / 2.0, y), Style::new(LABEL_SIZE, Anchor::Middle), &self.x.label);
        }
        if !self.y.label.is_empty() {
            let x = frame.x - self.left(frame.height) + LABEL_SIZE - 1.0;
            let style = Style::new(LABEL_SIZE, Anchor::Middle).upright();
            svg.text((x, frame.y + frame.height / 2.0), style, &self.y.label);
        }
    }

    fn draw_notes(&self, svg: &mut Svg, frame: Frame) {
        let size = 9.5;
        let step = size * 1.3;
        for (at, note) in self.notes.iter().enumerate() {
            let from_top = frame.y + 2.0 + step * (at as f64 + 0.85);
            let from_bottom = frame.y + frame.height - 6.0 - step * (self.notes.len() - 1 - at) as f64;
            let (left, right) = (frame.x + 6.0, frame.x + frame.width - 4.0);
            let (x, y, anchor) = match self.notes_at {
                Corner::TopLeft => (left, from_top, Anchor::Start),
                Corner::TopRight => (right, from_top, Anchor::End),
                Corner::BottomRight => (right, from_bottom, Anchor::End),
                Corner::BottomLeft => (left, from_bottom, Anchor::Start),
            };
            svg.text((x, y), Style::new(size, anchor).colour(QUIET), note);
        }
    }
}

impl Plot {
    fn draw_keys(&self, svg: &mut Svg, frame: Frame) {
        let size = 9.0;
        let step = size * 1.35;
        let widest = self.keys.iter().map(|key| width(&key.label, size, false)).fold(0.0, f64::max);
        let left = match self.keys_at {
            Corner::TopLeft | Corner::BottomLeft => frame.x + 6.0,
            Corner::TopRight | Corner::BottomRight => frame.x + frame.width - 3.0 - widest - 20.0,
        };
        for (at, key) in self.keys.iter().enumerate() {
            let y = match self.keys_at {
                Corner::TopLeft | Corner::TopRight => frame.y + 3.0 + step * (at as f64 + 0.5),
                Corner::BottomLeft | Corner::BottomRight => {
                    frame.y + frame.height - 4.0 - step * ((self.keys.len() - at) as f64 - 0.5)
                }
            };
            draw_sample(svg, &key.sample, (left, y), 16.0);
            svg.text((left + 20.0, y + size * 0.35), Style::new(size, Anchor::Start), &key.label);
        }
    }
}

/// Where values lie in a frame.
struct View {
    frame: Frame,
    x: (Scale, f64, f64),
    y: (Scale, f64, f64),
}

impl View {
    fn new(plot: &Plot, frame: Frame) -> View {
        let ends = |scale: Scale, (low, high): (f64, f64)| (scale, scale.place(low), scale.place(high));
        View { frame, x: ends(plot.x.scale, plot.x_range()), y: ends(plot.y.scale, plot.y_range()) }
    }

    fn x(&self, value: f64) -> f64 {
        let (scale, low, high) = self.x;
        self.frame.x + self.frame.width * (scale.place(value) - low) / (high - low)
    }

    fn y(&self, value: f64) -> f64 {
        let (scale, low, high) = self.y;
        self.frame.y + self.frame.height * (1.0 - (scale.place(value) - low) / (high - low))
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// What is cut off at the frame.
    fn draw_line(&self, svg: &mut Svg, layer: &Layer) {
        match layer {
            Layer::Line { points, colour, width, dash, tip } => {
                let d = path(points.iter().map(|point| self.at(*point)));
                if d.is_empty() {
                    return;
                }
                let dash = dash.map(|dash| format!(" stroke-dasharray=\"{dash}\"")).unwrap_or_default();
                let shape = format!(
                    "path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}",
                    num(*width)
                );
                match tip {
                    Some(tip) => svg.mark(&shape, tip),
                    None => svg.raw(&format!("<{shape}/>")),
                }
            }
            Layer::Band { points, colour } => {
                let known = || points.iter().filter(|(_, low, high)| low.is_finite() && high.is_finite());
                let there = known().map(|&(x, _, high)| self.at((x, high)));
                let back = known().rev().map(|&(x, low, _)| self.at((x, low)));
                let d = path(there.chain(back).filter(|(_, y)| y.is_finite()));
                if !d.is_empty() {
                    svg.raw(&format!("<path class=\"band\" d=\"{d}Z\" fill=\"{colour}\" fill-opacity=\"0.18\"/>"));
                }
            }
            Layer::Reference { points, label } => {
                let placed: Vec<(f64, f64)> = points.iter().map(|point| self.at(*point)).collect();
                svg.raw(&format!(
                    "<path class=\"reference\" d=\"{}\" fill=\"none\" stroke=\"#8a8a8a\" stroke-width=\"0.9\" stroke-dasharray=\"4 3\"/>",
                    path(placed.iter().copied())
                ));
                // Right of and below the line, where no rising curve that starts with it passes.
                let inside = |(x, y): &&(f64, f64)| {
                    let (right, bottom) = (self.frame.x + self.frame.width, self.frame.y + self.frame.height);
                    *x <= right && (self.frame.y..=bottom).contains(y)
                };
                let visible: Vec<&(f64, f64)> = placed.iter().filter(inside).collect();
                if let Some((x, y)) = visible.get(visible.len() * 4 / 5)
                    && !label.is_empty()
                {
                    svg.text((x + 4.0, y + 11.0), Style::new(9.5, Anchor::Start).colour(QUIET), label);
                }
            }
            Layer::Level { y, colour } => {
                let y = self.y(*y);
                svg.line("level", (self.frame.x, y), (self.frame.x + self.frame.width, y), colour, 0.8);
            }
            Layer::Upright { x, colour } => {
                let x = self.x(*x);
                svg.line("level", (x, self.frame.y), (x, self.frame.y + self.frame.height), colour, 0.8);
            }
            Layer::Column { from, to, y, colour, tip } => {
                let (x0, x1, top, foot) = (self.x(*from), self.x(*to), self.y(*y), self.frame.y + self.frame.height);
                if (x1 - x0).is_finite() && (foot - top).is_finite() {
                    let rect = format!(
                        "rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"",
                        num(x0),
                        num(top),
                        num((x1 - x0 - 0.4).max(0.2)),
                        num((foot - top).max(0.0))
                    );
                    svg.mark(&rect, tip);
                }
            }
            Layer::Dots { .. } | Layer::Interval { .. } | Layer::Above { .. } => {}
        }
    }

    /// What may stand on the frame's edge.
    fn draw_point(&self, svg: &mut Svg, layer: &Layer) {
        match layer {
            Layer::Dots { dots, shape, size, colour, hollow } => {
                for dot in dots {
                    let (x, y) = self.at((dot.x, dot.y));
                    let inside = self.frame.x - 1.0 <= x && x <= self.frame.x + self.frame.width + 1.0;
                    if inside && self.frame.y - 1.0 <= y && y <= self.frame.y + self.frame.height + 1.0 {
                        svg.mark(&symbol(*shape, (x, y), *size, colour, *hollow), &dot.tip);
                    }
                }
            }
            Layer::Interval { x, low, high, colour, tip } => {
                let (x, top, bottom) = (self.x(*x), self.y(*high), self.y(*low));
                if x.is_finite() && top.is_finite() && bottom.is_finite() {
                    let bar = |y: f64| path([(x - 3.0, y), (x + 3.0, y)]);
                    let d = path([(x, top), (x, bottom)]) + &bar(top) + &bar(bottom);
                    svg.mark(&format!("path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.1\""), tip);
                }
            }
            Layer::Above { x, slot, shape, colour, tip } => {
                let at = (self.x(*x) + slot * 7.0, self.frame.y + 5.0);
                if at.0.is_finite() {
                    svg.mark(&symbol(*shape, at, 3.4, colour, *shape != Shape::Cross), tip);
                }
            }
            _ => {}
        }
    }
}

/// A point's shape as an open tag without brackets.
pub fn symbol(shape: Shape, (x, y): (f64, f64), size: f64, colour: &str, hollow: bool) -> String {
    let paint = match (shape, hollow) {
        (Shape::Cross, _) => format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-linecap=\"round\""),
        (Shape::Star, false) => format!("fill=\"{colour}\" stroke=\"#111111\" stroke-width=\"0.7\" stroke-linejoin=\"round\""),
        (_, true) => format!("fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"1.2\""),
        // Small points of many lines would show nothing but their rims.
        (_, false) if size < 2.2 => format!("fill=\"{colour}\""),
        (_, false) => format!("fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.5\""),
    };
    match shape {
        Shape::Circle => format!("circle cx=\"{}\" cy=\"{}\" r=\"{}\" {paint}", num(x), num(y), num(size)),
        shape => format!("path d=\"{}\" {paint}", shape.outline(x, y, size)),
    }
}
