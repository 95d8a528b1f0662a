//! Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//! A number depends on (seed, stream, counter) only, so any thread or device may make it.

/// A generator with no state: `block(i)` is the i-th block of four words.
#[derive(Clone, Copy, Debug)]
pub struct Philox {
    key: [u32; 2],
    stream: u64,
}

impl Philox {
    /// `name` says what the numbers are for, so that no two uses share them.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a, 64 bits
        let stream = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { key: [seed as u32, (seed >> 32) as u32], stream }
    }

    pub fn block(&self, counter: u64) -> [u32; 4] {
        let words = [counter as u32, (counter >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32];
        philox(words, self.key)
    }

    /// Two uniform numbers in (0, 1), never 0 or 1.
    pub fn uniforms(&self, counter: u64) -> [f64; 2] {
        let [a, b, c, d] = self.block(counter);
        [(a, b), (c, d)].map(|(high, low)| {
            let bits = (u64::from(high) << 32 | u64::from(low)) >> 11;
            (bits as f64 + 0.5) / (1_u64 << 53) as f64
        })
    }

    /// A number below `n`; the bias of at most n / 2^64 is below anything we measure.
    pub fn below(&self, counter: u64, n: u64) -> u64 {
        let [a, b, ..] = self.block(counter);
        let wide = u128::from(u64::from(a) << 32 | u64::from(b)) * u128::from(n);
        (wide >> 64) as u64
    }

    /// 0..n in random order.
    pub fn permutation(&self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64, i as u64 + 1) as usize);
        }
        order
    }
}

fn philox(mut x: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(x[0]) * 0xD251_1F53;
        let b = u64::from(x[2]) * 0xCD9E_8D57;
        x = [(b >> 32) as u32 ^ x[1] ^ key[0], b as u32, (a >> 32) as u32 ^ x[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with the Random123 library.
    #[test]
    fn philox_gives_the_published_numbers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        let mut order = Philox::new(7, "test").permutation(1000);
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }
}
