//! Workloads come back as they were written, and nothing else is believed.

use proptest::prelude::*;

use super::*;

fn any_call() -> impl Strategy<Value = WorkloadCall> {
    let names = ["C_SignInit", "C_Sign", "C_FindObjectsInit", "C_OpenSession", "C_GetInfo"];
    let times = (0..LONGEST, 0..LONGEST, 0..LONGEST);
    let numbers = (0..9_u32, proptest::option::of(0..=0x8000_0001_u64), 0..9_u32);
    let sizes = (any::<u32>(), any::<u32>(), 0..1_u64 << 41, any::<u32>(), 0..0x200_u64);
    (proptest::sample::select(names.to_vec()), times, numbers, sizes, 0..=FLAGS).prop_map(
        |(function, (computing, waiting, duration), (session, mechanism, object), sizes, flags)| {
            WorkloadCall {
                function,
                computing: Nanos(computing),
                waiting: Nanos(waiting),
                after_wait: flags & FLAG_AFTER_WAIT != 0,
                duration: Nanos(duration),
                held_up: Nanos::ZERO,
                session,
                mechanism,
                object,
                input_bytes: sizes.0,
                output_bytes: sizes.1,
                shape: TemplateShape(sizes.2),
                detail: sizes.3,
                result: sizes.4,
                only_length: flags & FLAG_ONLY_LENGTH != 0,
                on_token: flags & FLAG_ON_TOKEN != 0,
                unfinished: flags & FLAG_UNFINISHED != 0,
                fails_anew: false,
            }
        },
    )
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let calls = proptest::collection::vec(any_call(), 0..20);
    let threads = proptest::collection::vec((0..3_u32, 0..LONGEST, calls), 0..4);
    threads.prop_map(|threads| Workload {
        head: WorkloadHead { program: "signer".to_owned(), ..WorkloadHead::default() },
        threads: threads
            .into_iter()
            .map(|(process, start, calls)| WorkloadThread { process, start: Nanos(start), calls })
            .collect(),
    })
}

fn signatures(count: usize) -> Workload {
    let call = |at: usize| {
        let name = if at.is_multiple_of(2) { "C_SignInit" } else { "C_Sign" };
        let noise = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        WorkloadCall {
            computing: Nanos(2_000 + noise),
            duration: Nanos(700_000 + 3 * noise),
            held_up: Nanos::ZERO,
            session: 1,
            mechanism: (at.is_multiple_of(2)).then_some(1),
            object: u32::from(at.is_multiple_of(2)),
            input_bytes: 32,
            output_bytes: 256,
            ..WorkloadCall::named(name)
        }
    };
    let calls = (0..2 * count).map(call).collect();
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    Workload { threads, ..Workload::default() }
}

proptest! {
    #[test]
    fn what_was_written_is_read(workload in any_workload()) {
        let bytes = bytes_of_workload(&workload).unwrap();
        prop_assert_eq!(workload_of_bytes(bytes, WorkloadLimits::default()).unwrap(), workload);
    }

    #[test]
    fn a_file_that_was_cut_or_changed_is_refused_or_read_as_something(
        at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut bytes = bytes_of_workload(&signatures(50)).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let limits = WorkloadLimits { calls: 1_000, threads: 10, numbers: 1_000 };
        if let Ok(read) = workload_of_bytes(bytes, limits) {
            prop_assert!(read.threads.iter().map(|it| it.calls.len()).sum::<usize>() <= 1_000);
        }
    }
}

#[test]
fn an_operation_takes_less_than_forty_bytes() {
    let count = 20_000;
    let bytes = bytes_of_workload(&signatures(count)).unwrap();
    assert!(bytes.len() < 40 * count, "{} bytes for {count} operations", bytes.len());
}

#[test]
fn more_than_the_limits_allow_is_refused_with_a_sentence() {
    let bytes = bytes_of_workload(&signatures(50)).unwrap();
    let refused = |limits| workload_of_bytes(bytes.clone(), limits).unwrap_err();
    let limits = WorkloadLimits { calls: 99, ..WorkloadLimits::default() };
    assert!(refused(limits).contains("100 calls"), "{}", refused(limits));
    let limits = WorkloadLimits { threads: 0, ..WorkloadLimits::default() };
    assert!(refused(limits).contains("1 threads"), "{}", refused(limits));
    let limits = WorkloadLimits { numbers: 0, ..WorkloadLimits::default() };
    assert!(refused(limits).contains("session 1 is too high"), "{}", refused(limits));
}

