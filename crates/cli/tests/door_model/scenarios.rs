//! The shipped scenarios, and what the published one must give.

use tapstone_record::{PartKind, Provenance, Verdict};

use crate::{folder, tapstone};

#[test]
fn the_published_budget_comes_out() {
    let here = folder(&[]);
    let said = tapstone(here.path(), &["door", "budget", "hid-rsa2048", "--format", "json"]);
    assert_eq!(said.code, 1, "the target is missed: {}", said.err);
    let budget = said.record().budget.unwrap();
    let sum = |kind: PartKind| -> f64 {
        let parts = budget.parts.iter().filter(|part| part.kind == kind);
        parts.map(|part| part.time_ns.estimate).sum()
    };
    assert_eq!((sum(PartKind::Transfer), sum(PartKind::Processing)), (1011e6, 2667e6));
    assert_eq!(budget.total_ns.estimate, 3678e6);
    assert_eq!(budget.total_with_self_check_ns.unwrap().estimate, 4078e6);
    assert_eq!(budget.verdict, Some(Verdict::Missed));
    assert!(budget.parts.iter().all(|part| part.provenance == Provenance::Published));
    let met = tapstone(here.path(), &["door", "budget", "hid-rsa2048", "--target-time", "5s"]);
    assert_eq!(met.code, 0, "{}", met.out);
}

#[test]
fn texts_are_as_they_were_looked_at() {
    let here = folder(&[]);
    for (name, arguments) in [
        ("budget_hid", &["door", "budget", "hid-rsa2048"][..]),
        ("budget_chance", &["door", "budget", "osdp-ip-p256"]),
        ("what_if_hid", &["door", "what-if", "hid-rsa2048"]),
        (
            "what_if_unreachable",
            &["door", "what-if", "hid-rsa2048", "--target-time", "100ms", "--without", "link"],
        ),
        (
            "simulate",
            &["door", "simulate", "osdp-ip-rsa2048", "--people", "500/h", "--count", "20000"],
        ),
        (
            "overloaded",
            &["door", "simulate", "hid-rsa2048", "--people", "20/min", "--count", "1000"],
        ),
        ("budget_csv", &["door", "budget", "hid-rsa2048", "--format", "csv"]),
    ] {
        let said = tapstone(here.path(), arguments);
        assert_eq!(said.err, "", "{arguments:?}");
        let csv = arguments.contains(&"csv");
        insta::assert_snapshot!(name, if csv { said.out.clone() } else { said.text() });
    }
}

