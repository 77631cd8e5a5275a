//! What is wrong is said in one error with a hint, and with exit code 2.

use crate::{folder, tapstone};

const CARD: &str =
    "title = 'x'\ntarget_ms = 1500\n[[component]]\nkind = 'card'\nfrom = 'assumed'\n";

#[test]
fn scenarios_are_refused_by_file_line_and_field() {
    let negative = format!("{CARD}time_ms = -5\n");
    let unknown = format!(
        "{CARD}time_ms = 5\n[[component]]\nkind = 'reader'\n[[link]]\nbetween = ['card', \
         'reader']\nby = {{ kind = 'pigeon' }}\n"
    );
    let here = folder(&[
        ("negative.toml", &negative),
        ("unknown.toml", &unknown),
        ("empty.toml", ""),
        ("binary.toml", "\u{0}\u{1}"),
    ]);
    for (scenario, says) in [
        ("negative.toml", "negative.toml, line 6, `time_ms`: -5 ms is negative"),
        ("unknown.toml", "unknown.toml, line 11, `by`: unknown variant `pigeon`"),
        ("empty.toml", "empty.toml, line 1"),
        ("binary.toml", "binary.toml, line 1"),
        ("missing.toml", "cannot read missing.toml"),
        ("nowhere", "there is no scenario \"nowhere\""),
    ] {
        for verb in [&["budget"][..], &["what-if"], &["simulate", "--people", "5/h"]] {
            let arguments = [&["door"], verb, &[scenario]].concat();
            let said = tapstone(here.path(), &arguments);
            assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}");
            assert!(said.err.contains(says), "{says}\n{}", said.err);
            assert_eq!(said.err.matches("error: ").count(), 1, "{}", said.err);
            assert_eq!(said.err.matches("\nhint: ").count(), 1, "{}", said.err);
        }
    }
}

#[test]
fn impossible_options_are_refused() {
    let here = folder(&[]);
    for (arguments, says) in [
        (&["what-if", "hid-rsa2048", "--without", "magic"][..], "there is no change \"magic\""),
        (&["what-if", "hid-rsa2048", "--sets", "0"], "0 is not in"),
        (&["simulate", "hid-rsa2048", "--people", "many"], "write a rate of people"),
        (&["simulate", "hid-rsa2048", "--people", "-5/h"], "must be more than 0"),
        (&["simulate", "hid-rsa2048", "--people", "5/week"], "write a rate of people"),
        (&["simulate", "hid-rsa2048", "--people", "5/h", "--count", "3"], "3 people cannot"),
        (&["budget", "hid-rsa2048", "--target-time", "soon"], "write a duration"),
        (&["budget", "hid-rsa2048", "--card", "missing.json"], "missing.json"),
        (&["budget", "my-door.toml", "--show"], "there is no scenario"),
        (&["budget", "hid-rsa2048", "--with", "magic"], "there is no change \"magic\"\nhint: "),
        (
            &["what-if", "hid-rsa2048", "--with", "overlap,background-validation"],
            "overlap excludes background-validation\nhint: choose one",
        ),
        (
            &["simulate", "hid-rsa2048", "--people", "5/h", "--with", "faster-card:p71"],
            "faster-card:p71 needs algorithm:ecc-p256\nhint: add it",
        ),
        (&["budget", "hid-rsa2048", "--output", "no/such/folder.json"], "cannot be written"),
    ] {
        let said = tapstone(here.path(), &[&["door"], arguments].concat());
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(says), "{says}\n{}", said.err);
    }
}
