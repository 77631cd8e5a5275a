//! A card that counts what is tried on it and written to it, and says what it likes.
//!
//! It takes commands apart by itself, by ISO 7816-4 alone, and knows nothing of what Tapstone makes
//! of them: what it counts is held against what was allowed.

use std::collections::HashMap;

/// What was presented to the card for comparison: a PIN, a key, a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// The instruction that carried it.
    pub ins: u8,
    /// P2, the reference.
    pub reference: u8,
    /// What it carried.
    pub data: Vec<u8>,
    /// SW1 and SW2 that the card gave.
    pub status: [u8; 2],
    /// How many tries of this reference the card had told last; `None`: never.
    pub told: Option<u8>,
}

/// How the card answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As a card with this PIN and so many tries; everything else is 9000.
    Honest {
        /// Tries that are left at the beginning.
        tries: u8,
    },
    /// At random: data of any length, status words that ask for more, counters that jump.
    Hostile,
}

/// See the module's text.
pub struct CountingCard {
    manner: Manner,
    pin: Vec<u8>,
    tries: u8,
    random: Random,
    /// The header of an open chain, and its data so far; also after a refusal.
    chain: ([u8; 4], Vec<u8>),
    enveloped: Vec<u8>,
    pace: bool,
    benchmark: bool,
    /// The name of what was selected last; empty: nobody knows.
    selected: Vec<u8>,
    told: HashMap<(Vec<u8>, u8), u8>,
    /// What was presented, in order.
    pub presented: Vec<Presented>,
    /// Headers of commands that change what is stored.
    pub written: Vec<[u8; 4]>,
    /// How many commands it was sent.
    pub commands: u64,
    /// How often it lost its power, or was reset.
    pub powered_off: u64,
}

/// Random numbers from a seed: xorshift64* (Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; neighbouring seeds have nothing in common.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below this one.
    pub const fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    /// One of these.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// True so many times in a hundred.
    pub const fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

impl CountingCard {
    /// A card with this PIN.
    #[must_use]
    pub fn new(manner: Manner, pin: &[u8], seed: u64) -> Self {
        let tries = match manner {
            Manner::Honest { tries } => tries,
            Manner::Hostile => 3,
        };
        Self {
            manner,
            pin: pin.to_vec(),
            tries,
            random: Random::new(seed),
            chain: Default::default(),
            enveloped: Vec::new(),
            pace: false,
            benchmark: false,
            selected: Vec::new(),
            told: HashMap::new(),
            presented: Vec::new(),
            written: Vec::new(),
            commands: 0,
            powered_off: 0,
        }
    }

    /// Holds what was counted against what was allowed: no PIN but this one, in a plain VERIFY, not
    /// the last try, and none after another answer than 9000; nothing written unless allowed.
    ///
    /// # Errors
    /// What should not have been sent.
    pub fn holds(&self, pin: Option<&[u8]>, allow_writes: bool) -> Result<(), String> {
        if !allow_writes && !self.written.is_empty() {
            return Err(format!("written without permission: {:02X?}", self.written));
        }
        let mut wrong = false;
        for it in &self.presented {
            let is_the_pin = it.ins == 0x20 && pin == Some(&it.data[..]);
            if !is_the_pin || wrong || it.told.is_none_or(|told| told < 2) {
                return Err(format!("presented: {:02X?}", self.presented));
            }
            wrong = it.status != [0x90, 0x00];
        }
        Ok(())
    }

    /// The card loses its power.
    pub fn power_off(&mut self) {
        self.powered_off += 1;
        self.chain.1.clear();
        self.enveloped.clear();
        self.pace = false;
        self.benchmark = false;
        self.selected.clear();
        // What was selected before nobody knows.
        self.told.retain(|(selected, _), _| !selected.is_empty());
    }

    /// Takes a command; the answer with its status word.
    pub fn answer(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.commands += 1;
        self.act(bytes)
    }

