use tapstone_record::{PartKind, Provenance, Verdict};

use super::*;
use crate::budget;
use crate::change::Edit;
use crate::path::{StepFilter, step};

#[test]
fn the_published_door_has_the_published_sums() {
    let scenario = Scenario::shipped("hid-rsa2048").unwrap();
    let budget = budget(&scenario, "hid-rsa2048", 1);
    let sum = |kind: PartKind| -> f64 {
        let parts = budget.parts.iter().filter(|part| part.kind == kind);
        parts.map(|part| part.time_ns.estimate / 1e6).sum()
    };
    assert_eq!(sum(PartKind::Transfer), 1011.0);
    assert_eq!(sum(PartKind::Processing), 2667.0);
    assert_eq!(budget.total_ns.estimate, 3678e6);
    assert_eq!(budget.total_with_self_check_ns.unwrap().estimate, 4078e6);
    assert_eq!(budget.verdict, Some(Verdict::Missed));
    assert_eq!(budget.limit_ns.unwrap().0, 1_500_000_000);
    assert!(budget.parts.iter().all(|part| part.provenance == Provenance::Published));
    let shares: f64 = budget.parts.iter().map(|part| part.share.0).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert_eq!(budget.probability, None, "single figures tell nothing of the spread");
}

#[test]
fn every_shipped_scenario_can_be_read() {
    for (name, _) in SHIPPED {
        let scenario = Scenario::shipped(name).unwrap();
        assert!(scenario.path.total() > Millis::ZERO && !scenario.changes.is_empty(), "{name}");
        for change in &scenario.changes {
            assert!(!change.condition.is_empty() && !change.what.is_empty(), "{name}: {change:?}");
            let changed = crate::change::apply(&scenario.path, std::slice::from_ref(change));
            let (before, after) =
                (scenario.path.total_with_self_check(), changed.total_with_self_check());
            assert!(after < before, "{name}: {} saves nothing", change.id);
        }
    }
    let error = Scenario::shipped("nowhere").unwrap_err().to_string();
    assert!(error.contains("hint: name a file, or one of hid-rsa2048"), "{error}");
}

#[test]
fn the_sibling_is_the_published_door_less_the_published_difference() {
    let scenario = Scenario::shipped("hid-p256").unwrap();
    assert!((scenario.path.total().0 - (3678.0 - 1080.0)).abs() < 1e-9);
    assert!(scenario.changes.iter().all(|change| change.id != "algorithm:ecc-p256"));
}

#[test]
fn links_that_stand_beside_a_published_time_are_near_it() {
    let scenario = Scenario::shipped("hid-rsa2048").unwrap();
    for part in &scenario.path.parts {
        let Some(hop) = &part.hop else { continue };
        let formula: Millis = part.by_formula(hop).into_values().sum();
        let ratio = formula.0 / part.mean().0;
        assert!((0.93..1.07).contains(&ratio), "{}: {} ms by formula", part.name, formula.0);
    }
}

const CARD: &str =
    "title = 'x'\ntarget_ms = 1500\n[[component]]\nkind = 'card'\nfrom = 'assumed'\n";

