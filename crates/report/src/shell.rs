//! Command lines as a POSIX shell takes them.

/// What stands in a record for words of a command line that it does not keep.
pub(crate) const HIDDEN: char = '…';

/// A word as a shell takes it: quoted where a character of it means something to a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    // `=x` names a command in zsh; a `~` in the middle, as in `--key=~/x`, is not plain anyway.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The same of a word of a record; one that is not kept whole stays a template.
pub(crate) fn quoted_or_hidden(word: &str) -> String {
    if word.ends_with(HIDDEN) && !word.contains(' ') { word.to_owned() } else { quoted(word) }
}

/// Whether a word, or a part of one, is not in the record.
pub(crate) fn hides(words: &[String]) -> bool {
    words.iter().any(|word| word.contains(HIDDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_not_take_it_as_it_is() {
        let cases = [
            ("--claim", "--claim"),
            ("rsa2048.sign >= 5000/s", "'rsa2048.sign >= 5000/s'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("=ls", "'=ls'"),
            ("~/x", "'~/x'"),
            ("$HOME;`id`", "'$HOME;`id`'"),
            ("a\nb", "'a\nb'"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
        assert_eq!(quoted_or_hidden("--module-args=…"), "--module-args=…");
        assert!(hides(&["a".into(), "…".into()]));
        assert!(!hides(&["a".into()]));
    }
}
