//! The command that a reader types next, made from the one that wrote the record.

use crate::shell::quoted_or_hidden;

/// The option of a trace that a trial of its findings needs too. What an operation is, is the
/// trace's affair: a trial compares whole runs.
const KEPT: &str = "--with-daemon";

/// `tapstone trial --fix … -- …`, its words as a shell takes them; `None` when the record does not tell what was run.
pub(super) fn trial(command: &[String], fix: &str) -> Option<Vec<String>> {
    let end = command.iter().position(|word| word == "--")?;
    let options = &command[..end];
    let program = &command[end + 1..];
    if program.is_empty() {
        return None;
    }
    let mut words = vec!["tapstone", "trial", "--fix", fix];
    for (at, word) in options.iter().enumerate() {
        if word == KEPT {
            words.extend([KEPT].into_iter().chain(options.get(at + 1).map(String::as_str)));
        } else if word.strip_prefix(KEPT).is_some_and(|rest| rest.starts_with('=')) {
            words.push(word);
        }
    }
    words.push("--");
    words.extend(program.iter().map(String::as_str));
    Some(words.into_iter().map(quoted_or_hidden).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_trial_of_a_trace_runs_the_same_program() {
        let traced = [
            "tapstone",
            "trace",
            "--output",
            "t.json",
            "--with-daemon",
            "pcscd --foreground",
            "--operation=C_Sign",
            "--",
            "sh",
            "-c",
            "it's",
            "",
        ];
        assert_eq!(
            trial(&words(&traced), "no-sleep:SCardEndTransaction").unwrap().join(" "),
            r"tapstone trial --fix no-sleep:SCardEndTransaction --with-daemon 'pcscd --foreground' -- sh -c 'it'\''s' ''"
        );
        assert_eq!(trial(&words(&["tapstone", "trace", "--"]), "x"), None);
        assert_eq!(trial(&words(&["tapstone", "trace"]), "x"), None);
    }
}