#[test]
fn what_is_wrong_is_named_by_file_line_and_field() {
    let link =
        |more: &str| format!("{CARD}time_ms = 5\n[[component]]\nkind = 'reader'\n[[link]]\n{more}");
    let time = |time: &str| format!("{CARD}time_ms = {time}\n");
    let cases = [
        (time("-5"), "my.toml, line 6, `time_ms`: -5 ms is negative"),
        (
            time("{ normal = { mean = 10, deviation = -1 } }"),
            "line 6, `time_ms`: -1 ms is negative",
        ),
        (time("{ normal = { mean = 10, deviation = 9 } }"), "more than a third of the mean"),
        (time("{ uniform = { low = 9, high = 1 } }"), "low is above high"),
        (time("{ quantiles = [[0.5, 9], [0.4, 10]] }"), "quantiles rise"),
        (time("{ quantiles = [[0.5, 9], [1.5, 10]] }"), "1.5 is no part of all"),
        (time("{ gamma = { shape = 1 } }"), "there is no distribution \"gamma\""),
        (time("{ reference = 'piv-door:rsa2048.none' }"), "there is no \"none\" on the path"),
        (time("{ reference = 'moon:a.b' }"), "there is no reference \"moon\""),
        (time("{ reference = 'piv-door:facts.rsa_certificate_bytes' }"), "is not a time"),
        (time("'fast'"), "not a number"),
        (time("1e9"), "is no time at a door"),
        (time("nan"), "is no time at a door"),
        (time("5\nspeed = 3"), "line 7, `speed`: unknown field `speed`"),
        (time("5\nsteps = { sign = 1.0 }"), "line 7, `steps`: there is no step \"sign\""),
        (time("5\nsteps = { challenge = 0.5 }"), "the shares of the steps add up to 0.5\n"),
        (
            link("between = ['card', 'tower']\ntime_ms = 1"),
            "line 10, `between`: there is no component \"tower\"",
        ),
        (link("between = ['reader', 'card']\ntime_ms = 1"), "card does not follow reader"),
        (
            link("between = ['card', 'reader']\nby = { kind = 'pigeon' }"),
            "line 11, `by`: unknown variant `pigeon`",
        ),
        (
            link("between = ['card', 'reader']\nby = { kind = 'osdp', baud = 1 }"),
            "line 11, `by`: baud = 1 is impossible",
        ),
        (
            link("between = ['card', 'reader']\nby = { kind = 'osdp', baud = 9600 }"),
            "nothing is sent over this link",
        ),
        (
            link("between = ['card', 'reader']\ntime_ms = -1"),
            "line 11, `time_ms`: -1 ms is negative",
        ),
        (
            link("between = ['card', 'reader']\ntime_ms = 1"),
            "it is not said where this time is from",
        ),
        (link("between = ['card', 'reader']"), "a link has a time or a formula"),
        ("title = 'x'\ntarget_ms = 1\n".into(), "there are no components"),
        ("title = 'x'\n[[component]]\nkind = 'card'\n".into(), "the target is missing"),
        (
            "title = 'x'\ntarget_ms = 1\n[[component]]\nkind = 'ghost'\n".into(),
            "line 4, `kind`: unknown variant `ghost`",
        ),
        (format!("{CARD}[[component]]\nkind = 'card'\n"), "a second card"),
        (
            "title = 'x'\nbase = 'nowhere'\n".into(),
            "line 2, `base`: there is no scenario \"nowhere\"",
        ),
        (
            "title = 'x'\nbase = 'hid-rsa2048'\nwith = ['magic']\n".into(),
            "line 3, `with`: there is no change \"magic\"",
        ),
        (
            "title = 'x'\nbase = 'hid-rsa2048'\nwith = ['overlap', 'background-validation']\n"
                .into(),
            "overlap excludes background-validation",
        ),
        (
            format!("{CARD}time_ms = 5\n[people]\nread_failure = 2.0\n"),
            "line 8, `read_failure`: 2 is no part",
        ),
        (format!("{CARD}time_ms = 5\n[people]\nattempts = 0\n"), "people try at least once"),
        (
            format!("{CARD}time_ms = 5\n[effort]\nmagic = 3\n"),
            "line 8, `magic`: there is no change",
        ),
        (
            ["a", "b", "a"].iter().fold(format!("{CARD}time_ms = 5\n"), |text, name| {
                text + &format!("[[change]]\nkind = 'algorithm'\nname = '{name}'\nfactor = 0.5\n")
            }),
            "a second change algorithm:a",
        ),
        ("title = \n".into(), "line 1"),
    ];
    for (text, says) in cases {
        let error = Scenario::read(&text, "my.toml").unwrap_err().to_string();
        assert!(error.contains(says), "{says}\n{error}");
        assert!(error.starts_with("my.toml, line ") && error.contains("\nhint: "), "{error}");
    }
}

#[test]
fn changes_do_what_they_say() {
    let scenario = Scenario::shipped("hid-rsa2048").unwrap();
    let with = |ids: &[&str]| {
        let meant = |change: &&PathChange| ids.contains(&change.id.as_str());
        let made: Vec<PathChange> = scenario.changes.iter().filter(meant).cloned().collect();
        assert_eq!(made.len(), ids.len());
        change::apply(&scenario.path, &made)
    };
    // The card and its link are hidden for as long as they sign, or validation as a whole.
    let overlapped = with(&["overlap"]);
    let link = scenario.path.parts.iter().find(|part| part.name == "card-reader").unwrap();
    let signing = StepFilter::Only(&[step::CHALLENGE, step::READ_CHUID]);
    let card = 0.67 * 1367.0 + link.mean_of(signing).0;
    assert!((overlapped.overlapped().0 - card.min(0.9 * 1200.0)).abs() < 1e-6);
    // Nothing of the certificate's path is left, and the signature is still checked.
    let both = with(&["known-card", "background-validation"]);
    let module = both.parts.iter().find(|part| part.name == "module").unwrap();
    assert!((module.mean().0 - 120.0).abs() < 1e-9);
    // At eight times the rate the bytes take an eighth, the turns the same.
    let fast = with(&["bit-rate:848"]);
    let link = fast.parts.iter().find(|part| part.name == "card-reader").unwrap();
    assert!((25.0..32.0).contains(&link.mean().0), "{}", link.mean().0);
    assert_eq!(link.provenance, Provenance::Derived);
}

