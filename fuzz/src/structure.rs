//! Changes that keep an input's structure: where bytes stand behind their length, a change of the
//! bytes alone is refused at the length, and what reads the bytes is never reached.
//!
//! An input is taken apart into pieces, one of them is changed, removed, doubled or replaced by
//! another one, and the whole is put together again with the lengths that follow.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Random choices from a seed.
#[derive(Clone, Debug)]
pub struct Choices(ChaCha8Rng);

impl Choices {
    /// The same seed makes the same choices.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below this one; 0 where there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }
}

/// How the inputs of a target are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Bytes: nothing says how many follow.
    Bytes,
    /// Lines of text.
    Lines,
    /// Tag, length, value: BER, and the DER inside.
    Tlv,
    /// Messages, each behind its length in two bytes, the high one first.
    Messages,
}

/// A part of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Bytes behind a tag, which is empty where there are none.
    Leaf(Vec<u8>, Vec<u8>),
    /// Other pieces behind a tag, and bytes between both (the unused bits of a BIT STRING).
    Node(Vec<u8>, Vec<u8>, Vec<Piece>),
}

/// Deeper than any certificate goes.
const DEEPEST: usize = 16;

impl Structure {
    fn take_apart(self, input: &[u8]) -> Option<Vec<Piece>> {
        match self {
            Self::Bytes => None,
            Self::Lines => Some(
                input
                    .split(|byte| *byte == b'\n')
                    .map(|line| Piece::Leaf(Vec::new(), line.to_vec()))
                    .collect(),
            ),
            Self::Tlv => tlv_pieces(input, DEEPEST),
            Self::Messages => {
                Some(messages(input).map(|it| Piece::Leaf(vec![], it.to_vec())).collect())
            }
        }
    }

    fn put_together(self, pieces: &[Piece]) -> Vec<u8> {
        let leaf = |piece: &Piece| match piece {
            Piece::Leaf(_, bytes) => bytes.clone(),
            Piece::Node(..) => Vec::new(),
        };
        match self {
            Self::Bytes | Self::Lines => pieces.iter().map(leaf).collect::<Vec<_>>().join(&b'\n'),
            Self::Tlv => pieces.iter().flat_map(tlv_bytes).collect(),
            Self::Messages => join_messages(pieces.iter().map(leaf)),
        }
    }
}

/// The messages of such an input; the last one may be shorter than it says.
pub fn messages(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (message, more) = after.split_at(length);
        rest = more;
        Some(message)
    })
}

/// The input that these messages make. What is longer than a length can say is cut.
pub fn join_messages<T: AsRef<[u8]>>(messages: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut input = Vec::new();
    for message in messages {
        let message = message.as_ref();
        let message = &message[..message.len().min(usize::from(u16::MAX))];
        input.extend((message.len() as u16).to_be_bytes());
        input.extend(message);
    }
    input
}

/// The elements that these bytes are, or `None` when they are something else.
fn tlv_pieces(bytes: &[u8], depth: usize) -> Option<Vec<Piece>> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (tag, after) = split_tag(rest)?;
        let (value, more) = split_value(after)?;
        pieces.push(tlv_piece(tag, value, depth));
        rest = more;
    }
    (!pieces.is_empty()).then_some(pieces)
}

/// A value that is elements is taken for that: also OCTET STRINGs and PIV's containers hold some.
fn tlv_piece(tag: &[u8], value: &[u8], depth: usize) -> Piece {
    let skip = usize::from(tag == [0x03] && value.first() == Some(&0));
    let (before, inside) = value.split_at(skip);
    match depth.checked_sub(1).and_then(|depth| tlv_pieces(inside, depth)) {
        Some(pieces) => Piece::Node(tag.to_vec(), before.to_vec(), pieces),
        None => Piece::Leaf(tag.to_vec(), value.to_vec()),
    }
}

