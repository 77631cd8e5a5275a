//! What the detectors of repeated questions to a token have in common: its calls in their order,
//! what changes objects, and what goes along with a call that is not made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use tapstone_events::SHAPE_BITS;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{changes_token, makes_object};

use super::Removed;
use super::scene::Scene;
use super::stretches::Stretches;
use crate::timeline::{Family, Kind, Span, Thread};

/// Calls of PKCS#11 that no other one of PKCS#11 made, of all threads, in the order in which they
/// ended: a proxy's own calls of a module are one matter with the call of the proxy.
pub(super) fn outermost_calls<'a>(scene: &Scene<'a>) -> impl Iterator<Item = (usize, &'a Span)> {
    let timeline = scene.timeline;
    let is_pkcs11 = move |span: &Span| timeline.call(span.call).family == Family::Pkcs11;
    // Of one thread none lies in another, so that they end in the order in which they began.
    let mut threads: Vec<_> = timeline
        .threads
        .iter()
        .map(|thread| {
            let is_outermost =
                move |span: &&Span| is_pkcs11(span) && !thread.path(span.parent).any(is_pkcs11);
            thread.spans.iter().filter(is_outermost).peekable()
        })
        .collect();
    let next = |(number, calls): (usize, &mut Peekable<_>)| {
        calls.peek().map(|span: &&Span| Reverse((span.end, number)))
    };
    let mut ends: BinaryHeap<_> = threads.iter_mut().enumerate().filter_map(next).collect();
    std::iter::from_fn(move || {
        let Reverse((_, number)) = ends.pop()?;
        let span = threads[number].next()?;
        ends.extend(next((number, &mut threads[number])));
        Some((number, span))
    })
}

/// Whether the objects of a token can be others after a call, to a program that sees nothing else.
pub(super) fn changes_objects(function: &str) -> bool {
    makes_object(function) || changes_token(function) || function == "C_Finalize"
}

/// The object whose attributes a call reads; 0 where that is not known.
pub(super) fn object_of(span: &Span) -> u64 {
    span.operand >> SHAPE_BITS
}

/// From the beginning of a call to its end.
pub(super) fn stretch_of(thread: usize, span: &Span) -> Removed {
    Removed { thread, start: span.start, end: span.end }
}

/// The thread's outermost calls that begin at a moment or later.
pub(super) fn spans_from(thread: &Thread, from: Nanos) -> impl Iterator<Item = &Span> {
    let first = thread.spans.partition_point(|span| span.start < from);
    thread.spans[first..].iter().filter(|span| span.parent.is_none())
}

/// What may go with a call, or several in a row, that are not made: what the thread does with the
/// answer, up to its next call, and what it did to ask. Where that began is not seen: it is taken to
/// be no longer than what follows, and to begin after the call before.
pub(super) fn around(scene: &Scene<'_>, unit: &Removed) -> impl Iterator<Item = Removed> {
    around_with(scene, unit, Preparation::AsLongAsUse)
}

/// How long a thread may have prepared a call, after the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Preparation {
    /// No longer than it uses the answer.
    AsLongAsUse,
    /// All the time: a key that is imported is read, checked and converted before.
    SinceTheCallBefore,
}

/// The same with what is known of how the call is prepared.
pub(super) fn around_with(
    scene: &Scene<'_>,
    unit: &Removed,
    preparation: Preparation,
) -> impl Iterator<Item = Removed> {
    let number = unit.thread;
    let thread = &scene.timeline.threads[number];
    let next = spans_from(thread, unit.end).next();
    let following =
        next.map_or_else(Stretches::default, |next| works(scene, thread, unit.end, next.start));
    let before = thread.spans.partition_point(|span| span.start < unit.start);
    let before = thread.spans[..before].iter().rev().find(|span| span.parent.is_none());
    let earliest = match preparation {
        Preparation::AsLongAsUse => unit.start - following.total(),
        Preparation::SinceTheCallBefore => thread.start,
    };
    let asks_from = before.map_or(earliest, |before| earliest.max(before.end));
    let asking = works(scene, thread, asks_from, unit.start);
    let all: Vec<_> = asking.iter().chain(following.iter()).collect();
    all.into_iter().map(move |(start, end)| Removed { thread: number, start, end })
}

/// When a thread works between two calls: not while it is known to wait.
pub(super) fn works(scene: &Scene<'_>, thread: &Thread, start: Nanos, end: Nanos) -> Stretches {
    let gap: Stretches = [(start, end)].into_iter().filter(|(start, end)| start < end).collect();
    let first = thread.leaves.partition_point(|leaf| leaf.start < start);
    let inside = thread.leaves[first..].iter().take_while(|leaf| leaf.start < end);
    let waited = inside.filter(|leaf| super::waited(scene.timeline, leaf));
    let waits: Stretches = waited.map(|leaf| (leaf.start, leaf.end)).collect();
    gap.without(&waits)
}

/// Waits for a lock in calls of the module while another thread searched.
pub(super) fn blocked(scene: &Scene<'_>, module: &str, searching: &Stretches) -> Vec<Removed> {
    let mut blocked = Vec::new();
    for (number, thread) in scene.threads() {
        for leaf in &thread.leaves {
            let in_module = scene
                .around(thread, leaf)
                .is_some_and(|(_, span)| scene.timeline.call(span.call).module == module);
            if scene.kind(leaf) != Some(Kind::Lock) || !in_module {
                continue;
            }
            let stretches = searching.between(leaf.start, leaf.end);
            blocked.extend(stretches.map(|(start, end)| Removed { thread: number, start, end }));
        }
    }
    blocked
}
