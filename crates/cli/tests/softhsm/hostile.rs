//! A module that answers what cannot be: nothing of it is taken for a result, with verification or
//! without. What Tapstone says is held against the module's own log of what it did.
//!
//! `TAPSTONE_INJECTIONS=10000` makes the run of `injections` as long as that; it is in
//! docs/evidence.md.

use std::collections::BTreeMap;
use std::fs;

use tapstone_record::{CaseResult, Outcome as Ended};

use crate::support::{Hsm, Outcome, Tapstone, hostile_module};

/// Faults that are seen without knowing the right answer, and what they are called.
const STRUCTURAL: [(&str, &str); 10] = [
    ("length-beyond", "returned a length beyond the buffer"),
    ("length-next", "returned a length beyond the buffer"),
    ("length-ones", "returned a length beyond the buffer"),
    ("length-top", "returned a length beyond the buffer"),
    ("length-short", "returned a length that the result cannot have"),
    ("length-zero", "returned a length that the result cannot have"),
    ("nothing", "returned CKR_OK without output"),
    ("half", "left the end of its output unwritten"),
    ("input", "changed its input"),
    ("code", "returned a code that PKCS #11 does not have"),
];

/// Faults that only the right answer tells.
const CONTENT: [&str; 2] = ["stale", "flipped"];

/// Operations whose answers are spoilt. The IV of GCM is another one each time, so that the output
/// of an earlier operation is wrong.
const OPERATIONS: [&str; 5] = [
    "rsa2048.sign",
    "ecdsa-p256.sign",
    "aes256-gcm.encrypt",
    "aes256-cbc.decrypt",
    "sha256.digest",
];

/// What one run was made to suffer, by fault, and what became of it.
struct Spoilt {
    /// Injections in the window, by fault.
    injected: BTreeMap<String, u64>,
    row: CaseResult,
    outcome: Outcome,
}

impl Spoilt {
    fn measure(tapstone: Tapstone, faults: &str, count: u64, seed: u64) -> Self {
        let log = tapstone.path("injections");
        let outcome = tapstone
            .args(&format!("--count {count} --seed {seed}"))
            .env("HOSTILE_MODULE_FAULTS", faults)
            .env("HOSTILE_MODULE_SEED", seed.to_string())
            .env("HOSTILE_MODULE_LOG", &log)
            .run();
        let log = fs::read_to_string(outcome.path("injections")).unwrap_or_default();
        let row = outcome.row();
        let injected = injections_counted(&log, &row);
        Self { injected, row, outcome }
    }

    fn injected(&self) -> u64 {
        self.injected.values().sum()
    }

    fn failed(&self) -> u64 {
        self.row.failed.values().sum()
    }

    fn wrong(&self) -> u64 {
        wrong(&self.row)
    }
}

fn wrong(row: &CaseResult) -> u64 {
    row.verification.as_ref().map_or(0, |verification| verification.wrong)
}

/// How many answers were spoilt in operations that count, by fault. These end in the window; the
/// first of them can have been spoilt before it opened, and only the first: there is one thread.
fn injections_counted(log: &str, row: &CaseResult) -> BTreeMap<String, u64> {
    let opened_ns = row.window.as_ref().map_or(0, |window| window.start_ns.0);
    let noted = log.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].to_owned(), words[2].parse::<u64>().unwrap())
    });
    let (before, within): (Vec<_>, Vec<_>) = noted.partition(|(_, at_ns)| *at_ns < opened_ns);
    let found = row.failed.values().sum::<u64>() + wrong(row);
    let opening = before.last().filter(|_| found == within.len() as u64 + 1);
    let mut injected = BTreeMap::new();
    for (fault, _) in within.iter().chain(opening) {
        *injected.entry(fault.clone()).or_default() += 1;
    }
    injected
}

/// Every injection is a failure of the right name, or a wrong result; and the run is not ok.
fn assert_none_accepted(operation: &str, spoilt: &Spoilt) {
    let found = format!(
        "{operation}: {:?} injected; failed {:?}, wrong {}, {:?}",
        spoilt.injected,
        spoilt.row.failed,
        spoilt.wrong(),
        spoilt.row.status
    );
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (fault, name) in STRUCTURAL {
        if let Some(count) = spoilt.injected.get(fault) {
            *expected.entry(name.to_owned()).or_default() += count;
        }
    }
    assert_eq!(spoilt.row.failed, expected, "{found}");
    let content = CONTENT.iter().filter_map(|fault| spoilt.injected.get(*fault)).sum::<u64>();
    assert_eq!(spoilt.wrong(), content, "{found}");
    if !expected.is_empty() {
        assert_ne!(spoilt.row.status.outcome, Ended::Ok, "{found}");
    }
}

