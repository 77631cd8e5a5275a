//! Where the words of a text are, and what a shell would act on (POSIX.1-2024, Shell Command
//! Language, 2.2 quoting, 2.6 word expansions).

use std::ops::Range;

/// What a walk along a text has seen.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The words, each with its quotes.
    pub(super) words: Vec<Range<usize>>,
    /// The first character outside quotes (or, of `$` and a backquote, outside single ones) on
    /// which a shell would act.
    pub(super) syntax: Option<char>,
}

pub(super) fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut start = None;
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((place, c)) = characters.next() {
        if quote.is_none() && c.is_ascii_whitespace() {
            scan.words.extend(start.take().map(|start| start..place));
            scan.note(c == '\n', c);
            continue;
        }
        let first = start.is_none();
        start.get_or_insert(place);
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                characters.next();
            }
            (None | Some('"'), '$' | '`') => scan.note(true, c),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[') => scan.note(true, c),
            (None, '~' | '#') => scan.note(first, c),
            _ => {}
        }
    }
    scan.words.extend(start.map(|start| start..text.len()));
    scan
}

impl Scan {
    fn note(&mut self, acts: bool, c: char) {
        if acts {
            self.syntax.get_or_insert(c);
        }
    }
}

/// What only a shell would act on, in words: a character, or an assignment before the program.
pub(super) fn shell_syntax(text: &str) -> Option<String> {
    let scan = scan(text);
    match scan.syntax {
        Some('\n') => return Some("a new line".to_owned()),
        Some(c) => return Some(format!("`{c}`")),
        None => {}
    }
    let (name, _) = text[scan.words.first()?.clone()].split_once('=')?;
    let usual = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(usual);
    is_name.then(|| format!("`{name}=` before the program"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_act_on_is_seen() {
        for (text, syntax) in [
            ("a | b", "`|"),
            ("a && b", "`&"),
            ("a;b", "`;"),
            ("a > /dev/null", "`>"),
            ("a \"$HOME\"", "`$"),
            ("a \"`b`\"", "``"),
            ("a *.txt", "`*"),
            ("a ~/x", "`~"),
            ("a # b", "`#"),
            ("a\nb", "a new line"),
            ("LC_ALL=C a", "`LC_ALL="),
            ("(a)", "`("),
        ] {
            let told = shell_syntax(text).unwrap_or_default();
            assert!(told.starts_with(syntax), "{text}: {told}");
        }
    }

    #[test]
    fn what_it_would_pass_on_is_left_alone() {
        for text in [
            "a 'x | y' \"x | y\" x\\|y '$HOME' \\$HOME",
            "a b=c x~y x#y --a=b ./c:d@e%f+g,h",
            "a 'pkcs11:object=x;pin-source=file:/y?z'",
            "./x=y",
        ] {
            assert_eq!(shell_syntax(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_found_with_their_quotes() {
        let text = " a 'b c'\t\"d\\\" e\"f\\ g ";
        let words: Vec<&str> = scan(text).words.into_iter().map(|word| &text[word]).collect();
        assert_eq!(words, ["a", "'b c'", "\"d\\\" e\"f\\ g"]);
    }
}
