//! A heat map: a matrix as coloured cells, with a colour bar and, where they fit, the numbers themselves.

use super::axis::{Scale, number, plain_number};
use super::colour::Map;
use super::plot::{Frame, LABEL_SIZE, TICK_SIZE};
use super::svg::{Anchor, INK, QUIET, Style, Svg, num};
use super::text::width;

/// A matrix to look at. Row 0 is drawn at the top.
#[derive(Clone, Debug)]
pub struct Heat {
    pub title: String,
    /// Small print below the title.
    pub subtitle: String,
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    pub x_label: String,
    pub y_label: String,
    /// By row, then column. A cell without a value is pale grey, one whose value is not a number darker.
    pub values: Vec<Vec<Option<f64>>>,
    /// What a cell says when pointed at, by row and column.
    pub tips: Vec<Vec<String>>,
    pub map: Map,
    pub range: (f64, f64),
    /// Digits of the numbers written into the cells; none: no numbers.
    pub digits: Option<usize>,
    /// Whether cells are square.
    pub square: bool,
    /// The label of the colour bar; none: no bar.
    pub bar: Option<String>,
}

const BAR: f64 = 9.0;
const BAR_GAP: f64 = 8.0;

impl Heat {
    pub fn left(&self) -> f64 {
        let widest = self.rows.iter().map(|row| width(row, TICK_SIZE, false)).fold(0.0, f64::max);
        widest + 6.0 + if self.y_label.is_empty() { 0.0 } else { LABEL_SIZE + 6.0 }
    }

    pub fn below(&self) -> f64 {
        TICK_SIZE + 6.0 + if self.x_label.is_empty() { 0.0 } else { LABEL_SIZE + 6.0 }
    }

    /// Room right of the cells for the colour bar.
    pub fn right(&self) -> f64 {
        match &self.bar {
            None => 0.0,
            Some(label) => {
                let widest = self.bar_ticks().iter().map(|tick| width(&tick.label, TICK_SIZE, false)).fold(0.0, f64::max);
                BAR_GAP + BAR + 6.0 + widest + if label.is_empty() { 0.0 } else { LABEL_SIZE + 6.0 }
            }
        }
    }

    fn bar_ticks(&self) -> Vec<super::axis::Tick> {
        Scale::Linear.ticks(self.range, 4)
    }

    fn part(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        if high > low { (value - low) / (high - low) } else { 0.0 }
    }

    /// The rectangle of the cells in the room there is.
    fn cells(&self, room: Frame) -> Frame {
        if !self.square {
            return room;
        }
        let (rows, columns) = (self.rows.len().max(1) as f64, self.columns.len().max(1) as f64);
        let side = (room.width / columns).min(room.height / rows);
        Frame { width: side * columns, height: side * rows, ..room }
    }

    pub fn draw(&self, svg: &mut Svg, room: Frame) {
        let frame = self.cells(room);
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let (w, h) = (frame.width / columns.max(1) as f64, frame.height / rows.max(1) as f64);
        // Many small cells: in units of a cell the text stays short. A cell reaches a little under its neighbours, so that no
        // seam shows between them.
        svg.raw(&format!(
            "<g class=\"cells\" transform=\"translate({} {}) scale({:.4} {:.4})\" shape-rendering=\"crispEdges\">",
            num(frame.x),
            num(frame.y),
            w,
            h
        ));
        for (r, row) in self.values.iter().enumerate() {
            for (c, value) in row.iter().enumerate() {
                let (wide, high) = (if c + 1 < columns { "1.06" } else { "1" }, if r + 1 < rows { "1.06" } else { "1" });
                let fill = match value {
                    Some(value) if value.is_finite() => self.map.hex(self.part(*value)),
                    Some(_) => "#bdbdbd".to_string(),
                    None => "#ececec".to_string(),
                };
                let back = format!("-{wide}");
                svg.mark(&format!("path d=\"M{c} {r}h{wide}v{high}h{back}z\" fill=\"{fill}\""), &self.tips[r][c]);
            }
        }
        svg.raw("</g>");
        if let Some(digits) = self.digits {
            self.draw_numbers(svg, frame, digits);
        }
        svg.rect(
            "axis",
            (frame.x, frame.y),
            (frame.width, frame.height),
            &format!("fill=\"none\" stroke=\"{INK}\" stroke-width=\"0.8\""),
        );
        self.draw_labels(svg, frame);
        if let Some(label) = &self.bar {
            self.draw_bar(svg, frame, label);
        }
    }