fn every_structural_fault() -> String {
    STRUCTURAL.map(|(fault, _)| fault).join(",")
}

/// One operation is tried before the warm-up.
const TRIAL: u64 = 1;

/// The trial operation is left alone.
fn spoiling(hsm: &Hsm, operation: &str) -> Tapstone {
    hsm.behind_hostile_module()
        .args("--op")
        .arg(operation)
        .env("HOSTILE_MODULE_AFTER", "1")
        .env("HOSTILE_MODULE_EVERY", "4")
}

#[test]
fn injections_are_failures_or_wrong_results_and_none_is_accepted() {
    let Some(hsm) = Hsm::new() else { return };
    let wanted: u64 =
        std::env::var("TAPSTONE_INJECTIONS").map_or(400, |count| count.parse().unwrap());
    // One call in four is spoilt; both ways, with verification and without.
    let count = (4 * wanted).div_ceil(2 * OPERATIONS.len() as u64) + 40;
    let mut injected: BTreeMap<String, u64> = BTreeMap::new();
    for (seed, operation) in (1..).zip(OPERATIONS) {
        let structural = every_structural_fault();
        let unverified = spoiling(&hsm, operation).args("--no-verify");
        let unverified = Spoilt::measure(unverified, &structural, count, seed);
        assert_none_accepted(operation, &unverified);
        let stale = operation == "aes256-gcm.encrypt";
        let content = if stale { "flipped,stale" } else { "flipped" };
        let all = format!("{structural},{content}");
        let verified = Spoilt::measure(spoiling(&hsm, operation), &all, count, seed + 100);
        assert_none_accepted(operation, &verified);
        for spoilt in [unverified, verified] {
            assert!(spoilt.failed() + spoilt.wrong() == spoilt.injected());
            spoilt.outcome.exits(2);
            for (fault, count) in spoilt.injected {
                *injected.entry(fault).or_default() += count;
            }
        }
    }
    let all: u64 = injected.values().sum();
    println!("{all} injections, none accepted: {injected:?}");
    assert!(all >= wanted, "{all} of {wanted}: {injected:?}");
    assert_eq!(injected.len(), STRUCTURAL.len() + CONTENT.len(), "every fault: {injected:?}");
}

/// How many answers the note on operations outside the window counts.
fn noted_outside(row: &CaseResult) -> u64 {
    let notes = row.warnings.iter().filter_map(|note| note.strip_prefix("outside the window, "));
    let counts = notes.map(|note| note.split(' ').next().unwrap().parse::<u64>().unwrap());
    counts.sum()
}

/// The warm-up is no place to answer what cannot be, either.
#[test]
fn an_answer_in_the_warm_up_that_cannot_be_is_said() {
    let Some(hsm) = Hsm::new() else { return };
    let sign = spoiling(&hsm, "rsa2048.sign").env("HOSTILE_MODULE_EVERY", "1");
    let spoilt = Spoilt::measure(sign.env("HOSTILE_MODULE_MOST", "1"), "length-beyond", 20, 1);
    let row = &spoilt.row;
    assert!(row.failed.is_empty(), "the window was honest: {:?}", row.failed);
    assert_eq!(row.completed, 20);
    assert_eq!(row.status.outcome, Ended::Partial);
    assert_eq!(row.status.step.as_deref(), Some("C_Sign"));
    let words = "returned length 1000256 for a buffer of 256";
    assert_eq!(row.status.code.as_deref(), Some(words));
    assert_eq!(noted_outside(row), 1, "{:?}", row.warnings);
    let said = spoilt.outcome.exits(2).stdout;
    let note = "outside the window, 1 answer broke PKCS #11: C_Sign returned a length beyond the";
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(note), "{said}");
}

/// Before the warm-up's end, between it and the window, in the window, or when its end cut the
/// operation off: each injection is counted once. All threads offer the same inputs, so that two can
/// see one change, or one undo it before the other looks: that fault is for one thread.
#[test]
fn every_injection_of_a_run_is_counted_in_the_window_or_outside() {
    let Some(hsm) = Hsm::new() else { return };
    let log = hsm.path("injections");
    let all = every_structural_fault();
    let answers: Vec<&str> = all.split(',').filter(|fault| *fault != "input").collect();
    let answers = answers.join(",");
    let cases = [
        ("rsa2048.sign", "1", &all),
        ("sha256.digest", "1", &all),
        ("rsa2048.sign", "2", &answers),
        ("sha256.digest", "2", &answers),
    ];
    for (operation, threads, faults) in cases {
        fs::remove_file(&log).ok();
        let outcome = spoiling(&hsm, operation)
            .args("--no-verify --seconds 0.3 --threads")
            .arg(threads)
            .env("HOSTILE_MODULE_EVERY", "3")
            .env("HOSTILE_MODULE_FAULTS", faults)
            .env("HOSTILE_MODULE_LOG", &log)
            .run()
            .exits(2);
        let row = outcome.row();
        let injected = fs::read_to_string(&log).unwrap().lines().count() as u64;
        let counted = row.failed.values().sum::<u64>();
        let outside = noted_outside(&row);
        assert_eq!(
            counted + outside,
            injected,
            "{operation} {threads}: {:?}, {outside} outside",
            row.failed
        );
        assert!(outside > 0, "{operation}: some fell into the warm-up");
    }
}

