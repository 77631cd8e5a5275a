//! The command line of an observed program, as records and errors show it.
//!
//! An argument can be a PIN, a password, a key, or an address with one of them in it, and nothing
//! in it says so. So no argument is shown. What stays is the program's name and its options: of
//! `--name=value` the part up to `=`, of `-nvalue` the dash and one letter. For every other word,
//! and for what was cut off, there is one `…`, whatever its length.

use super::text::scan;

/// What stands for words, and parts of words, that are not shown.
pub const HIDDEN: &str = "…";

/// Whether a record keeps the whole command line of an observed program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The program's name and the names of its options.
    Options,
    /// All words, because the user asked for it.
    Whole,
}

/// A program and its arguments: the name whole, of the arguments what is no secret.
#[must_use]
pub fn shown_words(words: &[String], recorded: Recorded) -> Vec<String> {
    match (recorded, words) {
        (Recorded::Whole, _) | (_, []) => words.to_vec(),
        (Recorded::Options, [program, arguments @ ..]) => {
            let arguments = arguments.iter().map(|word| shown_argument(word));
            [program.clone()].into_iter().chain(arguments).collect()
        }
    }
}

/// A command line in one text, which may be one for a shell. Assignments before the program
/// (`PIN=1234 ./sign`) are not shown either.
#[must_use]
pub fn shown_text(text: &str, recorded: Recorded) -> String {
    if recorded == Recorded::Whole {
        return text.to_owned();
    }
    let words = scan(text).words;
    let mut shown = Vec::new();
    let mut program_seen = false;
    for word in words.into_iter().map(|range| &text[range]) {
        shown.push(if program_seen {
            shown_argument(word)
        } else if is_name(word) {
            program_seen = true;
            word.to_owned()
        } else {
            // Behind a quote or a sign of the shell nothing tells where the program's name is.
            program_seen = !word.contains('=');
            HIDDEN.to_owned()
        });
    }
    shown.join(" ")
}

/// Words as one line that a shell takes, but for those that are not shown.
pub(super) fn joined(words: &[String]) -> String {
    let quoted = |word: &String| match word.ends_with(HIDDEN) {
        true => word.clone(),
        false => shell_words::quote(word).into_owned(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word that is a program's name or path, and no more: no assignment, no quotes, no shell syntax.
fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "_-./+,:%".contains(c))
}

/// An argument without what may be a secret.
fn shown_argument(word: &str) -> String {
    let name = match word.strip_prefix("--") {
        Some(_) => {
            let end = word.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
            let end = end.unwrap_or(word.len());
            // The sign itself tells how the value is given.
            if word[end..].starts_with('=') { &word[..=end] } else { &word[..end] }
        }
        None if word.starts_with('-') => {
            let letter = word.chars().nth(1).filter(char::is_ascii_alphanumeric);
            &word[..1 + letter.map_or(0, char::len_utf8)]
        }
        None => "",
    };
    if name.len() == word.len() && !word.is_empty() {
        return word.to_owned();
    }
    format!("{name}{HIDDEN}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ordinary forms of a secret on a command line, and what is shown of each.
    const SECRETS: &[(&[&str], &str)] = &[
        (&["tool", "--token", "hunter2"], "tool --token …"),
        (&["curl", "-u", "user:hunter2"], "curl -u …"),
        (&["curl", "-H", "Authorization: Bearer hunter2"], "curl -H …"),
        (&["curl", "https://u:hunter2@h"], "curl …"),
        (&["mysql", "-phunter2"], "mysql -p…"),
        (&["env", "X=hunter2", "cmd"], "env … …"),
        (&["tool", "--pin=hunter2", "--"], "tool --pin=… --"),
        (&["tool", "--pin:hunter2"], "tool --pin…"),
        (&["sh", "-c", "tool --pin hunter2"], "sh -c …"),
        (&["openssl", "-passin", "pass:hunter2"], "openssl -p… …"),
        (&["java", "-Dkey=hunter2"], "java -D…"),
        (&["tool", "-=hunter2", "-"], "tool -… -"),
        (&["opensc-tool", "-s", "00 20 00 80 04 hunter2"], "opensc-tool -s …"),
        (&["tool", ""], "tool …"),
    ];

    #[test]
    fn no_argument_is_shown() {
        for (words, shown) in SECRETS {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(shown_words(&words, Recorded::Options).join(" "), *shown);
            assert_eq!(shown_words(&words, Recorded::Whole), words);
        }
    }

    #[test]
    fn of_a_text_the_program_and_its_options_are_shown() {
        for (text, shown) in [
            ("  pkcs11-tool   --login --pin '12 34' -O", "pkcs11-tool --login --pin … -O"),
            ("X=hunter2 cmd -v", "… cmd -v"),
            ("X=hunter2 Y='a b' ./cmd --x=hunter2", "… … ./cmd --x=…"),
            ("sha256sum file", "sha256sum …"),
            ("sort file | uniq -c", "sort … … … -c"),
            ("'my tool' --x", "… --x"),
            ("$(cat hunter2) hunter2", "… … …"),
            ("tool \"--pin\" \"-phunter2\"", "tool … …"),
            ("", ""),
        ] {
            assert_eq!(shown_text(text, Recorded::Options), shown, "{text}");
            assert_eq!(shown_text(text, Recorded::Whole), text);
        }
    }
}
