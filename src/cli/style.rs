//! How text for a terminal looks: colour where it is wanted, bars and small curves made of characters.

use std::io::IsTerminal as _;

/// Colours carry no meaning of their own: what they stress is also said in words or signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Open,
    Busy,
    Quiet,
    Strong,
}

/// Paints text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// Colour on a terminal, unless NO_COLOR is set; FORCE_COLOR asks for it in a pipe.
    pub fn of_stdout() -> Style {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = set("FORCE_COLOR") || (std::io::stdout().is_terminal() && !dumb);
        Style { coloured: wanted && !set("NO_COLOR") }
    }

    #[cfg(test)]
    pub fn plain() -> Style {
        Style { coloured: false }
    }

    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.coloured || text.is_empty() {
            return text.to_string();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Open => "33",
            Tone::Busy => "36",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A curve of so many characters at most; values that are no numbers show as `×`.
pub fn sparkline(values: &[f64], width: usize) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = width.min(values.len());
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let mut out = String::new();
    for place in 0..width {
        // Each character is the mean of its share of the values.
        let share = &values[place * values.len() / width..(place + 1) * values.len() / width];
        let mean = share.iter().sum::<f64>() / share.len() as f64;
        out.push(match mean {
            mean if !mean.is_finite() => '×',
            mean if high > low => STEPS[(((mean - low) / (high - low) * 7.0).round() as usize).min(7)],
            _ => STEPS[0],
        });
    }
    out
}

/// A bar of `width` characters: parts of the whole, each with its own character, the rest dotted.
pub fn bar(parts: &[(usize, char)], total: usize, width: usize) -> String {
    let mut out = String::new();
    let (mut seen, mut drawn) = (0, 0);
    for (count, letter) in parts {
        seen += count;
        // Rounded down, so that only what is whole looks whole; but something is not nothing.
        let mut until = (seen * width / total.max(1)).max(drawn);
        if *count > 0 && until == drawn && drawn < width {
            until += 1;
        }
        out.extend(std::iter::repeat_n(*letter, until - drawn));
        drawn = until;
    }
    out.extend(std::iter::repeat_n('·', width.saturating_sub(drawn)));
    out
}

/// Text of at most so many characters, with `…` where it was cut.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// Text in lines of at most `width` characters, broken between words; words longer than that are cut.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = fit(word, width);
        let last = lines.last_mut().expect("there is always a line");
        if last.is_empty() {
            *last = word;
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_its_ends_and_marks_what_is_no_number() {
        assert_eq!(sparkline(&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], 8), "█▇▆▅▄▃▂▁");
        assert_eq!(sparkline(&[1.0, 1.0, f64::NAN], 9), "▁▁×");
        assert_eq!(sparkline(&[], 9), "");
        assert_eq!(sparkline(&(0..1000).map(f64::from).collect::<Vec<_>>(), 4), "▂▄▅▇");
    }

    #[test]
    fn a_bar_is_full_only_when_all_is_done() {
        assert_eq!(bar(&[(5, '█'), (0, '✗')], 5, 10), "██████████");
        assert_eq!(bar(&[(999, '█')], 1000, 10), "█████████·");
        assert_eq!(bar(&[(1, '█'), (1, '✗')], 1000, 10), "█✗········");
        assert_eq!(bar(&[], 0, 3), "···");
    }

    #[test]
    fn long_text_is_cut_and_wrapped() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }

    #[test]
    fn without_colour_text_stays_text() {
        assert_eq!(Style::plain().paint(Tone::Bad, "x"), "x");
        assert_eq!(Style { coloured: true }.paint(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