#[test]
fn a_length_beyond_the_buffer_is_said_with_its_numbers() {
    let Some(hsm) = Hsm::new() else { return };
    let sign = spoiling(&hsm, "rsa2048.sign").env("HOSTILE_MODULE_EVERY", "1");
    let spoilt = Spoilt::measure(sign.args("--no-verify"), "length-beyond", 20, 1);
    let status = &spoilt.row.status;
    assert_eq!(status.outcome, Ended::Failed);
    assert_eq!(status.step.as_deref(), Some("C_Sign"));
    let words = "returned length 1000256 for a buffer of 256";
    assert_eq!(status.code.as_deref(), Some(words));
    spoilt.outcome.exits(2);
}

#[test]
fn a_write_beyond_the_buffer_ends_the_worker_and_not_the_run() {
    let Some(hsm) = Hsm::new() else { return };
    let sign = spoiling(&hsm, "rsa2048.sign").env("HOSTILE_MODULE_AFTER", "20");
    let spoilt = Spoilt::measure(sign.args("--no-verify"), "write-beyond", 1000, 1);
    let status = &spoilt.row.status;
    assert_ne!(status.outcome, Ended::Ok);
    assert_eq!(status.step.as_deref(), Some("C_Sign"));
    assert_eq!(status.code.as_deref(), Some("reached beyond its buffer"));
    assert_eq!(spoilt.injected(), 1);
    let outcome = spoilt.outcome.exits(2);
    assert!(outcome.stdout.contains("C_Sign: reached beyond its buffer"), "{}", outcome.stdout);
    let said = "the worker process ended (SIGSEGV) during C_Sign, which reached beyond its buffer";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("the module breaks PKCS #11"), "{}", outcome.stderr);
}

#[test]
fn a_table_or_a_list_of_interfaces_that_cannot_be_is_said() {
    let Some(hsm) = Hsm::new() else { return };
    let faults = [
        ("table-null", "C_GetFunctionList: returned CKR_OK with a null pointer"),
        ("interfaces-beyond", "C_GetInterfaceList: returned count 1000 with room for 64"),
    ];
    for (fault, words) in faults {
        let sign = spoiling(&hsm, "rsa2048.sign").env("HOSTILE_MODULE_EVERY", "1");
        let outcome = sign.env("HOSTILE_MODULE_AFTER", "0").env("HOSTILE_MODULE_FAULTS", fault);
        let outcome = outcome.run().exits(2);
        assert!(outcome.stderr.contains(words), "{fault}: {}", outcome.stderr);
    }
}

/// Objects that are made before a run of 1,000, which are then replaced by those that are kept.
const STAND_INS: u64 = 1001;

/// With verification objects are kept, and the module can give the handle of a live one.
#[test]
fn a_handle_that_is_none_or_in_use_is_no_new_object() {
    let Some(hsm) = Hsm::new() else { return };
    let generate = spoiling(&hsm, "aes256.generate")
        .env("HOSTILE_MODULE_AFTER", (TRIAL + STAND_INS).to_string());
    let spoilt = Spoilt::measure(generate, "handle-zero,handle-live", 1000, 1);
    let expected = BTreeMap::from([
        ("returned CK_INVALID_HANDLE for what it made".to_owned(), spoilt.injected["handle-zero"]),
        ("returned a handle that is in use".to_owned(), spoilt.injected["handle-live"]),
    ]);
    assert_eq!(spoilt.row.failed, expected);
    spoilt.outcome.exits(2);
}

#[test]
fn a_count_beyond_the_room_finds_nothing() {
    let Some(hsm) = Hsm::new() else { return };
    let find = spoiling(&hsm, "find").args("--no-verify");
    let spoilt = Spoilt::measure(find, "count-beyond,count-ones", 200, 1);
    let failed = spoilt.row.failed.get("returned a count beyond the room");
    assert_eq!(failed, Some(&spoilt.injected()));
    spoilt.outcome.exits(2);
}

