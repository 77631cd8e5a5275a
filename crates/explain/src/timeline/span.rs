//! A call, in as few bytes as hold all that is known of it.

use tapstone_measure::units::Nanos;

use super::{End, ExchangeId, FunctionId, Place, TextId};

/// A call of PKCS#11, PC/SC or a reader driver.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When the call began, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// Its end; the thread's when it never returned.
    pub end: Nanos,
    /// The function that was called.
    pub call: FunctionId,
    /// The call around it: an index into the thread's spans.
    pub parent: Option<Place>,
    /// Whether it returned, was cut short, or was never seen to end.
    pub end_kind: End,
    /// What it returned: CK_RV, or the error code of PC/SC or the driver.
    pub result: u64,
    /// Its first argument: a session, a context, a card.
    pub handle: u64,
    /// Its second: a mechanism, a slot, a time limit in milliseconds; of C_FindObjectsInit a digest
    /// of the template.
    pub detail: u64,
    /// Of a call of PKCS#11 what it works on, as in `CallBegun::operand`: the bytes of a message,
    /// or of a part of one.
    pub operand: u64,
    /// What it gave beside its result.
    pub(crate) outcome: Outcome,
    /// What it said to a card, or which reader it took.
    pub(crate) about: Option<About>,
    /// It made an object that stays on the token (CKA_TOKEN).
    pub on_token: bool,
}

/// There are millions of them.
const _: () = assert!(size_of::<Span>() <= 72);

impl Span {
    /// From entry to return.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.end - self.start
    }

    /// What it made: a session, a card, a context, or a number of objects.
    #[must_use]
    pub fn made(&self) -> u64 {
        match self.outcome {
            Outcome::Made(made) => made.get(),
            Outcome::Found { count, .. } => u64::from(count.get()),
        }
    }

    /// A digest of the objects that C_FindObjects found; 0 of all else.
    #[must_use]
    pub fn answer(&self) -> u32 {
        match self.outcome {
            Outcome::Made(_) => 0,
            Outcome::Found { digest, .. } => digest.get(),
        }
    }

    /// What it said to a card.
    #[must_use]
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self.about? {
            About::Exchange(id) => Some(id.get()),
            About::Reader(_) => None,
        }
    }

    /// A reader's name, where it takes one.
    #[must_use]
    pub fn text(&self) -> Option<TextId> {
        match self.about? {
            About::Reader(name) => Some(name.get()),
            About::Exchange(_) => None,
        }
    }

    /// It returned then; not before it was called, whatever a file says.
    pub(crate) fn end_at(&mut self, moment: Nanos) {
        self.end = moment.max(self.start);
    }
}

/// What a call gave beside its result, as in `CallOutcome`. A card's response is in its exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// A session, a card, a context or an object, or a length in bytes; 0 where there is nothing.
    Made(Unaligned<u64>),
    /// Objects of a token.
    Found {
        /// How many objects there are.
        count: Unaligned<u32>,
        /// A digest of their handles.
        digest: Unaligned<u32>,
    },
}

impl Outcome {
    pub(crate) const NOTHING: Self = Self::made(0);

    pub(crate) const fn made(made: u64) -> Self {
        Self::Made(Unaligned(made))
    }

    pub(crate) const fn found(count: u32, digest: u32) -> Self {
        Self::Found { count: Unaligned(count), digest: Unaligned(digest) }
    }
}

/// What a call is about, beside numbers. No call sends a command and takes a reader's name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// A command to a card, and its response.
    Exchange(Unaligned<ExchangeId>),
    /// A reader, by its name.
    Reader(Unaligned<TextId>),
}

impl About {
    pub(crate) const fn exchange(id: ExchangeId) -> Self {
        Self::Exchange(Unaligned(id))
    }

    pub(crate) const fn reader(name: TextId) -> Self {
        Self::Reader(Unaligned(name))
    }

    /// The same in a timeline that has so many exchanges and so many texts before these.
    pub(super) fn renumbered(self, exchanges: u32, texts: u32) -> Self {
        let after = |place: Place, before| Place::new(place.get() + before);
        match self {
            Self::Exchange(id) => Self::exchange(ExchangeId(after(id.get().0, exchanges))),
            Self::Reader(name) => Self::reader(TextId(after(name.get().0, texts))),
        }
    }
}

/// A value at any address. An enum of these is one byte longer than the longest of them, not eight.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed)]
pub(crate) struct Unaligned<T>(T);

impl<T: Copy> Unaligned<T> {
    const fn get(self) -> T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_has_a_count_and_a_digest() {
        assert_eq!(size_of::<Outcome>(), 9);
        let told = |outcome| {
            let span = Span { outcome, ..crate::samples::signature().threads[0].spans[0] };
            (span.made(), span.answer())
        };
        assert_eq!(told(Outcome::NOTHING), (0, 0));
        for made in [1, u64::from(u32::MAX), u64::from(u32::MAX) + 1, 1 << 63, u64::MAX] {
            assert_eq!(told(Outcome::made(made)), (made, 0));
        }
        for (count, digest) in [(0, 0), (0, 7), (7, 0), (u32::MAX, 1), (1, u32::MAX)] {
            assert_eq!(told(Outcome::found(count, digest)), (u64::from(count), digest));
        }
        assert_eq!(told(Outcome::found(u32::MAX, u32::MAX)), (u64::from(u32::MAX), u32::MAX));
    }

    #[test]
    fn an_exchange_and_a_reader_are_told_apart() {
        assert_eq!(size_of::<Option<About>>(), 5);
        let about = |about| Span { about, ..crate::samples::signature().threads[0].spans[0] };
        let told = |span: &Span| (span.exchange(), span.text());
        assert_eq!(told(&about(None)), (None, None));
        for place in [0, 1, u32::MAX - 11] {
            let exchange = ExchangeId(Place::new(place));
            let reader = TextId(Place::new(place));
            assert_eq!(told(&about(Some(About::exchange(exchange)))), (Some(exchange), None));
            assert_eq!(told(&about(Some(About::reader(reader)))), (None, Some(reader)));
            let renumbered = |what: About| about(Some(what.renumbered(7, 10)));
            let exchange_after = ExchangeId(Place::new(place + 7));
            let reader_after = TextId(Place::new(place + 10));
            let moved = renumbered(About::exchange(exchange));
            assert_eq!(told(&moved), (Some(exchange_after), None));
            let moved = renumbered(About::reader(reader));
            assert_eq!(told(&moved), (None, Some(reader_after)));
        }
    }
}