    fn draw_numbers(&self, svg: &mut Svg, frame: Frame, digits: usize) {
        let (w, h) = (frame.width / self.columns.len().max(1) as f64, frame.height / self.rows.len().max(1) as f64);
        let texts: Vec<Vec<String>> = self
            .values
            .iter()
            .map(|row| {
                let show = |value: &Option<f64>| match value {
                    Some(value) if value.is_finite() => trim_zero(format!("{value:.digits$}")),
                    Some(_) => "div.".to_string(),
                    None => "–".to_string(),
                };
                row.iter().map(show).collect()
            })
            .collect();
        let widest = texts.iter().flatten().map(|text| width(text, 1.0, false)).fold(0.1, f64::max);
        let size = (0.86 * w / widest).min(0.62 * h).min(10.0);
        if size < 5.5 {
            return;
        }
        for (r, row) in texts.iter().enumerate() {
            for (c, text) in row.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
                let value = self.values[r][c].unwrap_or(f64::NAN);
                let ink = if value.is_finite() { self.map.ink_on(self.part(value)) } else { "#111111" };
                let at = (frame.x + (c as f64 + 0.5) * w, frame.y + (r as f64 + 0.5) * h + size * 0.35);
                svg.text(at, Style::new(size, Anchor::Middle).colour(ink), text);
            }
        }
    }

    fn draw_labels(&self, svg: &mut Svg, frame: Frame) {
        let (w, h) = (frame.width / self.columns.len().max(1) as f64, frame.height / self.rows.len().max(1) as f64);
        for (r, row) in self.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            let y = frame.y + (r as f64 + 0.5) * h;
            svg.text((frame.x - 4.0, y + TICK_SIZE * 0.35), Style::new(TICK_SIZE, Anchor::End), row);
        }
        let bottom = frame.y + frame.height;
        for (c, column) in self.columns.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
            let x = frame.x + (c as f64 + 0.5) * w;
            svg.text((x, bottom + 3.0 + TICK_SIZE * 0.9), Style::new(TICK_SIZE, Anchor::Middle), column);
        }
        let label = Style::new(LABEL_SIZE, Anchor::Middle);
        if !self.x_label.is_empty() {
            svg.text((frame.x + frame.width / 2.0, bottom + self.below() - 4.0), label, &self.x_label);
        }
        if !self.y_label.is_empty() {
            let x = frame.x - self.left() + LABEL_SIZE - 1.0;
            svg.text((x, frame.y + frame.height / 2.0), label.upright(), &self.y_label);
        }
    }

    fn draw_bar(&self, svg: &mut Svg, frame: Frame, label: &str) {
        const STEPS: usize = 64;
        let x = frame.x + frame.width + BAR_GAP;
        let step = frame.height / STEPS as f64;
        svg.raw("<g shape-rendering=\"crispEdges\">");
        for at in 0..STEPS {
            let part = 1.0 - (at as f64 + 0.5) / STEPS as f64;
            let high = if at + 1 < STEPS { step * 1.1 } else { step };
            svg.rect("bar", (x, frame.y + at as f64 * step), (BAR, high), &format!("fill=\"{}\"", self.map.hex(part)));
        }
        svg.raw("</g>");
        svg.rect("axis", (x, frame.y), (BAR, frame.height), &format!("fill=\"none\" stroke=\"{INK}\" stroke-width=\"0.6\""));
        for tick in self.bar_ticks() {
            let y = frame.y + frame.height * (1.0 - self.part(tick.at));
            svg.line("tick", (x + BAR, y), (x + BAR + 2.5, y), INK, 0.6);
            svg.text((x + BAR + 4.5, y + TICK_SIZE * 0.35), Style::new(TICK_SIZE, Anchor::Start), &tick.label);
        }
        if !label.is_empty() {
            let x = frame.x + frame.width + self.right() - 2.0;
            svg.text((x, frame.y + frame.height / 2.0), Style::new(LABEL_SIZE, Anchor::Middle).colour(QUIET).upright(), label);
        }
    }
}

/// .43 for 0.43: in a small cell the zero only takes room.
fn trim_zero(text: String) -> String {
    let text = text.replace('-', "−");
    let text = if text.trim_start_matches('−').trim_matches('0') == "." { text.replace('−', "") } else { text };
    text.strip_prefix("0.").map(|rest| format!(".{rest}")).unwrap_or_else(|| text.replace("−0.", "−."))
}

/// `[low, high]` as the paper prints a range.
pub fn range_text(low: f64, high: f64) -> String {
    let show = |value: f64| format!("{value:.3}").replace('-', "−");
    if low.is_finite() && high.is_finite() {
        format!("[{}, {}]", show(low), show(high))
    } else {
        format!("[{}, {}]", number(low), plain_number(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_cells_waste_no_room() {
        assert_eq!(trim_zero("0.43".into()), ".43");
        assert_eq!(trim_zero("-0.07".into()), "−.07");
        assert_eq!(trim_zero("1.00".into()), "1.00");
        assert_eq!(trim_zero("-0.00".into()), ".00");
    }
}
