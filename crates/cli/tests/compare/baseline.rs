//! `--baseline`: a folder of records, as continuous integration keeps it.

use std::fs;

use serde_json::Value;

use super::{Cards, stderr, stdout};

const APDU: &str = "card.simple_apdu";

#[test]
fn the_first_run_starts_it_and_later_ones_are_compared() {
    let cards = Cards::new();
    let old = cards.write("old", "6.11", &[(APDU, 5.0, 0.01)]);
    let missing = cards.compare(&[&old, "--baseline", "kept"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("\nhint: --update keeps old.json there"), "{missing:?}");
    assert!(!cards.path("kept").exists(), "nothing was made");

    let first = cards.compare(&[&old, "--baseline", "kept", "--update"]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert_eq!(stdout(&first), "");
    let place = "kept/card-example-31m-card.json";
    assert_eq!(stderr(&first), format!("old.json is now the baseline: {place}\n"));
    assert_eq!(fs::read(cards.path(place)).unwrap(), fs::read(cards.path(&old)).unwrap());

    for (name, mean, code) in [("same", 5.0, 0), ("slower", 6.0, 1)] {
        let new = cards.write(name, "6.12", &[(APDU, mean, 0.01)]);
        let output = cards.compare(&[&new, "--baseline", "kept", "--fail-above", "5%"]);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", stderr(&output));
        assert!(stdout(&output).contains("the kernel differs: 6.11 and 6.12"), "{output:?}");
    }
    // Accepting a slower one is a decision: it still says what it was, and is the baseline then.
    let accepted =
        cards.compare(&["slower.json", "--baseline", "kept", "--fail-above", "5%", "--update"]);
    assert_eq!(accepted.status.code(), Some(1));
    let again = cards.compare(&["slower.json", "--baseline", "kept", "--format", "json"]);
    let record: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(record["comparison"]["cases"][0]["ratio"]["estimate"], 1.0);
    assert_eq!(fs::read_dir(cards.path("kept")).unwrap().count(), 1, "replaced");
}

#[test]
fn each_work_has_a_baseline_of_its_own() {
    let cards = Cards::new();
    for name in [APDU, "card.random"] {
        let record = cards.write(name, "6.12", &[(name, 5.0, 0.01)]);
        let kept = cards.compare(&[&record, "--baseline", "kept", "--update"]);
        assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    }
    assert_eq!(fs::read_dir(cards.path("kept")).unwrap().count(), 2);
    let both = cards.write("both", "6.12", &[(APDU, 5.0, 0.01), ("card.random", 5.0, 0.01)]);
    let output = cards.compare(&[&both, "--baseline", "kept"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("card-example-31m-card-2.json") && text.contains("hint: keep one of"));
    // A record inside the folder is not its own baseline.
    let inside = cards.compare(&["kept/card-example-31m-card.json", "--baseline", "kept"]);
    assert!(stderr(&inside).contains("has no record of the same work"), "{inside:?}");
}

#[test]
fn a_folder_that_cannot_be_used_is_one_error_with_a_hint() {
    let cards = Cards::new();
    let new = cards.write("new", "6.12", &[(APDU, 5.0, 0.01)]);
    fs::create_dir(cards.path("broken")).unwrap();
    fs::write(cards.path("broken/cut.json"), "{\"schema\": \"tapstone.rec").unwrap();
    fs::create_dir(cards.path("older")).unwrap();
    fs::write(cards.path("older/a.json"), "{\"schema\": \"tapstone.record/0\"}").unwrap();
    for (arguments, says) in [
        (&[&*new, "--baseline", "new.json"][..], "new.json"),
        (&[&new, "--baseline", "broken"], "cut.json"),
        (&[&new, "--baseline", "older"], "tapstone.record/0"),
        (&[&new, "--baseline", "new.json/kept", "--update"], "new.json/kept"),
        (&["reference:jcop-cards", "--baseline", "kept"], "is published"),
        (&[&new, &new, "--baseline", "kept"], "--baseline"),
        (&[&new, &new, "--update"], "--update"),
        (&[&new, "--update"], "--baseline"),
    ] {
        let output = cards.compare(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.starts_with("error: ") && text.contains(says), "{arguments:?}: {text}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

/// The workflow that is shipped: it parses, and its two commands are those of the page.
#[test]
fn the_workflow_is_what_its_page_says() {
    let workflow = include_str!("../../../../docs/ci/performance.yml");
    let parsed: Value = serde_saphyr::from_str(workflow).unwrap();
    let steps = parsed["jobs"]["measure"]["steps"].as_array().unwrap();
    let runs: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let [measure, compare] = runs[..] else { panic!("{runs:?}") };
    assert!(measure.starts_with("tapstone token ") && measure.ends_with("--output new.json"));
    assert!(compare.starts_with("tapstone compare new.json --baseline performance --fail-above"));
    let page = include_str!("../../../../docs/ci.md");
    assert!(page.contains("tapstone compare new.json --baseline performance --fail-above 5%\n"));
}
