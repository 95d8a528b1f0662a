//! Axes: linear and logarithmic scales, where their ticks stand, and what is written at them.

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Linear,
    /// Linear for things that are counted: between two whole numbers there is nothing to mark.
    Whole,
    Log2,
    Log10,
}

#[derive(Clone, Debug)]
pub struct Axis {
    pub scale: Scale,
    /// In the markup of [`super::text`]; nothing is written if empty.
    pub label: String,
    /// Fixed ends; otherwise those of the data and a little more.
    pub range: Option<(f64, f64)>,
    /// Fixed ticks; otherwise chosen.
    pub ticks: Option<Vec<Tick>>,
    /// Whether something is written at the ticks.
    pub numbers: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub at: f64,
    /// Empty at a minor tick.
    pub label: String,
}

impl Tick {
    pub fn new(at: f64, label: impl Into<String>) -> Tick {
        Tick { at, label: label.into() }
    }
}

impl Axis {
    pub fn new(scale: Scale, label: impl Into<String>) -> Axis {
        Axis { scale, label: label.into(), range: None, ticks: None, numbers: true }
    }
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis::new(Scale::Linear, label)
    }
    pub fn whole(label: impl Into<String>) -> Axis {
        Axis::new(Scale::Whole, label)
    }
    pub fn log2(label: impl Into<String>) -> Axis {
        Axis::new(Scale::Log2, label)
    }
    pub fn log10(label: impl Into<String>) -> Axis {
        Axis::new(Scale::Log10, label)
    }
    pub fn range(self, low: f64, high: f64) -> Axis {
        Axis { range: Some((low, high)), ..self }
    }
    pub fn ticks(self, ticks: Vec<Tick>) -> Axis {
        Axis { ticks: Some(ticks), ..self }
    }
    /// Leaves numbers and label to a neighbour that has the same axis.
    pub fn bare(self) -> Axis {
        Axis { numbers: false, label: String::new(), ..self }
    }
}

impl Scale {
    /// Position on a straight line; NaN where the scale has no place for the value.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear | Self::Whole => value,
            _ if value <= 0.0 => f64::NAN,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Self::Linear | Self::Whole => place,
            Self::Log2 => place.exp2(),
            Self::Log10 => 10f64.powf(place),
        }
    }

    /// The ends of an axis that holds all these values, with a margin; a plain span where there are none.
    pub fn around(self, values: impl IntoIterator<Item = f64>, margin: f64) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in values.into_iter().map(|value| self.place(value)).filter(|place| place.is_finite()) {
            low = low.min(place);
            high = high.max(place);
        }
        if low > high {
            return if matches!(self, Self::Linear | Self::Whole) { (0.0, 1.0) } else { (1.0, 10.0) };
        }
        // One value alone, or values that differ in the last digit, get room on both sides.
        let least = match self {
            Self::Linear | Self::Whole => 1e-6 + 1e-3 * low.abs().max(high.abs()),
            Self::Log2 => 1.0,
            Self::Log10 => 0.15,
        };
        let grow = (margin * (high - low)).max((least - (high - low)) / 2.0);
        (self.value(low - grow), self.value(high + grow))
    }

    /// Ticks between the ends, the minor ones without a label.
    pub fn ticks(self, (low, high): (f64, f64), wanted: usize) -> Vec<Tick> {
        match self {
            Self::Linear => linear_ticks(low, high, wanted, false),
            Self::Whole => linear_ticks(low, high, wanted, true),
            Self::Log2 => power_ticks(low, high, wanted),
            Self::Log10 => decade_ticks(low, high, wanted),
        }
    }
}

fn linear_ticks(low: f64, high: f64, wanted: usize, whole: bool) -> Vec<Tick> {
    let rough = (high - low) / wanted.max(1) as f64;
    if rough.is_nan() || rough <= 0.0 || !rough.is_finite() {
        return vec![Tick::new(low, number(low))];
    }
    let unit = 10f64.powf(rough.log10().floor());
    let unit = if whole { unit.max(1.0) } else { unit };
    let mut steps = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|n| n * unit).filter(|step| !whole || step.fract() == 0.0);
    let step = steps.find(|step| *step >= rough * 0.999).unwrap_or(10.0 * unit);
    let digits = (0..12)
        .find(|digits| (step * 10f64.powi(*digits)).fract().abs() < 1e-6 || (step * 10f64.powi(*digits)).fract() > 1.0 - 1e-6);
    let digits = digits.unwrap_or(12) as usize;
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| Tick::new(n as f64 * step, signed(format!("{:.digits$}", n as f64 * step)))).collect()
}

fn power_ticks(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    let first = (low.log2() - 1e-9).ceil() as i32;
    let last = (high.log2() + 1e-9).floor() as i32;
    let every = ((last - first + 1) as f64 / wanted.max(1) as f64).ceil().max(1.0) as i32;
    (first..=last)
        .map(|power| {
            let at = f64::from(power).exp2();
            Tick::new(at, if (power - first) % every == 0 { number(at) } else { String::new() })
        })
        .collect()
}

