//! Cards that are taken out, or fall silent, in the middle of a dialogue.

use std::time::Duration;

use tapstone_record::{Outcome, StoppedBy};

use crate::people::{Holder, row};
use crate::support::{Pcscd, eventually};

/// A card whose every command takes this long, and that has this fault.
fn profile(fault: &str) -> String {
    format!(
        "name = \"slow\"\ndescription = \"a slow card\"\nsource = \"a test\"\n\
         atr = \"3B 9F 96 81 31 FE 45 80 F9 A0 00 00 03 08 00 00 10 00 73 C0 01 C0 B2\"\n\
         [[applet]]\nname = \"piv\"\n\
         [time]\ncommand = {{ ms = 20, from = \"assumed\" }}\n{fault}"
    )
}

#[test]
fn a_card_is_taken_out_and_put_in_again() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let slow = holder.file("slow.toml", &profile(""));
    let mut card = holder.insert(&pcscd, &slow);
    let run = holder.measure().args("--strategy plain --rounds 12 --wait 60s").start();
    std::thread::sleep(Duration::from_millis(1500));
    card.pull();
    assert!(eventually(Duration::from_secs(20), || run.said().contains("waiting for the card")));
    drop(card);
    // vpcd 3.3 takes no card that comes while it still ends the last one.
    std::thread::sleep(Duration::from_secs(3));
    let _again = holder.insert(&pcscd, &slow);
    let record = run.wait().exits(2).record();
    let row = row(&record, "door.pki-cak");
    assert_eq!(row.status.outcome, Outcome::Partial, "{:?}", row.status);
    let failed: u64 = row.failed.values().sum();
    // pcscd may notice only after a while that there is no card.
    assert_eq!(row.completed + failed, 12, "{:?}", row.failed);
    assert!((1..=3).contains(&failed), "{:?}", row.failed);
    assert_eq!(row.stopped_by, Some(StoppedBy::Count));
}

/// Those who look at a run see its rounds, and at last its record.
#[test]
fn a_run_tells_how_it_goes() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let _card = holder.insert(&pcscd, &holder.file("slow.toml", &profile("")));
    let run = holder.measure().args("--strategy plain --rounds 12 --live live").start();
    let told = run.live_lines();
    run.wait().exits(0);
    assert!(told.iter().any(|line| line.contains("\"case\":\"rounds, 12 in all\"")), "{told:?}");
    assert!(told.last().unwrap().starts_with("{\"record\":"), "{told:?}");
}

#[test]
fn a_card_that_does_not_come_back_ends_the_run() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let fault = "[[fault]]\nkind = \"removed\"\nat = 40\nfrom = \"assumed\"\n";
    let _card = holder.insert(&pcscd, &holder.file("gone.toml", &profile(fault)));
    let run = holder.measure().args("--strategy plain --rounds 50 --wait 1s");
    let record = run.run().exits(2).record();
    let row = row(&record, "door.pki-cak");
    assert!((1..10).contains(&row.completed), "{}", row.completed);
    assert_eq!(row.status.outcome, Outcome::Partial);
    // The one in the middle, those until pcscd noticed, and the one that found no card.
    assert!((2..=4).contains(&row.failed.values().sum::<u64>()), "{:?}", row.failed);
    assert!(!row.failed.keys().any(|code| code.starts_with("refused")), "{:?}", row.failed);
    assert!(record.warnings.iter().any(|text| text.contains("no decision: SCard")));
}

#[test]
fn a_card_that_falls_silent_is_given_up() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let fault = "[[fault]]\nkind = \"mute\"\nat = 40\n\
                 closes_after = { s = 20, from = \"assumed\" }\nfrom = \"assumed\"\n";
    let _card = holder.insert(&pcscd, &holder.file("mute.toml", &profile(fault)));
    let run = holder.measure().args("--strategy plain --rounds 5 --timeout 2s --wait 1s");
    let record = run.run().exits(2).record();
    let row = row(&record, "door.pki-cak");
    assert!(row.completed >= 1 && !row.failed.is_empty(), "{:?}", row.failed);
}
