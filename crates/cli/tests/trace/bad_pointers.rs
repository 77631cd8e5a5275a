//! Pointers to nothing: where the function or the kernel only says so, the program lives on when it
//! is watched too.

use crate::fixtures;
use crate::program::{Program, call};

#[test]
fn a_program_with_pointers_to_nothing_is_told_what_it_is_told_alone() {
    let Some(module) = fixtures::built("stand-in-sleepy") else { return };
    let program = Program::new(fixtures::built("bad-pointers").unwrap()).arg(module);
    let record = program.unchanged().exits(0).whole();
    // Each call was seen: a path that has no end, and then four pointers.
    for (function, count) in [("open", 5), ("stat", 5), ("poll", 8), ("connect", 12)] {
        let calls = record.calls.iter().filter(|call| call.function == function);
        assert_eq!(calls.map(|call| call.count).sum::<u64>(), count, "{function}");
    }
    let found = call(&record, "stand-in-sleepy.so", "C_FindObjectsInit");
    assert_eq!((found.count, found.failed["CKR_FUNCTION_FAILED"]), (4, 4));
}

/// What a function of that name returns says nothing of what it was given, unless it is the C
/// library's.
#[test]
fn a_function_of_the_programs_own_is_given_what_it_likes() {
    let Some(program) = fixtures::built("own-names") else { return };
    let left = Program::new(program).unchanged().exits(0);
    assert_eq!(left.stdout, "0 0\n");
    let record = left.record();
    for function in ["access", "stat"] {
        assert!(record.calls.iter().any(|call| call.function == function), "{:?}", record.calls);
    }
}

/// Fixes look at what calls point to as well.
#[test]
fn fixes_leave_pointers_to_nothing_to_the_function() {
    let Some(module) = fixtures::built("stand-in-sleepy") else { return };
    let program = Program::new(fixtures::built("bad-pointers").unwrap()).arg(module);
    let bare = program.bare().exits(0);
    for fixes in [
        "--fix no-sleep:program --fix no-busy-wait:program --fix cache-apdu --fix whole-read",
        "--fix cache-find --fix cache-attributes --fix keep-login --fix keep-session",
    ] {
        let fixed = program.traced_with(fixes).exits(0);
        assert_eq!(fixed.stdout, bare.stdout, "{fixes}");
    }
}