#[test]
fn a_change_that_is_named_twice_is_made_once() {
    let with = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Scenario::shipped("hid-rsa2048").unwrap().with_changes(&names)
    };
    for change in Scenario::shipped("hid-rsa2048").unwrap().changes {
        let needed: Vec<&str> = change.needs.as_deref().into_iter().collect();
        let once = with(&[&needed[..], &[&change.id]].concat()).unwrap();
        let twice = with(&[&needed[..], &[&change.id, &change.id]].concat()).unwrap();
        assert_eq!(once, twice, "{}", change.id);
    }
    let variant = |with: &str| {
        let text = format!("title = 'x'\ntarget_ms = 1\nbase = 'hid-rsa2048'\nwith = {with}\n");
        Scenario::read(&text, "test").unwrap().path
    };
    let once = variant("['faster-card:card-1']");
    assert_eq!(once, variant("['faster-card:card-1', 'faster-card:card-1']"));
}

/// They are about the scenario as its source has it.
#[test]
fn what_a_source_expects_is_not_held_against_a_changed_scenario() {
    let scenario = Scenario::shipped("hid-rsa2048").unwrap();
    assert!(!scenario.projections.is_empty());
    let changed = scenario.with_changes(&["algorithm:ecc-p256".to_owned()]).unwrap();
    assert!(changed.projections.is_empty());
}

#[test]
fn changes_that_do_not_go_together_are_refused() {
    let refused = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let scenario = Scenario::shipped("hid-rsa2048").unwrap();
        scenario.with_changes(&names).unwrap_err().to_string()
    };
    let error = refused(&["overlap", "background-validation"]);
    assert_eq!(error, "overlap excludes background-validation\nhint: choose one");
    let error = refused(&["faster-card:p71"]);
    assert_eq!(error, "faster-card:p71 needs algorithm:ecc-p256\nhint: add it");
    let error = refused(&["algorithm:ecc-p256", "faster-card:card-1"]);
    assert!(error.contains("algorithm:ecc-p256 excludes faster-card:card-1"), "{error}");
    let error = refused(&["algorithm"]);
    assert!(error.starts_with("there is no change \"algorithm\"\nhint: algorithm:ecc"), "{error}");
}

/// Each change says by which standard it is possible or secure.
#[test]
fn every_change_of_every_shipped_scenario_cites_a_standard() {
    const STANDARDS: [&str; 8] =
        ["SP 800-", "FIPS ", "ISO/IEC ", "RFC ", "IEC 60839", "SIA OSDP", "SIA AC-01", "ISO 7816"];
    for (name, _) in SHIPPED {
        for change in Scenario::shipped(name).unwrap().changes {
            let cites = STANDARDS.iter().any(|standard| change.condition.contains(standard));
            assert!(cites, "{name}: {}: {}", change.id, change.condition);
        }
    }
}

#[test]
fn other_links_are_proposed_behind_the_reader_only() {
    let scenario = Scenario::shipped("hid-rsa2048").unwrap();
    let replaced: Vec<&str> = scenario
        .changes
        .iter()
        .filter_map(|change| match &change.edit {
            Edit::Link { part, .. } => Some(part.as_str()),
            _ => None,
        })
        .collect();
    assert!(!replaced.is_empty());
    assert!(!replaced.contains(&"card-reader"), "{replaced:?}");
}

#[test]
fn people_hold_cards_by_their_shares() {
    let text = |shares: &[f64]| {
        let kinds = shares.iter().enumerate().map(|(number, share)| {
            format!("[[people.card]]\nname = 'kind {number}'\nshare = {share:?}\n")
        });
        format!("{CARD}time_ms = 5\n[people]\n{}", kinds.collect::<String>())
    };
    let shares = |of: &[f64]| -> Vec<f64> {
        let cards = Scenario::read(&text(of), "my.toml").unwrap().people.cards;
        cards.iter().map(|kind| kind.share).collect()
    };
    assert_eq!(shares(&[1.0]), [1.0]);
    assert_eq!(shares(&[0.25, 0.75]), [0.25, 0.75]);
    let wrong = |of: &[f64]| Scenario::read(&text(of), "my.toml").unwrap_err().to_string();
    for share in [0.0, -0.5, 1.5] {
        let error = wrong(&[share, 1.0]);
        assert!(error.contains("is no part of all people"), "{error}");
    }
    assert!(wrong(&[0.25, 0.5]).contains("add up to 0.75"));
    assert!(wrong(&[0.3, 0.6]).contains("add up to 0.9\n"), "0.3 and 0.6 are 0.9, not less");
}