    fn act(&mut self, bytes: &[u8]) -> Vec<u8> {
        let &[cla, ins, p1, p2, ref body @ ..] = bytes else { return vec![0x67, 0x00] };
        let data = data_of(body);
        // A chain has one header (ISO 7816-4, 5.3.3); another one ends it.
        let header = [cla & !0x10, ins, p1, p2];
        if self.chain.0 != header {
            self.chain = (header, Vec::new());
        }
        // In any class, in a chain or not, as soon as a command is there.
        if matches!(ins, 0xC2 | 0xC3) {
            return self.open_envelope(data);
        }
        if cla < 0x80 && cla & 0x10 != 0 {
            self.chain.1.extend_from_slice(data);
            // What a careless card would do with the first part alone.
            self.note(cla, ins, p1, p2, data);
            return self.say(false);
        }
        let whole = [&std::mem::take(&mut self.chain.1)[..], data].concat();
        self.enveloped.clear();
        self.enter(cla, ins, p1, p2, &whole);
        let before = self.presented.len();
        self.note(cla, ins, p1, p2, &whole);
        let asks = cla < 0x80 && ins == 0x20 && whole.is_empty();
        // Without an application most suites would end before they begin.
        if ins == 0xA4 && p1 == 0x04 && self.random.chance(70) {
            self.selected = whole;
            return vec![0x90, 0x00];
        }
        let mut answer = if self.presented.len() > before && ins == 0x20 {
            self.verify(&whole)
        } else {
            self.say(asks)
        };
        // ISO 7816-4, 11.6.6: what an empty VERIFY is answered with.
        match answer[answer.len().saturating_sub(2)..] {
            [0x63, low @ 0xC0..=0xCF] if asks => {
                self.told.insert((self.selected.clone(), p2), low & 0x0F);
            }
            _ if asks => drop(self.told.remove(&(self.selected.clone(), p2))),
            [0x90, 0x00] | [0x61, _] if ins == 0xA4 && p1 == 0x04 => self.selected = whole,
            _ => {}
        }
        // What was presented has its answer.
        if self.presented.len() > before
            && let (Some(last), Some(status)) =
                (self.presented.last_mut(), answer.last_chunk::<2>())
        {
            last.status = *status;
        }
        if answer.len() < 2 {
            answer = vec![0x6F, 0x00];
        }
        answer
    }

    /// What is in an envelope goes on in the next, until it is a command.
    fn open_envelope(&mut self, part: &[u8]) -> Vec<u8> {
        self.enveloped.extend_from_slice(part);
        let inside = self.enveloped.clone();
        if let [cla, ins, p1, p2, body @ ..] = &inside[..] {
            let data = data_of(body);
            self.enter(*cla, *ins, *p1, *p2, data);
            if self.note(*cla, *ins, *p1, *p2, data) || !data.is_empty() {
                self.enveloped.clear();
            }
        }
        self.say(false)
    }

    /// What later commands mean.
    fn enter(&mut self, cla: u8, ins: u8, p1: u8, p2: u8, data: &[u8]) {
        if ins == 0xA4 && p1 == 0x04 && cla < 0x80 {
            // It has every application, and none of another's commands.
            self.benchmark = data == b"\xF0TAPSTONE\x01";
        }
        if ins == 0x22 && p2 == 0xA4 && cla < 0x80 {
            self.pace = true;
        }
    }

    /// Counts a command for what it is; whether it was worth counting.
    fn note(&mut self, cla: u8, ins: u8, p1: u8, p2: u8, data: &[u8]) -> bool {
        let iso = cla < 0x80;
        let compares = match ins {
            0x20 | 0x21 | 0x24 | 0x25 | 0x2C | 0x2D | 0x26 | 0x28 | 0x82 | 0x83 => {
                iso || !self.benchmark
            }
            0x14 | 0x2E | 0x2F | 0x33 => iso,
            0x86 | 0x87 => iso && (p2 == 0x9B || self.pace),
            0x50 => !iso && !self.benchmark,
            _ => false,
        };
        if compares && !data.is_empty() {
            self.presented.push(Presented {
                ins,
                reference: p2,
                data: data.to_vec(),
                status: [0, 0],
                told: self.told.get(&(self.selected.clone(), p2)).copied(),
            });
            return true;
        }
        let writes = match ins {
            0x24 | 0x2C | 0x26 | 0x28 if iso => true,
            0x10 | 0x12 | 0x40 | 0x41 if iso => true,
            0x47 => p1 != 0x81,
            0x04
            | 0x06
            | 0x08
            | 0x0C
            | 0x0E
            | 0x0F
            | 0x44
            | 0x46
            | 0xCF
            | 0xD0..=0xD3
            | 0xD6..=0xDF
            | 0xE0
            | 0xE2
            | 0xE4
            | 0xEA..=0xEE => true,
            0xE6 | 0xE8 | 0xFE if iso => true,
            0xE6 | 0xE8 | 0xF0 if !iso => true,
            0x30 | 0x31 => !iso && self.benchmark,
            _ => false,
        };
        if writes {
            self.written.push([cla, ins, p1, p2]);
        }
        writes
    }

