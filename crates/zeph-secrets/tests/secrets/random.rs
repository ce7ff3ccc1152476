//! Reproducible pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014).

/// A SplitMix64 generator with its state.
pub struct Random(pub u64);

pub const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
pub const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub const DIGITS: &str = "0123456789";
pub const HEX: &str = "0123456789abcdef";

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    pub fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }

    /// A text of `length` characters of `alphabet`.
    pub fn text(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet = alphabet.as_bytes();
        (0..length)
            .map(|_| char::from(alphabet[self.below(alphabet.len())]))
            .collect()
    }

    pub fn alphanumeric(&mut self, length: usize) -> String {
        self.text(&[LOWER, UPPER, DIGITS].concat(), length)
    }

    pub fn word(&mut self, length: usize) -> String {
        self.text(&[LOWER, UPPER, DIGITS, "_-"].concat(), length)
    }

    pub fn base64(&mut self, length: usize) -> String {
        self.text(&[LOWER, UPPER, DIGITS, "+/"].concat(), length)
    }

    pub fn hex(&mut self, length: usize) -> String {
        self.text(HEX, length)
    }

    pub fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|length| self.hex(length)).join("-")
    }
}
