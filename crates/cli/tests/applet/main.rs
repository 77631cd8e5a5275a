//! The Java Card applet end to end: on jCardSim, behind vpcd, behind pcscd, driven by
//! `tapstone card`. jCardSim acknowledges late, so this is about answers, not about times.
//!
//! Without Java, Maven, pcscd or its virtual readers the test skips, and says so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
#[path = "../card/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;

use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tapstone_record::Outcome;

use crate::support::{Pcscd, Slot, Tapstone, empty, eventually, has_card, skip};

const APPLET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../applet");

/// A Java virtual machine takes its time to start.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// jCardSim with the applet, in the first reader.
struct JCardSim(Child);

impl JCardSim {
    fn insert(_: &Pcscd) -> Self {
        assert!(empty(Slot::First));
        let target = |name: &str| format!("{APPLET}/target/{name}");
        let path = [target("classes"), target("test-classes"), target("lib/*")].join(":");
        let mut java = Command::new("java");
        java.args(["-cp", &path, "tapstone.bench.VpcdRunner", "127.0.0.1"]);
        java.arg(Slot::First.port().to_string());
        java.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut card = Self(java.spawn().unwrap());
        let there = eventually(TIME_LIMIT, || {
            assert!(card.0.try_wait().unwrap().is_none(), "{java:?} has ended");
            has_card(Slot::First)
        });
        assert!(there, "{java:?}");
        card
    }
}

impl Drop for JCardSim {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        self.0.wait().unwrap();
        let _ = empty(Slot::First);
    }
}

/// Maven does nothing when all is built. `None`, which has been said then: a program is missing.
fn build() -> Option<()> {
    let there = |program: &str, argument: &str| {
        let run = Command::new(program).arg(argument).stdin(Stdio::null()).output();
        let missing = run.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if missing {
            skip(program);
        }
        (!missing).then_some(())
    };
    there("java", "-version")?;
    there("mvn", "--version")?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-f", &format!("{APPLET}/pom.xml"), "test-compile"]).stdin(Stdio::null());
    let output = maven.output().unwrap();
    assert!(output.status.success(), "{maven:?}: {}", String::from_utf8_lossy(&output.stdout));
    Some(())
}

#[test]
fn every_answer_of_the_java_applet_is_right() {
    let Some(()) = build() else { return };
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = JCardSim::insert(&pcscd);
    let run = Tapstone::at(Slot::First, "card").args("--suite bench --allow-writes --rounds 3");
    let outcome = run.run().exits(0);
    let record = outcome.record();
    assert!(record.results.len() > 100, "{}", record.results.len());
    let mut judged = 0;
    for row in &record.results {
        let name = &row.operation;
        assert_eq!(
            (row.status.outcome, row.completed),
            (Outcome::Ok, 3),
            "{name}: {:?}",
            row.status
        );
        if let Some(verification) = row.verification {
            judged += 1;
            let counts = (verification.eligible, verification.checked, verification.wrong);
            assert_eq!(counts, (3, 3, 0), "{name}");
        }
    }
    // Commands that move bytes, and nothing more, have no answer.
    assert_eq!(record.results.len() - judged, 6);
    assert_eq!(record.target.card.unwrap().atr, "3BF81300008131FE4554415053544F4E45E6");
}
