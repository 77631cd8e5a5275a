//! How the program was called, for records.

use std::env;
use std::ffi::OsString;

use clap::Args;
use tapstone_command::command::{Recorded, shown_text, shown_words};

/// Its words. A file name need not be UTF-8: what is not is shown as a replacement character. What
/// a module is told may hold a secret: `…` stands for it.
pub(crate) fn words() -> Vec<String> {
    without_module_arguments(texts(env::args_os()))
}

fn without_module_arguments(words: Vec<String>) -> Vec<String> {
    const OPTION: &str = "--module-args";
    let mut follows = false;
    let shown = |word: String| {
        let hidden = std::mem::replace(&mut follows, word == OPTION);
        let value = word.strip_prefix(OPTION).is_some_and(|rest| rest.starts_with('='));
        match (hidden, value) {
            (true, _) => "…".to_owned(),
            (_, true) => format!("{OPTION}=…"),
            _ => word,
        }
    };
    words.into_iter().map(shown).collect()
}

fn texts(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
    words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// What a record keeps of the command line of a program that was run.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RecordArguments {
    /// Keep the program's whole command line in the record; without it, only the program and its
    /// options, since an argument can be a secret
    #[arg(long)]
    record_command: bool,
}

impl RecordArguments {
    pub(crate) const fn recorded(self) -> Recorded {
        if self.record_command { Recorded::Whole } else { Recorded::Options }
    }

    /// The words of this call, which ran a program with its arguments: the last words of it.
    pub(crate) fn words_with_program(
        self,
        program: &[OsString],
        daemon: Option<&str>,
    ) -> Vec<String> {
        let words = words();
        let (own, _) = words.split_at(words.len() - program.len());
        let own = self.shown_in(own, daemon.as_slice());
        own.into_iter().chain(shown_words(&texts(program.to_vec()), self.recorded())).collect()
    }

    /// The words of this call, in which these are commands: each is a word, or stands behind the
    /// `=` of an option.
    pub(crate) fn words_with_commands(self, commands: &[&str]) -> Vec<String> {
        self.shown_in(&words(), commands)
    }

    fn shown_in(self, words: &[String], commands: &[&str]) -> Vec<String> {
        let shown = |word: &String| {
            let command = commands.iter().find(|command| {
                let option = word.strip_suffix(*command);
                option.is_some_and(|option| {
                    option.is_empty() || (option.starts_with("--") && option.ends_with('='))
                })
            });
            command.map_or_else(
                || word.clone(),
                |command| {
                    let option = word.strip_suffix(command).unwrap_or_default();
                    option.to_owned() + &shown_text(command, self.recorded())
                },
            )
        };
        words.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_is_told_is_not_kept() {
        let words =
            ["tapstone", "token", "--module-args", "pw=x", "--module-args=pw=y", "--op", "a"];
        let shown = without_module_arguments(words.map(str::to_owned).to_vec());
        assert_eq!(
            shown,
            ["tapstone", "token", "--module-args", "…", "--module-args=…", "--op", "a"]
        );
    }

    #[test]
    fn commands_among_the_words_are_shown_without_their_arguments() {
        let arguments = RecordArguments { record_command: false };
        let words =
            ["tapstone", "ab", "--prepare=rm -f x", "--name", "old", "--", "a --pin 1", "b x"];
        let commands = ["rm -f x", "a --pin 1", "b x"];
        let shown = arguments.shown_in(&words.map(str::to_owned), &commands);
        assert_eq!(
            shown,
            ["tapstone", "ab", "--prepare=rm -f …", "--name", "old", "--", "a --pin …", "b …"]
        );
        let whole = RecordArguments { record_command: true };
        assert_eq!(whole.shown_in(&words.map(str::to_owned), &commands), words);
    }
}