/// On a list of slots or mechanisms, in the order in which `targets` asks for them.
#[test]
fn a_list_that_cannot_be_is_no_list_for_targets_or_token() {
    let Some(hsm) = Hsm::new() else { return };
    let module = hostile_module();
    let cases = [
        ("count-beyond", 0, "C_GetSlotList: returned count 3 with room for 2"),
        ("count-ones", 0, "C_GetSlotList: returned count ~0UL with room for 2"),
        ("inquiry-ones", 0, "C_GetSlotList: returned count ~0UL with room for 65536"),
        ("inquiry-top", 0, "C_GetSlotList: returned count of more than"),
        ("count-beyond", 1, "C_GetMechanismList: returned count"),
        ("count-ones", 1, "C_GetMechanismList: returned count ~0UL with room for"),
        ("inquiry-ones", 1, "C_GetMechanismList: returned count ~0UL with room for 65536"),
        ("inquiry-top", 1, "C_GetMechanismList: returned count of more than"),
    ];
    for (fault, after, words) in cases {
        let spoilt = |tapstone: Tapstone| {
            tapstone
                .env("HOSTILE_MODULE_FAULTS", fault)
                .env("HOSTILE_MODULE_EVERY", "1")
                .env("HOSTILE_MODULE_AFTER", after.to_string())
        };
        let targets = hsm.bare("targets").env("HOSTILE_MODULE_BEHIND", hsm.module());
        let run = spoilt(targets.arg("--module").arg(&module).arg("--module").arg(hsm.module()));
        let listed = run.without_record().run().exits(2).stdout;
        assert!(listed.contains(words), "{fault}: {listed}");
        assert!(listed.contains("the module breaks PKCS #11"), "{fault}: {listed}");
        assert!(listed.contains("token \"hsm\""), "the honest module is there: {listed}");
        // To measure, mechanisms need not be listed.
        if after == 0 {
            let measured = spoilt(hsm.behind_hostile_module().args("--op sha256.digest"));
            let said = measured.run().exits(2).stderr;
            assert!(said.contains(words) && said.contains("breaks PKCS #11"), "{fault}: {said}");
        }
    }
}

/// Faults of attributes, and what a length of theirs is called.
const ATTRIBUTES: [(&str, &str); 3] = [
    ("attribute-beyond", "returned length 10000"),
    ("attribute-ones", "returned length ~0UL"),
    ("inquiry-top", "returned length of more than"),
];

#[test]
fn an_attribute_that_cannot_be_ends_a_case_before_it_is_measured() {
    let Some(hsm) = Hsm::new() else { return };
    for (fault, words) in ATTRIBUTES {
        for operation in ["rsa2048.sign", "aes256-gcm.encrypt"] {
            // The list of slots is asked for first, and honestly.
            let honest = if fault.starts_with("inquiry") { "1" } else { "0" };
            let spoilt = spoiling(&hsm, operation)
                .env("HOSTILE_MODULE_AFTER", honest)
                .env("HOSTILE_MODULE_EVERY", "1");
            let spoilt = Spoilt::measure(spoilt, fault, 20, 1);
            let status = &spoilt.row.status;
            assert_eq!(status.outcome, Ended::Failed, "{fault}: {status:?}");
            assert_eq!(status.step.as_deref(), Some("C_GetAttributeValue"), "{fault}");
            let code = status.code.as_deref().unwrap();
            assert!(code.starts_with(words), "{fault}: {code}");
            spoilt.outcome.exits(2);
        }
    }
}

/// Results of these are objects, whose values are read when all is measured. What cannot be then
/// is this case's fault, and not that of the next one.
#[test]
fn an_attribute_that_cannot_be_when_results_are_read_is_said_of_their_case() {
    let Some(hsm) = Hsm::new() else { return };
    for (fault, _) in &ATTRIBUTES[..2] {
        for operation in ["aes256.generate", "rsa2048.generate", "ecdh-p256.derive"] {
            let log = hsm.path("injections");
            fs::remove_file(&log).ok();
            let outcome = spoiling(&hsm, operation)
                .args("--op sha256.digest --count 10")
                .env("HOSTILE_MODULE_FAULTS", *fault)
                .env("HOSTILE_MODULE_EVERY", "1")
                .env("HOSTILE_MODULE_AFTER", "8")
                .env("HOSTILE_MODULE_LOG", &log)
                .run()
                .exits(2);
            let rows = outcome.record().results;
            let injected = fs::read_to_string(&log).unwrap().lines().count() as u64;
            assert!(injected > 0, "{operation}");
            assert_eq!(rows[0].status.outcome, Ended::Partial, "{operation} {:?}", rows[0].status);
            assert_eq!(rows[0].status.step.as_deref(), Some("C_GetAttributeValue"), "{operation}");
            assert_eq!(noted_outside(&rows[0]), injected, "{:?}", rows[0].warnings);
            assert_eq!(rows[1].status.outcome, Ended::Ok, "{:?}", rows[1].status);
        }
    }
}
