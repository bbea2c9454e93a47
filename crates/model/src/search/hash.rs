//! A fast, deterministic hash for small fixed-size states.

use std::hash::{BuildHasher, Hasher};

use crate::World;

/// Builds [`Mixer`]s.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mix;

/// Multiplies and folds each word: quick, and spread well enough for 64-bit fingerprints.
#[derive(Debug, Clone, Copy)]
pub struct Mixer(u64);

impl BuildHasher for Mix {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(0x9e37_79b9_7f4a_7c15)
    }
}

impl Mixer {
    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xda94_2042_e4dd_58b5_u128;
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(32);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let mut word = self.0;
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word ^ (word >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.word(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }
}

/// The fingerprint of a state.
pub fn fingerprint(world: &World) -> u64 {
    let mut mixer = Mix.build_hasher();
    for word in world.pack() {
        mixer.word(word);
    }
    // Zero marks an empty slot.
    mixer.finish().max(1)
}

/// The states that were seen, by fingerprint, each with its number.
#[derive(Debug)]
pub struct Seen {
    slots: Vec<(u64, u32)>,
    count: usize,
}

impl Seen {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self { slots: vec![(0, 0); 1 << 16], count: 0 }
    }

    /// The number of a state: a new one, or the one it was given before.
    pub fn number(&mut self, print: u64) -> Result<u32, u32> {
        if self.count * 10 > self.slots.len() * 7 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = print as usize & mask;
        loop {
            match self.slots[at] {
                (0, _) => {
                    let number = self.count as u32;
                    self.slots[at] = (print, number);
                    self.count += 1;
                    return Ok(number);
                }
                (known, number) if known == print => return Err(number),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); mask + 1]);
        for (print, number) in old.into_iter().filter(|(print, _)| *print != 0) {
            let mut at = print as usize & mask;
            while self.slots[at].0 != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = (print, number);
        }
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self::new()
    }
}
