//! The signed form of everything that agents and coordinators say to each other.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `tapstone` |
//! | 64 | the signature, over [`DOMAIN`] and all that follows |
//! | 4 | the protocol's number, least significant byte first, as all numbers |
//! | 1, n | length and text of the program's version |
//! | 32, 32 | the public packet keys of sender and receiver |
//! | 8 | the run |
//! | 1 | the direction |
//! | 8 | the number in this run and direction |
//! | rest | the body |
//!
//! This layout stays when the protocol changes, so that programs of two versions can tell each
//! other apart.

use crate::identity::{Identity, PacketKey, SIGNATURE_BYTES};
use crate::wire::{PROTOCOL, VERSION};

/// What is signed begins with this, so that no signature means anything elsewhere.
const DOMAIN: &[u8] = b"tapstone packet 1\0";

const MAGIC: &[u8] = b"tapstone";

/// What an envelope has besides its body, at most.
pub(crate) const ENVELOPE_BYTES: usize = MAGIC.len() + SIGNATURE_BYTES + 4 + 256 + 64 + 8 + 1 + 8;

/// Which way a body goes, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Direction {
    /// A coordinator asks an agent.
    Question = 0,
    /// An agent answers a coordinator.
    Answer = 1,
    /// A packet of a run, to its agent.
    ToAgent = 2,
    /// A packet of a run, to its coordinator.
    ToCoordinator = 3,
}

/// What is said besides the body, all of it signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) from: Identity,
    pub(crate) to: Identity,
    /// The number of the run, which its coordinator drew at random.
    pub(crate) run: u64,
    pub(crate) direction: Direction,
    /// Grows with every envelope of a sender in this run and direction; an answer has the number
    /// of its question.
    pub(crate) number: u64,
}

/// An envelope whose signature was checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) head: Head,
    /// The protocol and the version of the program that signed it.
    pub(crate) protocol: u32,
    pub(crate) version: &'a str,
    pub(crate) body: &'a [u8],
}

impl Opened<'_> {
    /// Its sender and this program understand each other.
    pub(crate) fn is_ours(&self) -> bool {
        self.protocol == PROTOCOL && self.version == VERSION
    }
}

/// Why what arrived is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dropped {
    /// It is no envelope, or its signature is not its sender's.
    Unsigned,
    /// It is of or for somebody else, or of another run.
    Foreign,
    /// It has come before.
    Replayed,
}

/// A body with its head, signed by the sender: the form in which it travels.
pub(crate) fn seal(key: &PacketKey, head: &Head, body: &[u8]) -> Vec<u8> {
    let mut signed = DOMAIN.to_vec();
    signed.extend(PROTOCOL.to_le_bytes());
    signed.push(VERSION.len() as u8);
    signed.extend(VERSION.as_bytes());
    signed.extend(head.from.0);
    signed.extend(head.to.0);
    signed.extend(head.run.to_le_bytes());
    signed.push(head.direction as u8);
    signed.extend(head.number.to_le_bytes());
    signed.extend(body);
    let signature = key.sign(&signed);
    [MAGIC, &signature, &signed[DOMAIN.len()..]].concat()
}

/// Takes apart what came for `to` in this direction, and checks who signed it. The caller says
/// whether the sender may speak before the signature is checked, which is what takes time.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    to: Identity,
    direction: Direction,
    may_speak: impl FnOnce(&Head) -> bool,
) -> Result<Opened<'a>, Dropped> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Dropped::Unsigned)?;
    let (signature, rest) = rest.split_at_checked(SIGNATURE_BYTES).ok_or(Dropped::Unsigned)?;
    let opened = parse(rest).ok_or(Dropped::Unsigned)?;
    let head = opened.head;
    if head.to != to || head.direction != direction || !may_speak(&head) {
        return Err(Dropped::Foreign);
    }
    let signed = [DOMAIN, rest].concat();
    if head.from.signed(&signed, signature) { Ok(opened) } else { Err(Dropped::Unsigned) }
}

fn parse(bytes: &[u8]) -> Option<Opened<'_>> {
    let mut rest = bytes;
    let protocol = u32::from_le_bytes(take(&mut rest)?);
    let [length] = take(&mut rest)?;
    let (version, after) = rest.split_at_checked(usize::from(length))?;
    rest = after;
    let from = Identity(take(&mut rest)?);
    let to = Identity(take(&mut rest)?);
    let run = u64::from_le_bytes(take(&mut rest)?);
    let direction = match take(&mut rest)? {
        [0] => Direction::Question,
        [1] => Direction::Answer,
        [2] => Direction::ToAgent,
        [3] => Direction::ToCoordinator,
        _ => return None,
    };
    let number = u64::from_le_bytes(take(&mut rest)?);
    let version = std::str::from_utf8(version).ok()?;
    let head = Head { from, to, run, direction, number };
    Some(Opened { head, protocol, version, body: rest })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::test_key;
    use proptest::prelude::*;

    fn sealed() -> (PacketKey, Identity, Vec<u8>) {
        let key = test_key();
        let to = test_key().identity();
        let direction = Direction::ToAgent;
        let head = Head { from: key.identity(), to, run: 7, direction, number: 3 };
        let bytes = seal(&key, &head, b"body");
        (key, to, bytes)
    }

    #[test]
    fn what_was_sealed_opens_for_its_receiver_only() {
        let (key, to, bytes) = sealed();
        let opened = open(&bytes, to, Direction::ToAgent, |_| true).unwrap();
        assert_eq!(
            (opened.head.from, opened.head.run, opened.body),
            (key.identity(), 7, &b"body"[..])
        );
        assert!(opened.is_ours());
        let foreign = Err(Dropped::Foreign);
        assert_eq!(open(&bytes, key.identity(), Direction::ToAgent, |_| true), foreign);
        assert_eq!(open(&bytes, to, Direction::Question, |_| true), foreign);
        assert_eq!(open(&bytes, to, Direction::ToAgent, |head| head.run == 8), foreign);
    }

    proptest! {
        /// Not one bit can be changed, whichever it is, and nothing cut off or added.
        #[test]
        fn a_changed_envelope_never_opens(bit in 0usize..8 * 180, cut in 0usize..180) {
            let (_, to, bytes) = sealed();
            let mut changed = bytes.clone();
            let bit = bit % (8 * bytes.len());
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(open(&changed, to, Direction::ToAgent, |_| true).is_err());
            let shorter = &bytes[..cut.min(bytes.len() - 1)];
            prop_assert!(open(shorter, to, Direction::ToAgent, |_| true).is_err());
            let longer = [&bytes[..], b"x"].concat();
            prop_assert!(open(&longer, to, Direction::ToAgent, |_| true).is_err());
        }
    }
}