fn split_tag(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_long = bytes.first()? & 0x1F == 0x1F && *bytes.first()? != 0xFF;
    let length = match is_long {
        true => 2 + bytes[1..].iter().take_while(|byte| **byte & 0x80 != 0).count(),
        false => 1,
    };
    bytes.split_at_checked(length)
}

fn split_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn tlv_bytes(piece: &Piece) -> Vec<u8> {
    let (tag, value) = match piece {
        Piece::Leaf(tag, value) => (tag, value.clone()),
        Piece::Node(tag, before, pieces) => {
            let inside = pieces.iter().flat_map(tlv_bytes);
            (tag, before.iter().copied().chain(inside).collect())
        }
    };
    let mut bytes = tag.clone();
    match value.len() {
        short @ 0..=0x7F => bytes.push(short as u8),
        long => {
            let length = long.to_be_bytes();
            let zeros = length.iter().take_while(|byte| **byte == 0).count();
            bytes.push(0x80 | (length.len() - zeros) as u8);
            bytes.extend(&length[zeros..]);
        }
    }
    bytes.extend(value);
    bytes
}

/// What becomes of one piece.
#[derive(Clone, Copy)]
enum Change {
    Bytes,
    Tag,
    Remove,
    Double,
    Empty,
    Replace,
}

impl Change {
    fn random(choices: &mut Choices) -> Self {
        match choices.below(16) {
            0..=9 => Self::Bytes,
            10 => Self::Tag,
            11 => Self::Remove,
            12 | 13 => Self::Double,
            14 => Self::Empty,
            _ => Self::Replace,
        }
    }
}

/// Calls `see` with each piece in turn, and with the list that it is in, until it returns true.
fn walk(pieces: &mut Vec<Piece>, see: &mut dyn FnMut(&mut Vec<Piece>, usize) -> bool) -> bool {
    for at in 0..pieces.len() {
        if see(pieces, at) {
            return true;
        }
        if let Some(Piece::Node(_, _, inside)) = pieces.get_mut(at)
            && walk(inside, see)
        {
            return true;
        }
    }
    false
}

fn change_pieces(
    pieces: &mut Vec<Piece>,
    choices: &mut Choices,
    change_bytes: &mut dyn FnMut(&mut Vec<u8>),
) {
    let mut all = 0;
    walk(pieces, &mut |_, _| {
        all += 1;
        false
    });
    let chosen = choices.below(all);
    let other = choices.below(all);
    let mut copy = None;
    let mut at = 0;
    walk(pieces, &mut |list, place| {
        copy = (at == other).then(|| list[place].clone());
        at += 1;
        copy.is_some()
    });
    let mut change = Change::random(choices);
    let mut at = 0;
    walk(pieces, &mut |list, place| {
        at += 1;
        if at <= chosen {
            return false;
        }
        // The bytes of a node are those of a leaf inside it.
        if matches!((change, &list[place]), (Change::Bytes, Piece::Node(_, _, inside)) if !inside.is_empty())
        {
            return false;
        }
        change_piece(list, place, change, copy.take(), change_bytes);
        change = Change::Empty;
        true
    });
}

fn change_piece(
    list: &mut Vec<Piece>,
    place: usize,
    change: Change,
    copy: Option<Piece>,
    change_bytes: &mut dyn FnMut(&mut Vec<u8>),
) {
    match change {
        Change::Bytes => match &mut list[place] {
            Piece::Leaf(_, bytes) | Piece::Node(_, bytes, _) => change_bytes(bytes),
        },
        Change::Tag => match &mut list[place] {
            Piece::Leaf(tag, bytes) if tag.is_empty() => change_bytes(bytes),
            Piece::Leaf(tag, _) | Piece::Node(tag, ..) => change_bytes(tag),
        },
        Change::Remove => drop(list.remove(place)),
        Change::Double => {
            let same = list[place].clone();
            list.insert(place, same);
        }
        Change::Empty => match &mut list[place] {
            Piece::Leaf(_, bytes) => bytes.clear(),
            Piece::Node(_, _, inside) => inside.clear(),
        },
        Change::Replace => list[place] = copy.unwrap_or_else(|| list[place].clone()),
    }
}

