//! Colours: viridis for what is ordered, Okabe and Ito's palette for what is not, blue to red through white for signed values.

/// Okabe and Ito's colours, which people of every colour vision tell apart; the pale yellow is left out.
pub const QUALITATIVE: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Viridis at seventeen places; between them the colours are nearly straight lines.
const VIRIDIS: [[u8; 3]; 17] = [
    [68, 1, 84],
    [72, 24, 106],
    [71, 45, 123],
    [66, 64, 134],
    [59, 82, 139],
    [51, 99, 141],
    [44, 114, 142],
    [38, 130, 142],
    [33, 145, 140],
    [31, 160, 136],
    [40, 174, 128],
    [63, 188, 115],
    [94, 201, 98],
    [132, 212, 75],
    [173, 220, 48],
    [216, 226, 25],
    [253, 231, 37],
];

/// From -1 (blue) through 0 (white) to 1 (red); equally dark at equal distance from 0.
const SIGNED: [[u8; 3]; 9] = [
    [12, 48, 107],
    [33, 102, 172],
    [94, 155, 204],
    [178, 211, 231],
    [248, 248, 248],
    [250, 205, 182],
    [232, 134, 103],
    [190, 48, 54],
    [112, 8, 32],
];

/// From white (0) to deep purple (1): amounts of which less is better.
const AMOUNT: [[u8; 3]; 6] = [[252, 251, 253], [226, 223, 239], [190, 186, 220], [149, 141, 196], [109, 77, 164], [70, 12, 130]];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    Viridis,
    Signed,
    Amount,
}

impl Map {
    fn stops(self) -> &'static [[u8; 3]] {
        match self {
            Self::Viridis => &VIRIDIS,
            Self::Signed => &SIGNED,
            Self::Amount => &AMOUNT,
        }
    }

    /// The colour at `part` of the way, as red, green and blue in 0..=255. Outside 0..1 the ends go on.
    pub fn rgb(self, part: f64) -> [f64; 3] {
        let stops = self.stops();
        let last = stops.len() - 1;
        let at = if part.is_finite() { part.clamp(0.0, 1.0) * last as f64 } else { 0.0 };
        let low = (at.floor() as usize).min(last.saturating_sub(1));
        let rest = at - low as f64;
        std::array::from_fn(|c| f64::from(stops[low][c]) * (1.0 - rest) + f64::from(stops[low + 1][c]) * rest)
    }

    pub fn hex(self, part: f64) -> String {
        let [r, g, b] = self.rgb(part).map(|c| c.round() as u8);
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// Black or white, whichever is read more easily on the colour.
    pub fn ink_on(self, part: f64) -> &'static str {
        let [r, g, b] = self.rgb(part).map(|c| {
            let c = c / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        if luminance > 0.22 { "#111111" } else { "#ffffff" }
    }
}

/// The colour of the `at`-th of `of` ordered things. The palest yellow cannot be read on white, so the ramp stops before it.
pub fn ordered(at: usize, of: usize) -> String {
    Map::Viridis.hex(if of < 2 { 0.0 } else { 0.93 * at as f64 / (of - 1) as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_ends() {
        assert_eq!((Map::Viridis.hex(0.0), Map::Viridis.hex(1.0)), ("#440154".into(), "#fde725".into()));
        assert_eq!(Map::Signed.hex(0.5), "#f8f8f8");
        assert_eq!(Map::Signed.hex(7.0), Map::Signed.hex(1.0));
        assert_eq!(Map::Viridis.hex(f64::NAN), "#440154");
    }

    #[test]
    fn words_on_a_colour_can_be_read() {
        assert_eq!((Map::Viridis.ink_on(0.0), Map::Viridis.ink_on(1.0)), ("#ffffff", "#111111"));
    }
}
