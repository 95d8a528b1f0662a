//! Seeded numbers for the corpus and the shuffles. Written out here so that no release of a dependency can move a byte of the data.

/// xoshiro256++, seeded through splitmix64. Cheap to make, so every document and every epoch has its own.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// Scrambles 64 bits; the step of splitmix64.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// One stream per list of parts: `new(&[seed, epoch, 3])` and `new(&[seed, epoch, 4])` have nothing in common.
    pub fn new(parts: &[u64]) -> Self {
        let mut folded = 0x5bd1_e995;
        for &part in parts {
            folded = mix(folded ^ mix(part));
        }
        let mut state = [0; 4];
        for word in &mut state {
            folded = mix(folded);
            *word = folded;
        }
        Self { state }
    }

    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in `0..bound`. The bias of the multiply-shift is below 2^-32 for the bounds used here.
    pub fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0, "nothing to choose from");
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Uniform in `low..=high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A rank in `0..count`, rank r with weight near 1 / (r + 1): the law that words and fame follow.
    /// Inverts the integral of 1 / (x + 1), which needs no table.
    pub fn zipf(&mut self, count: usize) -> usize {
        let top = ((count + 1) as f64).ln();
        (((self.unit() * top).exp() - 1.0) as usize).min(count - 1)
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned() {
        // A change here changes every corpus and every shuffle ever made.
        let mut random = Random::new(&[1, 2, 3]);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, [5216984951283781891, 9593714365607731920, 1069391926096191702]);
    }

    #[test]
    fn low_ranks_are_common_and_all_ranks_occur() {
        let mut random = Random::new(&[7]);
        let mut counts = [0usize; 100];
        for _ in 0..100_000 {
            counts[random.zipf(100)] += 1;
        }
        assert!(counts[0] > 3 * counts[4], "{counts:?}");
        assert!(counts.iter().all(|&count| count > 0));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::new(&[9]).shuffle(&mut items);
        assert_ne!(items, (0..1000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }
}
