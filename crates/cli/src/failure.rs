//! What went wrong, as one text: causes first, and one hint at the end.

use std::fmt;

use tapstone_text::Foreign;

/// An error for people.
pub(crate) struct Failure<'a>(pub(crate) &'a anyhow::Error);

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.chain().map(ToString::to_string).collect();
        let parts = texts.iter().map(|text| text.split_once("\nhint: ").unwrap_or((text, "")));
        let mut told = String::new();
        let mut advice = "";
        for (what, hint) in parts {
            // Errors often have their cause in their own text.
            if !told.contains(what) {
                let colon = if told.is_empty() { "" } else { ": " };
                told.push_str(colon);
                told.push_str(what);
            }
            // The first knows best what was to be done.
            advice = if advice.is_empty() { hint } else { advice };
        }
        // Names of files, readers and tokens come from outside.
        write!(f, "{}", Foreign::with_lines(told))?;
        if advice.is_empty() {
            Ok(())
        } else {
            write!(f, "\nhint: {}", Foreign::with_lines(advice))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context;

    use super::*;

    fn gone() -> io::Error {
        io::Error::other("it is gone")
    }

    #[test]
    fn the_hint_ends_the_text_and_nothing_is_said_twice() {
        let read = |text: &str| Err::<(), _>(gone()).with_context(|| text.to_owned()).unwrap_err();
        let cause_inside = read("cannot read x: it is gone\nhint: check the path");
        let text = Failure(&cause_inside).to_string();
        assert_eq!(text, "cannot read x: it is gone\nhint: check the path");
        let cause_apart = read("cannot read x\nhint: check the path");
        assert_eq!(Failure(&cause_apart).to_string(), text);
        let deep = cause_apart.context("the trace");
        assert_eq!(Failure(&deep).to_string(), format!("the trace: {text}"));
        assert_eq!(Failure(&anyhow::anyhow!("plain")).to_string(), "plain");
    }

    #[test]
    fn what_comes_from_outside_does_not_act() {
        let error = anyhow::anyhow!("\u{1b}[31mred\r\u{9b}x\nhint: \u{7}bell");
        assert_eq!(
            Failure(&error).to_string(),
            "\u{fffd}[31mred\u{fffd}\u{fffd}x\nhint: \u{fffd}bell"
        );
    }
}
