//! What is refused before any card is touched; no pcscd is needed for that.

use crate::support::{Outcome, Tapstone};

fn measure(arguments: &str) -> Outcome {
    let run = Tapstone::new("door").args("measure").args(arguments);
    run.file("text.der", "no certificate").run()
}

#[test]
fn files_that_say_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display();
    let said = measure(&format!("--trust {empty}")).refusal();
    assert!(said.contains("no certificate in "), "{said}");
    let said = measure("--trust text.der").refusal();
    assert!(said.contains("text.der") && said.contains("no X.509 certificate"), "{said}");
    let said = measure("--trust nowhere").exits(2).stderr;
    assert!(said.contains("nowhere"), "{said}");
}

#[test]
fn options_that_contradict_each_other() {
    let said = measure("--trust text.der --mechanism chuid --strategy overlap").refusal();
    assert!(said.contains("--strategy is for --mechanism pki-cak"), "{said}");
    let said = measure("--anchors text.der --revocation require").refusal();
    assert!(said.contains("no X.509 certificate"), "{said}");
    for arguments in [
        "",
        "--intermediates x",
        "--trust x --policy common",
        "--trust x --at yesterday",
        "--trust x --revocation maybe",
    ] {
        assert!(!measure(arguments).exits(2).stderr.is_empty());
    }
}

#[test]
fn models_that_cannot_be_held_against_anything() {
    for (options, says) in [
        ("--model nowhere", "there is no scenario \"nowhere\"\nhint: "),
        ("--model virtual-p71 --model-with magic", "there is no change \"magic\"\nhint: "),
        (
            "--model virtual-p71 --model-with overlap,background-validation",
            "overlap excludes background-validation\nhint: choose one",
        ),
        ("--model virtual-p71 --mechanism chuid", "--model is for --mechanism pki-cak\nhint: "),
    ] {
        let said = measure(&format!("--trust text.der {options}")).refusal();
        assert!(said.contains(says), "{options}: {said}");
    }
    let said = measure("--trust text.der --model-with known-card").exits(2).stderr;
    assert!(said.contains("--model <SCENARIO>"), "{said}");
    // What cannot be carried out together is no strategy.
    let said = measure("--trust text.der --strategy overlap+background-validation").exits(2).stderr;
    assert!(said.contains("known-card+overlap+extended-length"), "{said}");
}

#[test]
fn help_says_what_each_strategy_asks_of_security() {
    let help = Tapstone::new("door").args("measure --help").without_record().run().exits(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for condition in [
        "a CHUID of another card cannot be noticed",
        "a key enters it only after one full reading that was granted",
        "the decision is the and of both",
        "a revocation may take effect as late as the age limit",
    ] {
        assert!(help.contains(condition), "{condition}: {help}");
    }
}
