//! What the documentation tells people to type, held against the definitions.
//!
//! A command in a block of code must be one that Tapstone takes. One inside a sentence may leave
//! out what it needs, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};

use crate::Arguments;

/// In place of what the reader knows: `tapstone token … --op rsa2048.sign`.
const LEFT_OUT: &str = "…";

/// The root of the sources.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page that shows commands.
fn pages() -> Vec<(String, String)> {
    let mut paths = vec!["README.md", "CHANGELOG.md", "METHODOLOGY.md", "CONTRIBUTING.md"]
        .into_iter()
        .map(|name| root().join(name))
        .collect::<Vec<_>>();
    let mut folders = vec!["docs", "docs/ci", "applet", "reference"];
    // Agents may not be in this build.
    if Arguments::command().find_subcommand("agent").is_some() {
        folders.push("deploy");
    }
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if ["md", "yml", "service"].contains(&ending) {
                paths.push(path);
            }
        }
    }
    let named = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), text)
    };
    paths.into_iter().map(named).collect()
}

/// A command as it is shown.
struct Shown {
    page: String,
    line: String,
    in_a_sentence: bool,
}

fn shown() -> Vec<Shown> {
    let mut all = Vec::new();
    for (page, text) in pages() {
        // What goes on in the next line belongs together.
        let parts: Vec<&str> = text.split("\\\n").map(str::trim).collect();
        let text = parts.join(" ");
        let mut fenced = false;
        for line in text.lines() {
            fenced ^= line.starts_with("```");
            let bare = line.trim_start().trim_start_matches("$ ").trim_start_matches("run: ");
            let bare = bare.strip_prefix("target/release/").unwrap_or(bare);
            // A unit of systemd.
            let started = bare.strip_prefix("ExecStart=/usr/bin/");
            let indented = fenced || line.starts_with("    ") || started.is_some();
            let bare = started.unwrap_or(bare);
            if indented && bare.starts_with("tapstone ") {
                all.push(Shown { page: page.clone(), line: bare.into(), in_a_sentence: false });
            }
            // Code inside sentences and tables stands at every second place.
            if !indented {
                let codes = line.split('`').skip(1).step_by(2);
                all.extend(codes.filter(|code| code.starts_with("tapstone ")).map(|code| Shown {
                    page: page.clone(),
                    line: code.replace("\\|", "|"),
                    in_a_sentence: true,
                }));
            }
        }
    }
    all
}

/// The words of the command itself, without what explains it, or what its output goes to.
fn words(line: &str) -> Vec<String> {
    // Optional arguments of a synopsis are given.
    let line = line.replace(['[', ']'], "");
    let line = line.split("  ").next().unwrap_or(&line);
    let split = shell_words::split(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let mut words = Vec::new();
    for word in split {
        if ["|", ">", "<", "&", "&&", "#"].contains(&word.as_str()) || word.starts_with('<') {
            break;
        }
        let last = word.strip_suffix(';');
        words.push(last.unwrap_or(&word).to_owned());
        if last.is_some() {
            break;
        }
    }
    words.retain(|word| word != LEFT_OUT);
    words
}

/// Why a command cannot be typed.
fn objection(line: &str, in_a_sentence: bool) -> Option<String> {
    let error = Arguments::command().try_get_matches_from(words(line)).err()?;
    let may_be = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            in_a_sentence || line.contains(LEFT_OUT)
        }
        // An option with a placeholder, or named without its value.
        ErrorKind::ValueValidation => in_a_sentence,
        ErrorKind::InvalidValue => in_a_sentence && error.to_string().contains("required"),
        _ => false,
    };
    (!may_be).then(|| format!("{line}\n{error}"))
}

#[test]
fn what_the_documentation_says_can_be_typed() {
    let mut wrong = Vec::new();
    let mut in_blocks = 0;
    // The first line of an output starts with the version.
    for Shown { page, line, in_a_sentence } in
        shown().into_iter().filter(|shown| !shown.line.starts_with("tapstone 0."))
    {
        in_blocks += usize::from(!in_a_sentence);
        wrong.extend(objection(&line, in_a_sentence).map(|why| format!("{page}: {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(in_blocks > 80, "{in_blocks} commands were found: the pages are read wrongly");
}

/// Each verb that people use, with the verbs below it.
fn verbs(command: &Command, above: &str, found: &mut Vec<(String, Command)>) {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("{above} {}", verb.get_name()).trim().to_owned();
        verbs(verb, &name, found);
        if !verb.has_subcommands() {
            found.push((name, verb.clone()));
        }
    }
}

#[test]
fn the_help_of_every_verb_is_complete() {
    let mut all = Vec::new();
    verbs(&Arguments::command(), "", &mut all);
    assert!(all.len() > 12, "{}", all.len());
    let mut wrong = Vec::new();
    for (name, verb) in all {
        let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        if !after.contains("Examples:\n  tapstone ")
            || !after.contains("\nExit codes: 0 ")
                && !after.contains("\nExit codes: the program's own")
        {
            wrong.push(format!("{name}: examples and exit codes end the help: {after:?}"));
        }
        if verb.get_about().is_none_or(|about| about.to_string().ends_with('.')) {
            wrong.push(format!("{name}: one line without a full stop says what it does"));
        }
        for argument in verb.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            if help.is_empty() || help.ends_with('.') {
                wrong.push(format!("{name}: {}: {help:?}", argument.get_id()));
            }
        }
        let examples = after.lines().filter_map(|line| line.strip_prefix("  "));
        let commands = examples.filter(|line| line.starts_with("tapstone "));
        wrong.extend(commands.filter_map(|line| objection(line, false)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Its title names the verb, and its text those below it: `# tapstone door: budget, what-if, …`.
#[test]
fn every_verb_has_a_page() {
    let mut all = Vec::new();
    verbs(&Arguments::command(), "", &mut all);
    let pages = pages();
    for (name, _) in all {
        let first = name.split(' ').next().unwrap_or(&name);
        let tells = |text: &str| {
            let title = text.lines().next().unwrap_or_default().replace([':', ','], "");
            let titled = title.strip_prefix("# tapstone ");
            titled.is_some_and(|verbs| verbs.split(' ').any(|verb| verb == first))
                && text.contains(&format!("tapstone {name}"))
        };
        assert!(pages.iter().any(|(_, text)| tells(text)), "no page tells of tapstone {name}");
    }
}
