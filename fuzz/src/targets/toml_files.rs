//! Every TOML that a user writes: suites, profiles, scenarios, maps, an agent's configuration.

use std::path::Path;

use tapstone_card::suite::file::SuiteText;
use tapstone_card::suite::plan::{Plan, Wishes};
use tapstone_door::{Scenario, budget};
use tapstone_hosts::Config;
use tapstone_import::panel_log::Map;
use tapstone_token::catalogue::Suite;
use tapstone_vcard::Profile;

use crate::FuzzTarget;
use crate::structure::Structure;

/// The first byte chooses the reader. What is refused is refused with a line that is there.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "toml",
    reads: "TOML: suites, profiles, scenarios, maps, agents",
    structure: Structure::Lines,
    longest: 16 << 10,
    check,
};

fn check(input: &[u8]) {
    let Some((first, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match first {
        b't' => refused_at_a_line(text, Suite::parse("fuzzed.toml", text)),
        b'c' => card_suite(text),
        b'p' => refused_at_a_line(text, Profile::parse("fuzzed.toml", text)),
        b's' => scenario(text),
        b'm' => drop(Map::parse(text, Path::new("fuzzed.toml"))),
        _ => drop(Config::parse(text, Path::new("fuzzed.toml"))),
    }
}

/// The mistake of a reader, as it is told: file, line, field, and a hint.
fn refused_at_a_line<T, E: std::fmt::Display>(text: &str, read: Result<T, E>) {
    let Err(mistake) = read else { return };
    let told = mistake.to_string();
    let line = told.strip_prefix("fuzzed.toml, line ").and_then(|rest| rest.split_once(','));
    let line: usize = line.and_then(|(line, _)| line.parse().ok()).expect("it names a line");
    assert!((1..=1 + text.matches('\n').count()).contains(&line), "{told}");
    assert!(told.contains("\nhint: "), "{told}");
}

fn card_suite(text: &str) {
    let suite = SuiteText { name: "fuzzed.toml".to_owned(), text: text.to_owned() };
    let lines = 1 + text.matches('\n').count();
    let known = |line: Option<usize>| line.is_none_or(|line| (1..=lines).contains(&line));
    match suite.parse() {
        Err(error) => assert!(known(error.line), "{error}"),
        Ok(parsed) => {
            let wishes = Wishes { rounds: 4, seed: 1, ..Wishes::default() };
            if let Err(error) = Plan::from_suite(&suite, &parsed, &wishes) {
                assert!(known(error.line), "{error}");
            }
        }
    }
}

fn scenario(text: &str) {
    let read = Scenario::read(text, "fuzzed.toml");
    if let Ok(scenario) = &read {
        let budget = budget(scenario, "fuzzed", 1);
        let total: f64 = budget.parts.iter().map(|part| part.time_ns.estimate).sum();
        assert!(total.is_finite() && total >= 0.0, "a budget of {total} ns");
    }
    refused_at_a_line(text, read);
}
