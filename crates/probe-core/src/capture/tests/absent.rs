//! Arguments that point to nothing, and answers that say more than was asked for.

use super::*;

#[test]
fn what_is_not_there_is_not_read() {
    let nothing = ProgramMemory::of_call(&Frame::new(0, [0; 6]), |_| false);
    let bad = [7, 8, 9, 8, 9, 8];
    let stack = [8, 8];
    for name in ["C_SignInit", "C_FindObjectsInit", "C_CreateObject", "C_UnwrapKey", "SCardConnect"]
    {
        let mut frame = call(name, bad);
        frame.stack = stack.as_ptr();
        // SAFETY: nothing is there.
        let kept = unsafe { capture_beginning(frame.function, &frame, rules(0), &nothing) };
        assert_eq!((kept.words[2] & !9, kept.bytes, kept.flags), (0, &[][..], 0), "{name}");
    }
    let mut transmit = Transmit::new("SCardTransmit", &[0; 5], &[]).frame;
    transmit.arguments[2] = 8;
    // SAFETY: as above.
    let kept = unsafe { capture_beginning(transmit.function, &transmit, rules(0), &nothing) };
    assert_eq!((kept.words, kept.bytes), ([5, 0, 5], &[][..]));
    for name in
        ["open", "openat", "fopen", "stat", "access", "connect", "nanosleep", "poll", "select"]
    {
        let mut frame = call(name, [8, 8, 8, 0, 8, 0]);
        let kind = crate::names::libc_kind(frame.function).unwrap();
        // SAFETY: as above.
        unsafe {
            let LeafWords { a, .. } = capture_leaf(frame.function, kind, &frame, &nothing);
            assert!([0, 8, u64::MAX].contains(&a), "{name}");
            assert_eq!(leaf_bytes(frame.function, kind, &frame, &nothing), b"", "{name}");
        }
        frame.result = u64::MAX;
        // SAFETY: as above.
        assert_eq!(unsafe { polled_descriptor(frame.function, &frame) }, None, "{name}");
    }
}

#[test]
fn a_module_that_finds_more_than_was_asked_for_is_not_believed() {
    let objects = [5_u64, 6];
    let count = 60_000_u64;
    let found = end(&call("C_FindObjects", [7, at(&objects), 2, at(&count), 0, 0]));
    assert_eq!(found as u32, 2);
}
