//! Calls that are left without returning: their spans end there, and what follows is not in them.

use tapstone_explain::timeline::End;

use crate::program::{Program, Seen, call, spans, stdout};
use crate::{fixtures, said, trouble};

/// Of each round C_Sign was abandoned before C_Digest began, and C_Digest is inside nothing.
#[track_caller]
fn rounds(seen: &Seen, rounds: usize) {
    assert_eq!((seen.timeline.dropped, &seen.warnings), (0, &Vec::new()));
    let signs = spans(seen, "C_Sign");
    let digests = spans(seen, "C_Digest");
    let left: Vec<_> = signs.iter().filter(|(_, span)| span.end_kind == End::Abandoned).collect();
    assert_eq!((left.len(), digests.len()), (rounds, rounds));
    for ((_, sign), (thread, digest)) in left.iter().zip(&digests) {
        assert_eq!((digest.end_kind, digest.parent), (End::Returned, None));
        assert!(sign.end <= digest.start, "{sign:?} {digest:?}");
        assert!(!thread.spans.iter().any(|span| span.end_kind == End::Open));
    }
}

#[test]
fn a_callback_jumps_out_of_a_call() {
    let Some(program) = trouble("jump", 50) else { return };
    let record = program.unchanged().exits(0).whole();
    let sign = call(&record, "stand-in.so", "C_Sign");
    assert_eq!((sign.count, sign.failed.values().sum::<u64>()), (50, 50));
    rounds(&program.seen(), 50);
}

/// The sleep inside the call ends with it.
#[test]
fn a_signal_handler_jumps_out_of_a_sleep() {
    let Some(program) = trouble("alarm", 50) else { return };
    assert_eq!(said(&program.unchanged().exits(0).stdout), 50);
    let seen = program.seen();
    rounds(&seen, 50);
    for thread in &seen.timeline.threads {
        for leaf in thread.leaves.iter().filter(|leaf| leaf.parent.is_some()) {
            let around = &thread.spans[leaf.parent.unwrap().index()];
            assert!(leaf.end <= around.end, "{leaf:?} in {around:?}");
        }
    }
}

#[test]
fn an_exception_leaves_a_call() {
    let Some((thrower, module)) = fixtures::built("thrower").zip(fixtures::built("stand-in"))
    else {
        return;
    };
    let program = Program::new(thrower).arg(module).arg("50");
    program.unchanged().exits(0).whole();
    let seen = program.seen();
    assert_eq!(stdout(&seen), "50 exceptions\n");
    rounds(&seen, 50);
}