    fn verify(&mut self, data: &[u8]) -> Vec<u8> {
        if self.manner == Manner::Hostile {
            return self.say(false);
        }
        if self.tries == 0 {
            return vec![0x69, 0x83];
        }
        if data == self.pin {
            self.tries = 3;
            return vec![0x90, 0x00];
        }
        self.tries -= 1;
        vec![0x63, 0xC0 | self.tries]
    }

    fn say(&mut self, asked_for_tries: bool) -> Vec<u8> {
        match self.manner {
            Manner::Honest { .. } if asked_for_tries => match self.tries {
                0 => vec![0x69, 0x83],
                tries => vec![0x63, 0xC0 | tries],
            },
            Manner::Honest { .. } => vec![0x90, 0x00],
            Manner::Hostile => {
                const WORDS: [[u8; 2]; 16] = [
                    [0x90, 0x00],
                    [0x90, 0x00],
                    [0x90, 0x00],
                    [0x90, 0x00],
                    [0x61, 0x10],
                    [0x61, 0x00],
                    [0x6C, 0x08],
                    [0x6C, 0x00],
                    [0x63, 0xC3],
                    [0x63, 0xC2],
                    [0x63, 0xC1],
                    [0x63, 0xC0],
                    [0x69, 0x83],
                    [0x69, 0x82],
                    [0x6A, 0x82],
                    [0x63, 0x00],
                ];
                let random = &mut self.random;
                let length = if random.chance(40) { random.below(9) } else { 0 };
                // Bytes that a suite may put into a header: instructions that cost something.
                const BYTES: [u8; 8] = [0x20, 0x24, 0x2C, 0x82, 0x9B, 0xD6, 0x80, 0xFE];
                let mut answer: Vec<u8> = (0..length).map(|_| *random.one(&BYTES)).collect();
                let word = if asked_for_tries && random.chance(70) {
                    [0x63, 0xC0 | random.below(6) as u8]
                } else {
                    *random.one(&WORDS)
                };
                answer.extend(word);
                answer
            }
        }
    }
}

/// The data field of what follows a header; empty where there is none, or lengths lie.
fn data_of(body: &[u8]) -> &[u8] {
    let cut = |bytes: &'_ [u8], length: usize| bytes.get(..length).map(<[u8]>::len);
    match *body {
        [] | [_] => &[],
        [0, high, low, ref rest @ ..] if !rest.is_empty() => {
            let length = usize::from(high) << 8 | usize::from(low);
            cut(rest, length).map_or(&[], |length| &rest[..length])
        }
        [length, ref rest @ ..] => {
            let length = usize::from(length);
            cut(rest, length).map_or(&[], |length| &rest[..length])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A VERIFY counts wherever it is put.
    #[test]
    fn what_is_in_an_envelope_is_counted_in_every_class_and_in_parts() {
        let verify = [0x00, 0x20, 0x00, 0x80, 0x02, 0x39, 0x39];
        for class in [0x00, 0x10, 0x80, 0x90, 0xA0] {
            for ins in [0xC2, 0xC3] {
                let card = || CountingCard::new(Manner::Honest { tries: 3 }, b"1234", 1);
                let mut whole = card();
                whole.answer(&[&[class, ins, 0, 0, 7][..], &verify].concat());
                assert_eq!(whole.presented.len(), 1, "{class:02X} {ins:02X}");
                let mut parts = card();
                parts.answer(&[&[class, ins, 0, 0, 4][..], &verify[..4]].concat());
                parts.answer(&[&[class & !0x10, ins, 0, 0, 3][..], &verify[4..]].concat());
                assert_eq!(parts.presented.len(), 1, "{class:02X} {ins:02X}");
            }
        }
    }

    /// What was told of one application's PIN says nothing of another's.
    #[test]
    fn a_counter_is_told_of_one_application() {
        let mut card = CountingCard::new(Manner::Honest { tries: 3 }, b"1234", 1);
        card.answer(&[0, 0xA4, 4, 0, 1, 0xF0]);
        card.answer(&[0, 0x20, 0, 0x80]);
        card.answer(&[0, 0xA4, 4, 0, 1, 0xF1]);
        card.answer(&[0, 0x20, 0, 0x80, 1, 0x39]);
        card.answer(&[0, 0xA4, 4, 0, 1, 0xF0]);
        card.answer(&[0, 0x20, 0, 0x80, 1, 0x39]);
        let told: Vec<_> = card.presented.iter().map(|it| it.told).collect();
        assert_eq!(told, [None, Some(3)]);
    }
}