/// Changes an input in its structure. `change_bytes` changes bytes that have none.
pub fn mutate(
    structure: Structure,
    input: &mut Vec<u8>,
    choices: &mut Choices,
    change_bytes: &mut dyn FnMut(&mut Vec<u8>),
) {
    match structure.take_apart(input) {
        // Lengths that lie are worth a try, too.
        Some(mut pieces) if choices.below(8) != 0 => {
            change_pieces(&mut pieces, choices, change_bytes);
            *input = structure.put_together(&pieces);
        }
        _ => change_bytes(input),
    }
}

/// The same for libFuzzer, whose own changes of bytes are `own`: it knows what the program compares
/// its input with.
pub fn mutate_in_place(
    structure: Structure,
    data: &mut [u8],
    size: usize,
    most: usize,
    seed: u32,
    own: impl Fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut choices = Choices::from_seed(seed.into());
    let mut input = data[..size].to_vec();
    let mut change_bytes = |bytes: &mut Vec<u8>| {
        let length = bytes.len();
        bytes.resize((length + 64).min(most.max(length)), 0);
        let room = bytes.len();
        let changed = own(bytes, length, room);
        bytes.truncate(changed);
    };
    mutate(structure, &mut input, &mut choices, &mut change_bytes);
    let length = input.len().min(most);
    data[..length].copy_from_slice(&input[..length]);
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_apart_is_put_together_again() {
        let long = [&[0x53, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        for (structure, input) in [
            (Structure::Lines, &b"a = 1\n\n[b]\n"[..]),
            (Structure::Tlv, &[0x30, 0x05, 0x02, 0x01, 0x05, 0x04, 0x00]),
            (Structure::Tlv, &[0x5F, 0xC1, 0x02, 0x01, 0x09]),
            (Structure::Tlv, &long),
            (Structure::Messages, &[0, 1, 9, 0, 0, 0, 2, 1, 2]),
        ] {
            let pieces = structure.take_apart(input).unwrap();
            assert_eq!(structure.put_together(&pieces), input, "{structure:?}");
        }
        assert_eq!(Structure::Tlv.take_apart(&[0x30, 0x05, 0x02]), None);
        assert_eq!(Structure::Tlv.take_apart(&[0x30, 0x02, 0x05, 0x00, 0x04]), None);
    }

    #[test]
    fn a_changed_value_has_its_new_length_everywhere_around_it() {
        let input = [0x30, 0x07, 0x30, 0x05, 0x04, 0x03, 0xFF, 0xFF, 0xFF];
        let mut choices = Choices::from_seed(7);
        let mut longer = 0;
        for _ in 0..200 {
            let mut changed = input.to_vec();
            mutate(Structure::Tlv, &mut changed, &mut choices, &mut |bytes| bytes.push(9));
            if let Some([Piece::Node(_, _, pieces)]) =
                Structure::Tlv.take_apart(&changed).as_deref()
                && let [Piece::Node(_, _, inner)] = &pieces[..]
            {
                longer +=
                    usize::from(inner[..] == [Piece::Leaf(vec![4], vec![0xFF, 0xFF, 0xFF, 9])]);
            }
        }
        assert!(longer > 50, "{longer} of 200");
    }

    #[test]
    fn no_more_is_written_than_there_is_room() {
        for seed in 0..500 {
            let mut data = [0; 12];
            data[..9].copy_from_slice(&[0x30, 0x07, 0x30, 0x05, 0x04, 0x03, 1, 2, 3]);
            let own = |bytes: &mut [u8], _, room| {
                bytes.fill(5);
                room
            };
            assert!(mutate_in_place(Structure::Tlv, &mut data, 9, 12, seed, own) <= 12);
        }
    }
}
