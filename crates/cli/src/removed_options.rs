//! Options that were called otherwise: one option means the same in every verb. Who types a removed
//! name is told the one of today.

use std::ffi::OsString;

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// An option of a verb under a name that it has no more.
struct RemovedOption {
    /// As typed: `door budget`.
    verb: &'static str,
    name: &'static str,
    /// What to write in its place.
    successor: &'static str,
}

const REMOVED: [RemovedOption; 9] = [
    removed("token", "--list", "--list-operations"),
    removed("card", "--list", "--list-suites, or for the tests of one --suite … --list-operations"),
    removed("card", "--test", "--op"),
    removed("pcsc", "--list", "--list-readers"),
    removed("vcard", "--list", "--list-profiles"),
    removed("door budget", "--target", "--target-time"),
    removed("door what-if", "--target", "--target-time"),
    removed("trial", "--warm-up", "--warm-up-rounds"),
    removed("ab", "--warm-up", "--warm-up-rounds"),
];

const fn removed(verb: &'static str, name: &'static str, successor: &'static str) -> RemovedOption {
    RemovedOption { verb, name, successor }
}

/// The error about an option that there is not, with its name of today if it had another, or about one
/// that is missing, with how to find what to say. `words` are those after the program's name; they
/// begin with the verb.
pub(crate) fn with_successor(error: Error, words: impl Iterator<Item = OsString>) -> Error {
    if error.kind() == ErrorKind::MissingRequiredArgument && is_missing(&error, "--module") {
        return with_tip(error, "tapstone targets lists the modules of this machine".to_owned());
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    if typed == "--pin" {
        let ways = "a PIN is never an argument: --pin-prompt, --pin-file, --pin-env or --pin-fd";
        return with_tip(error, ways.to_owned());
    }
    let verb: Vec<_> = words.take(2).map(|word| word.to_string_lossy().into_owned()).collect();
    let verb = verb.join(" ");
    let is_verb = |name: &str| verb.split(' ').next() == Some(name) || verb == name;
    let is_typed = |option: &&RemovedOption| option.name == typed && is_verb(option.verb);
    let Some(option) = REMOVED.iter().find(is_typed) else { return error };
    with_tip(error, format!("it is called {} now", option.successor))
}

fn is_missing(error: &Error, option: &str) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    matches!(missing, Some(ContextValue::Strings(all)) if all.iter().any(|it| it.starts_with(option)))
}

/// In the place of what clap suggests.
fn with_tip(mut error: Error, tip: String) -> Error {
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;

    use super::*;
    use crate::Arguments;

    fn refused(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        let error = Arguments::command().try_get_matches_from(words()).unwrap_err();
        with_successor(error, words().skip(1)).render().to_string()
    }

    #[test]
    fn a_removed_option_names_its_successor() {
        for option in &REMOVED {
            let said = refused(&format!("tapstone {} {}", option.verb, option.name));
            assert!(said.contains(&format!("unexpected argument '{}'", option.name)), "{said}");
            let tips = said.matches("tip: ").count();
            assert!(
                said.contains(&format!("tip: it is called {} now", option.successor)),
                "{said}"
            );
            assert_eq!(tips, 1, "{said}");
        }
        let said = refused("tapstone ab --warm-up=3 -- true true");
        assert!(said.contains("it is called --warm-up-rounds now"), "{said}");
    }

    #[test]
    fn who_passes_a_pin_or_names_no_module_is_told_how() {
        let said = refused("tapstone token --module m.so --pin 1234");
        assert!(said.contains("a PIN is never an argument: --pin-prompt, --pin-file"), "{said}");
        assert!(!said.contains("1234"), "{said}");
        let said = refused("tapstone token --token-label test");
        assert!(said.contains("--module") && said.contains("tapstone targets lists"), "{said}");
    }

    #[test]
    fn other_unknown_options_are_as_before() {
        for line in ["tapstone door measure --target 1s", "tapstone compare --list a b"] {
            let said = refused(line);
            assert!(said.contains("unexpected argument"), "{said}");
            assert!(!said.contains("it is called"), "{said}");
        }
    }

    #[test]
    fn a_successor_is_there_and_a_removed_name_is_not() {
        let definitions = Arguments::command();
        for option in &REMOVED {
            let verb = option.verb.split(' ').fold(&definitions, |verb, name| {
                verb.find_subcommand(name).unwrap_or_else(|| panic!("no verb {}", option.verb))
            });
            let is_there = |name: &str| {
                let name = name.trim_end_matches(',').strip_prefix("--").unwrap();
                verb.get_arguments().any(|argument| argument.get_long() == Some(name))
            };
            let mut successors = option.successor.split(' ').filter(|word| word.starts_with("--"));
            assert!(successors.all(is_there), "{} {}", option.verb, option.successor);
            assert!(!is_there(option.name), "{} {}", option.verb, option.name);
        }
    }

    /// What an option takes says what it means: seconds are no rounds.
    #[test]
    fn an_option_takes_the_same_in_every_verb() {
        let mut taken = BTreeMap::new();
        let definitions = Arguments::command();
        let mut verbs: Vec<_> = definitions.get_subcommands().collect();
        while let Some(verb) = verbs.pop() {
            verbs.extend(verb.get_subcommands());
            for option in verb.get_arguments() {
                let Some(name) = option.get_long() else { continue };
                let values = option.get_value_names().unwrap_or_default();
                let values = values.iter().map(ToString::to_string).collect::<Vec<_>>();
                let ways: &mut BTreeMap<_, Vec<&str>> = taken.entry(name).or_default();
                ways.entry((values, option.get_short())).or_default().push(verb.get_name());
            }
        }
        assert!(taken.len() > 100, "{}", taken.len());
        taken.retain(|name, ways| ways.len() > 1 && !DIFFERENT_KINDS_OF_FILE.contains(name));
        assert!(taken.is_empty(), "{taken:#?}");
    }

    /// Where the output goes, a file or a folder of them; and a suite, which may be a shipped one.
    const DIFFERENT_KINDS_OF_FILE: [&str; 2] = ["output", "suite"];
}
