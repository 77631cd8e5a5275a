//! What `tapstone --help`, `tapstone help VERB` and `tapstone token -h` show, and which verb a
//! mistyped one is taken for.
//!
//! Options and verbs are described where they are defined; here is only how they are arranged.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// The verbs in the order in which an investigation takes them: measure, explain, prove, show.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["token", "card", "pcsc", "door"]),
    ("Explain", &["trace"]),
    ("Prove", &["trial", "ab", "compare"]),
    ("Show", &["report", "demo"]),
    ("More", &["targets", "vcard", "agent", "hosts", "import", "completions"]),
];

/// The options of `tapstone token` that people use every day, by their names in the definitions.
const TOKEN_EVERY_DAY: [&str; 14] = [
    "module",
    "token_label",
    "pin_file",
    "pin_prompt",
    "op",
    "claim",
    "list_operations",
    "threads",
    "seconds",
    "rate",
    "find_limit",
    "within",
    "output",
    "format",
];

/// What a newcomer types first, below the short help of `tapstone token`.
const TOKEN_EXAMPLES: &str = "\
Examples:
  tapstone token --module /usr/lib/softhsm/libsofthsm2.so --token-label demo --pin-prompt
  tapstone token … --op rsa2048.sign --find-limit

All options: tapstone token --help. Exit codes: 0 done, 1 a claim was missed or is undecided,
2 could not measure.";

/// The definitions with their verbs in groups, and a short help of `token` that fits a screen.
pub(crate) fn arranged(definitions: Command) -> Command {
    let verbs = verbs_in_groups(&definitions);
    definitions
        .help_template(format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}{{after-help}}"
        ))
        .after_help(
            "Options of a verb: tapstone help VERB, or tapstone VERB -h for the usual ones.",
        )
        .mut_subcommand("token", short_token_help)
}

fn short_token_help(token: Command) -> Command {
    let at_length = token.get_after_help().cloned().unwrap_or_default();
    token
        .mut_args(|option| {
            let every_day = TOKEN_EVERY_DAY.contains(&option.get_id().as_str());
            option.hide_short_help(!every_day)
        })
        .after_help(TOKEN_EXAMPLES)
        .after_long_help(at_length)
}

/// One paragraph a group: its name, then a line for each verb with what it does.
fn verbs_in_groups(definitions: &Command) -> String {
    let widest = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max();
    let width = widest.unwrap_or_default();
    let mut text = String::new();
    for (group, verbs) in GROUPS {
        let known = verbs.iter().filter_map(|verb| definitions.find_subcommand(verb));
        let lines: Vec<String> = known
            .map(|verb| {
                let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
                format!("  {:width$}  {about}\n", verb.get_name())
            })
            .collect();
        if !lines.is_empty() {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{group}:\n{}", lines.concat());
        }
    }
    text
}

/// `tapstone help tokne` suggests what `tapstone tokne` does: clap suggests nothing behind `help`.
pub(crate) fn with_suggestion(
    error: Error,
    definitions: &Command,
    words: impl Iterator<Item = OsString>,
) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_none_or(|word| word != "help") {
        return error;
    }
    words.remove(1);
    let direct = definitions.clone().try_get_matches_from(words).err();
    direct.filter(|direct| direct.kind() == error.kind()).unwrap_or(error)
}

/// The error without the verbs that are processes of Tapstone's own: nobody meant those.
pub(crate) fn without_hidden_verbs(mut error: Error, definitions: &Command) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::Strings(similar)) = error.remove(ContextKind::SuggestedSubcommand)
    else {
        return error;
    };
    let is_hidden = |name: &String| {
        definitions.get_subcommands().any(|verb| verb.get_name() == name && verb.is_hide_set())
    };
    // The most similar one stands last.
    let shown: Vec<String> = similar.into_iter().filter(|name| !is_hidden(name)).collect();
    if !shown.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Arguments;

    #[test]
    fn every_verb_for_people_is_in_one_group() {
        let definitions = Arguments::command();
        let mut shown: Vec<&str> = definitions
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
        let help = arranged(definitions.clone()).render_help().to_string();
        for verb in shown {
            assert_eq!(help.matches(&format!("\n  {verb} ")).count(), 1, "{verb}\n{help}");
        }
    }

    #[test]
    fn the_short_help_of_token_fits_a_screen_and_the_long_one_has_everything() {
        let mut definitions = arranged(Arguments::command()).term_width(100);
        definitions.build();
        let token = definitions.find_subcommand_mut("token").unwrap();
        let options: Vec<String> = token
            .get_arguments()
            .filter_map(|option| option.get_long())
            .map(|long| format!("--{long} "))
            .collect();
        let short = token.render_help().to_string();
        let long = token.render_long_help().to_string();
        assert!(short.lines().count() <= 48, "{} lines\n{short}", short.lines().count());
        for option in TOKEN_EVERY_DAY {
            assert!(
                short.contains(&format!("--{}", option.replace('_', "-"))),
                "{option}\n{short}"
            );
        }
        for option in options {
            assert!(long.contains(option.trim_end()), "{option}");
        }
    }

    #[test]
    fn a_mistyped_verb_is_taken_for_one_that_people_use() {
        let definitions = || arranged(Arguments::command());
        for (typed, meant) in [("tokne", "token"), ("carrd", "card"), ("reprot", "report")] {
            let error = definitions().try_get_matches_from(["tapstone", typed]).unwrap_err();
            let text = without_hidden_verbs(error, &definitions()).render().to_string();
            assert!(text.contains(&format!("'{meant}'")), "{text}");
            assert!(!text.contains("worker"), "{text}");
            let words = || ["tapstone", "help", typed].map(OsString::from).into_iter();
            let error = definitions().try_get_matches_from(words()).unwrap_err();
            let error = with_suggestion(error, &definitions(), words());
            let behind_help = without_hidden_verbs(error, &definitions()).render().to_string();
            assert_eq!(behind_help, text);
        }
    }
}
