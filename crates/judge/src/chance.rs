//! Repeatable choices: the same seed gives the same run.

/// A small generator of pseudo-random numbers (`SplitMix64`). Good enough to choose keys; nothing else.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The choices of one client of a run.
    pub fn new(seed: u64, client: u64) -> Self {
        let mut chance = Self(seed ^ client.wrapping_mul(0xD605_BBB5_8C8A_BC03));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the limit, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The bias is below 2^-40 for every limit used here.
        self.next() % limit
    }

    /// True once in `times`, on average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