#[test]
fn what_if_reaches_the_target_with_conditions() {
    let here = folder(&[]);
    let said = tapstone(here.path(), &["door", "what-if", "hid-rsa2048", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let answer = said.record().what_if.unwrap();
    assert!(answer.sets_found >= answer.sets.len() as u64 && !answer.sets.is_empty());
    assert!(answer.sets.iter().all(|set| set.total_ns <= 1500e6));
    assert!(answer.considered.iter().all(|change| !change.condition.is_empty()));
    let kinds = [
        "algorithm:",
        "faster-card:",
        "bit-rate:",
        "link:",
        "controller-side",
        "known-card",
        "background-validation",
        "overlap",
        "self-check-policy",
    ];
    for kind in kinds {
        assert!(answer.considered.iter().any(|it| it.change.starts_with(kind)), "{kind}");
    }
    let unreachable = ["door", "what-if", "hid-rsa2048", "--target-time", "100ms"];
    assert_eq!(tapstone(here.path(), &unreachable).code, 1);
}

#[test]
fn a_shipped_scenario_is_the_start_of_ones_own() {
    let here = folder(&[]);
    for name in ["hid-rsa2048", "hid-p256", "osdp-ip-rsa2048", "osdp-ip-p256"] {
        let shown = tapstone(here.path(), &["door", "budget", name, "--show"]);
        assert_eq!(shown.code, 0);
        std::fs::write(here.path().join("own.toml"), &shown.out).unwrap();
        let json = |scenario: &str| {
            let said = tapstone(here.path(), &["door", "budget", scenario, "--format", "json"]);
            said.record().budget.unwrap()
        };
        let own = json("own.toml");
        let shipped = json(name);
        assert_eq!(own.parts, shipped.parts);
        assert_eq!(own.probability, shipped.probability);
    }
}

/// At exactly as many as can pass, and beyond, the queue grows without bound: a mean wait would be a
/// figure of how many were simulated.
#[test]
fn a_queue_without_bound_has_no_mean_wait_and_exits_1() {
    let here = folder(&[]);
    // A turn takes 4,078 ms at the door and 2 s to step up and pass.
    let capacity = 3.6e6 / 6078.0;
    for (part, code) in [(0.99, 0), (1.0, 1), (1.5, 1)] {
        let people = format!("{}/h", part * capacity);
        let arguments = ["door", "simulate", "hid-rsa2048", "--people", &people, "--count", "5000"];
        let said = tapstone(here.path(), &arguments);
        assert_eq!(said.code, code, "{part}: {}", said.out);
        let unbounded = said.out.contains("can pass: the queue grows without bound");
        assert_eq!(unbounded, code == 1, "{part}: {}", said.out);
        assert_eq!(said.out.contains("waiting time  "), code == 0, "{part}: {}", said.out);
        assert_eq!(code == 1, said.out.contains("at most 592 can pass"), "{}", said.out);
        let json = tapstone(here.path(), &[&arguments[..], &["--format", "json"]].concat());
        let queue = json.record().queue.unwrap();
        assert_eq!(queue.wait_ns.mean.is_none(), code == 1);
        let csv = tapstone(here.path(), &[&arguments[..], &["--format", "csv"]].concat());
        assert_eq!(csv.code, code);
    }
}

#[test]
fn a_simulation_repeats_with_its_seed() {
    let here = folder(&[]);
    let day = |seed: &str| {
        let arguments =
            ["door", "simulate", "osdp-ip-p256", "--people", "500/h", "--count", "5000"];
        let more = ["--seed", seed, "--format", "json", "--output", "day.json"];
        let said = tapstone(here.path(), &[&arguments[..], &more[..]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let written = std::fs::read_to_string(here.path().join("day.json")).unwrap();
        assert_eq!(written.trim_end(), said.out.trim_end());
        said.record().queue.unwrap()
    };
    assert_eq!(day("3"), day("3"));
    assert_ne!(day("3").wait_ns, day("4").wait_ns);
}

/// `--with` makes the changes before anything is asked, in each verb, and the page says so.
#[test]
fn a_scenario_with_changes_is_the_changed_one_and_says_so() {
    let here = folder(&[]);
    let with = ["--with", "known-card,algorithm:ecc-p256"];
    let ask = |words: &[&str]| {
        let arguments = [&["door"], words, &with[..], &["--format", "json"]].concat();
        let said = tapstone(here.path(), &arguments);
        assert_eq!(said.err, "", "{arguments:?}");
        let record = said.record();
        let note = "the scenario is not as it is written: with known-card, algorithm:ecc-p256";
        assert!(record.warnings.iter().any(|it| it == note), "{:?}", record.warnings);
        record
    };
    let budget = ask(&["budget", "hid-rsa2048"]).budget.unwrap();
    assert_eq!((budget.total_with_self_check_ns.unwrap().estimate / 1e6).round(), 1723.0);
    let answer = ask(&["what-if", "hid-rsa2048"]).what_if.unwrap();
    assert_eq!((answer.base_ns / 1e6).round(), 1723.0);
    let made = |id: &str| answer.considered.iter().any(|change| change.change == id);
    assert!(!made("known-card") && !made("algorithm:ecc-p256") && made("faster-card:p71"));
    assert!(answer.projections.is_empty(), "the source says nothing of it: {answer:?}");
    let queue = ask(&["simulate", "hid-rsa2048", "--people", "60/h", "--count", "1000"]);
    let turn = queue.queue.unwrap();
    let between =
        turn.time_in_system_ns.mean.unwrap().estimate - turn.wait_ns.mean.unwrap().estimate;
    // 2 s to step up and to pass.
    assert_eq!((between / 1e6).round(), 3723.0);
}

#[test]
fn a_target_that_is_met_already_needs_no_change() {
    let here = folder(&[]);
    let said = tapstone(here.path(), &["door", "what-if", "hid-rsa2048", "--target-time", "5s"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("It takes 4,078 ms as it is, and needs no change."), "{}", said.out);
    assert!(!said.out.contains("set 1"), "{}", said.out);
    let more = ["--output", "met.json", "--quiet"];
    let arguments = ["door", "what-if", "hid-rsa2048", "--target-time", "5s"];
    assert_eq!(tapstone(here.path(), &[&arguments[..], &more].concat()).code, 0);
    let page = ["report", "met.json", "--output", "met.html"];
    assert_eq!(tapstone(here.path(), &page).code, 0);
    let page = std::fs::read_to_string(here.path().join("met.html")).unwrap();
    assert!(page.contains("nothing has to be changed: 4,078 ms"));
}

/// Below half a second there are sets; where there is none, it says by how much the fastest fails
/// and which part holds it up.
#[test]
fn half_a_second_has_sets_and_what_cannot_be_reached_has_a_reason() {
    let here = folder(&[]);
    let ask = |target: &str| {
        let arguments =
            ["door", "what-if", "hid-rsa2048", "--target-time", target, "--format", "json"];
        let said = tapstone(here.path(), &arguments);
        (said.code, said.record().what_if.unwrap())
    };
    let (code, half) = ask("500ms");
    assert_eq!((code, half.missing_ns), (0, None));
    assert!(half.sets.iter().all(|set| set.total_ns <= 500e6) && !half.sets.is_empty());
    let (code, tenth) = ask("100ms");
    assert_eq!((code, tenth.sets.len()), (1, 0));
    assert_eq!(tenth.missing_ns.unwrap(), tenth.fastest.total_ns - 100e6);
    assert_eq!(tenth.left[0].component, "controller", "{:?}", tenth.left);
}