/// Decades, with 2 and 5 between where there are few, and all nine as minor ticks.
fn decade_ticks(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    let span = high.log10() - low.log10();
    // Less than half a decade reads better with round steps than with 2 and 5.
    if span < 0.5 {
        return linear_ticks(low, high, wanted.min(4), false);
    }
    let named: &[i32] = if span < 1.1 {
        &[1, 2, 3, 5, 7]
    } else if span < 2.2 {
        &[1, 2, 5]
    } else if span < 3.2 {
        &[1, 3]
    } else {
        &[1]
    };
    let every = (span / wanted.max(1) as f64).ceil().max(1.0) as i32;
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let mut ticks = Vec::new();
    for decade in first..=last {
        for n in 1..=9 {
            let at = f64::from(n) * 10f64.powi(decade);
            if at < low * (1.0 - 1e-9) || at > high * (1.0 + 1e-9) || (every > 1 && n > 1) {
                continue;
            }
            let told = named.contains(&n) && decade.rem_euclid(every) == 0;
            ticks.push(Tick::new(at, if told { power_of_ten(n, decade) } else { String::new() }));
        }
    }
    ticks
}

fn power_of_ten(n: i32, decade: i32) -> String {
    if (-3..=3).contains(&decade) {
        return number(f64::from(n) * 10f64.powi(decade));
    }
    let power = signed(format!("10^{{{decade}}}"));
    if n == 1 { power } else { format!("{n}×{power}") }
}

/// A number as people write it: at most four significant digits, a true minus sign.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    if !value.is_finite() {
        return if value.is_nan() { "NaN".into() } else { signed(format!("{value}").replace("inf", "∞")) };
    }
    let size = value.abs().log10().floor() as i32;
    if !(-4..=5).contains(&size) {
        let power = value / 10f64.powi(size);
        return signed(format!("{}×10^{{{size}}}", short(power, 2)));
    }
    signed(short(value, (3 - size).max(0) as usize))
}

/// The same without markup, for tips: 1.2e-5 where [`number`] has a power of ten.
pub fn plain_number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return number(value);
    }
    let size = value.abs().log10().floor() as i32;
    if (-4..=5).contains(&size) { number(value) } else { signed(format!("{value:.2e}")) }
}

fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

fn signed(text: String) -> String {
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&linear_ticks(0.03, 1.02, 5, false)), ["0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear_ticks(-1.0, 1.0, 4, false)), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&linear_ticks(2.94, 3.31, 4, false)), ["3.0", "3.1", "3.2", "3.3"]);
    }

    #[test]
    fn counts_have_ticks_at_whole_numbers_only() {
        assert_eq!(labels(&Scale::Whole.ticks((-0.18, 4.18), 9)), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(&Scale::Whole.ticks((9.91, 12.09), 9)), ["10", "11", "12"]);
        assert_eq!(labels(&Scale::Whole.ticks((0.0, 20.0), 8)), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(&Scale::Whole.ticks((0.0, 100.0), 4)), ["0", "25", "50", "75", "100"]);
        assert_eq!(labels(&Scale::Whole.ticks(Scale::Whole.around([3.0], 0.05), 9)), ["3"]);
    }

    #[test]
    fn log_ticks_name_decades_and_mark_the_rest() {
        let ticks = Scale::Log10.ticks((0.9, 70.0), 5);
        assert_eq!(labels(&ticks), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(ticks.len(), 17);
        assert_eq!(labels(&Scale::Log10.ticks((1e-6, 1e6), 5)), ["10^{−6}", "0.001", "1", "1000", "10^{6}"]);
    }

    #[test]
    fn loops_are_named_by_powers_of_two() {
        assert_eq!(labels(&Scale::Log2.ticks((0.9, 70.0), 8)), ["1", "2", "4", "8", "16", "32", "64"]);
    }

    #[test]
    fn an_axis_holds_all_finite_values_and_survives_none() {
        let (low, high) = Scale::Log10.around([1.0, f64::NAN, -3.0, 100.0], 0.05);
        assert!(low < 1.0 && high > 100.0 && low > 0.5 && high < 200.0);
        assert_eq!(Scale::Log10.around([f64::NAN], 0.05), (1.0, 10.0));
        let (low, high) = Scale::Linear.around([2.0], 0.05);
        assert!(low < 2.0 && high > 2.0);
    }

    #[test]
    fn numbers_are_as_people_write_them() {
        let shown = [0.0, 0.5, 1e-3, 1234.0, 123456.0, 1.5e-7, -2.25].map(number);
        assert_eq!(shown, ["0", "0.5", "0.001", "1234", "123456", "1.5×10^{−7}", "−2.25"].map(str::to_string));
        assert_eq!(plain_number(1.5e-7), "1.50e−7");
    }
}