#[test]
fn what_is_no_workload_is_refused() {
    for bytes in [&b""[..], b"PAR1", b"PAR1\0\0\0\0PAR1", b"not a workload at all, but long"] {
        assert!(workload_of_bytes(bytes.to_vec(), WorkloadLimits::default()).is_err());
    }
}

/// Found by the fuzz target: a page of 2 KB that asks for a gigabyte.
#[test]
fn a_dictionary_longer_than_its_page_is_refused() {
    const FILE: &[u8] =
        include_bytes!("../../../../fuzz/corpus/workload/dictionary-longer-than-its-page");
    let refused = workload_of_bytes(FILE.to_vec(), WorkloadLimits::default()).unwrap_err();
    assert!(refused.contains("a dictionary says that it is longer"), "{refused}");
}

#[test]
fn the_list_of_columns_names_them_all_and_nothing_of_the_calls() {
    for (name, _) in COLUMNS {
        assert!(LISTED_COLUMNS.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    let bytes = bytes_of_workload(&signatures(7)).unwrap();
    assert!(footer(&bytes).unwrap().starts_with(&LISTED_COLUMNS));
}

#[test]
fn a_column_of_another_name_or_type_is_refused() {
    let bytes = bytes_of_workload(&signatures(4)).unwrap();
    let changed = |from: &[u8], to: &[u8]| {
        let start = bytes.len() - 8 - footer(&bytes).unwrap().len();
        let at = start + bytes[start..].windows(from.len()).position(|it| it == from).unwrap();
        let changed = [&bytes[..at], to, &bytes[at + from.len()..]].concat();
        workload_of_bytes(changed, WorkloadLimits::default()).unwrap_err()
    };
    assert!(changed(b"session", b"sessiom").contains("its columns are not"));
    // Before a name stand its type and that it is required: 1 is INT32, 2 is INT64 (zigzag).
    assert!(
        changed(b"\x15\x02\x25\x00\x18\x07session", b"\x15\x04\x25\x00\x18\x07session")
            .contains("its columns are not")
    );
}

/// Of columns that a file says it has, however many, no room is made.
#[test]
fn two_thousand_million_columns_take_no_memory() {
    let bytes = bytes_of_workload(&signatures(4)).unwrap();
    // The root of the schema in Thrift's compact protocol: its name, then its number of children as
    // field 5, an i32.
    let root = b"workload\x15\x1c";
    let at = bytes.windows(root.len()).rposition(|window| window == root).unwrap() + 9;
    let many = [0xFE, 0xFF, 0xFF, 0xFF, 0x0F];
    let mut hostile = [&bytes[..at], &many, &bytes[at + 1..]].concat();
    let length = hostile.len() - 8;
    let footer = u32::from_le_bytes(hostile[length..length + 4].try_into().unwrap()) + 4;
    hostile[length..length + 4].copy_from_slice(&footer.to_le_bytes());
    let refused = workload_of_bytes(hostile, WorkloadLimits::default()).unwrap_err();
    assert!(refused.contains("its columns are not"), "{refused}");
}

#[test]
fn a_transaction_that_is_no_function_is_refused_and_so_is_a_time_without_end() {
    let mut workload = signatures(4);
    workload.head.transaction = Some("\u{1b}[2J".to_owned());
    let refused =
        workload_of_bytes(bytes_of_workload(&workload).unwrap(), WorkloadLimits::default());
    assert!(refused.unwrap_err().contains("is no function of PKCS#11"));
    let mut workload = signatures(4);
    workload.head.wall_ns = Nanos(u64::MAX);
    let refused =
        workload_of_bytes(bytes_of_workload(&workload).unwrap(), WorkloadLimits::default());
    assert!(refused.unwrap_err().contains("ten years"));
}
