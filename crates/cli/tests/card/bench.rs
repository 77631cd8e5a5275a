//! The benchmark applet: nothing is written without leave, all is verified, and no key is left.

use rustix::process::Signal;
use tapstone_record::{Outcome, StoppedBy};

use crate::support::{Card, Pcscd, Played, Slot, Tapstone, bench_profile};

/// INS of applet/COMMANDS.md.
const PUT_KEY_PART: u8 = 0x30;
const CLEAR_KEY: u8 = 0x31;
const REPEAT: u8 = 0x60;

/// The keys of the suite; RSA keys have five parts.
const KEYS: usize = 6;
const KEY_PARTS: usize = 4 + 2 * 5;

#[test]
fn on_a_card_that_notes_its_commands() {
    let Some(pcscd) = Pcscd::start() else { return };
    let (_card, log) = Played::noted(&pcscd);
    let suite = || Tapstone::at(Slot::First, "card").args("--suite bench --rounds 3");
    let outcome = suite().run().exits(0);
    assert_eq!((log.count(PUT_KEY_PART), log.count(CLEAR_KEY)), (0, 0));
    assert!(log.count(REPEAT) > 0, "what needs no key is measured");
    let record = outcome.record();
    for name in ["card.devchip_decrypt_3des", "card.rsa2048.sign", "card.eeprom.write"] {
        assert!(record.results.iter().all(|row| !row.operation.starts_with(name)), "{name}");
        let said = format!("{name} is left out: it writes to the card (");
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
        let kept = format!("{name} was left out: it writes to the card (");
        assert!(record.warnings.iter().any(|it| it.starts_with(&kept)), "{:?}", record.warnings);
    }
    assert!(record.results.iter().any(|row| row.operation == "card.simple_apdu"));
    assert!(!outcome.stderr.contains("this will change"), "{}", outcome.stderr);
    with_leave(suite().args("--allow-writes"));
    assert_eq!((log.count(PUT_KEY_PART), log.count(CLEAR_KEY)), (KEY_PARTS, KEYS));
    no_key_is_left();
}

fn with_leave(run: Tapstone) {
    let outcome = run.run().exits(0);
    let said = &outcome.stderr;
    assert!(said.contains("this will change on the card in Virtual PCD 00 00:"), "{said}");
    for change in [
        "  - a Triple DES key for benchmarks",
        "  - 160 writes to the same cells (card.eeprom.write)",
    ] {
        assert!(said.contains(change), "{change}: {said}");
    }
    let record = outcome.record();
    // Only these have an answer that nobody can know.
    let unjudged = ["card.post_buffer", "card.apdu["];
    for row in &record.results {
        let name = &row.operation;
        assert_eq!((row.status.outcome, row.completed), (Outcome::Ok, 3), "{name}");
        if unjudged.iter().any(|start| name.starts_with(start)) {
            assert!(row.verification.is_none(), "{name}");
            continue;
        }
        let verification = row.verification.unwrap_or_else(|| panic!("{name} is judged"));
        let counts = (verification.eligible, verification.checked, verification.wrong);
        assert_eq!(counts, (3, 3, 0), "{name}");
    }
    let starts = [
        "card.aes256.encrypt[",
        "card.ecdsa-p256.sign[",
        "card.ecdh-p256.derive[",
        "card.vm_perf_bound_rsa",
    ];
    for start in starts {
        assert!(record.results.iter().any(|row| row.operation.starts_with(start)), "{start}");
    }
    assert!(record.costs.iter().any(|cost| cost.operation == "card.rsa2048.decrypt"));
    assert!(record.warnings.is_empty(), "{:?}", record.warnings);
}

/// The card refuses to decrypt under the keys of the suite (applet/COMMANDS.md: 6A88 no such key,
/// 6985 not complete).
fn no_key_is_left() {
    for (key, bytes) in [("01", 8), ("02", 256), ("03", 128)] {
        let suite = format!(
            r#"
title = "is there a key?"
application = "F0 54 41 50 53 54 4F 4E 45 01"

[[test]]
name = "card.decrypt"
title = "DECRYPT"
input = {{ make = "random", bytes = {bytes} }}
before = [
  {{ name = "FLUSH", apdu = "80 26 00 00" }},
  {{ name = "ALLOCATE", apdu = "80 20 {{length:2}}", le = 256, save = "buffer" }},
  {{ name = "WRITE", apdu = "80 24 {{buffer}} {{chunk:1}}", data = "{{input}}", chunk = 247 }},
]
measure = [{{ name = "DECRYPT", apdu = "80 40 {{buffer}} {key}", le = 256, expect = ["6985", "6A88"] }}]
"#
        );
        let outcome = Tapstone::suite(&suite).args("--rounds 3").run().exits(0);
        assert_eq!(outcome.row().completed, 3, "key {key} is there: {}", outcome.stdout);
    }
}

#[test]
fn ctrl_c_leaves_no_key() {
    let Some(pcscd) = Pcscd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("slow.toml");
    std::fs::write(&profile, bench_profile("")).unwrap();
    let _card = Card::insert(&pcscd, Slot::First, &[profile]);
    for signal in [Signal::INT, Signal::TERM] {
        let run = Tapstone::at(Slot::First, "card").args("--suite bench --allow-writes");
        let run = run.args("--op card.devchip* --rounds 900").start();
        run.wait_until_it_measures();
        // 11 commands prepare and 19 try, 20 ms each; then it measures.
        std::thread::sleep(std::time::Duration::from_secs(2));
        run.signal(signal);
        let outcome = run.wait().exits(2);
        let record = outcome.record();
        let completed: u64 = record.results.iter().map(|row| row.completed).sum();
        assert!(completed > 0, "{}", outcome.stdout);
        for row in record.results.iter().filter(|row| row.completed > 0) {
            assert_eq!(row.stopped_by, Some(StoppedBy::Interrupted));
            assert_eq!(row.verification.unwrap().wrong, 0);
        }
        assert!(record.warnings.iter().any(|it| it.contains("interrupted")));
        no_key_is_left();
    }
}
