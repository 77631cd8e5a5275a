//! Suites and profiles that several tests need.

/// A profile of the benchmark applet in which every command takes 20 ms, and what else `more` says.
pub(crate) fn bench_profile(more: &str) -> String {
    format!(
        r#"
name = "test"
description = "the benchmark applet, with time to act between its commands"
source = "a test of Tapstone"
atr = "3B 80 01 81"

[[applet]]
name = "bench"

[time]
command = {{ ms = 20, from = "assumed" }}
{more}
"#
    )
}

/// One command of the benchmark applet again and again.
pub(crate) const COUNTS: &str = r#"
title = "the version of the applet"
application = "F0 54 41 50 53 54 4F 4E 45 01"

[[test]]
name = "card.version"
title = "VERSION"
measure = [{ name = "VERSION", apdu = "80 12 00 00", le = 256, output = true }]
answer = { is = "length", bytes = 2 }
"#;

/// Asks a PIV card for the state of its PIN with an empty VERIFY, which costs no try
/// (SP 800-73-5 part 2, 3.2.1), and wants this status word.
pub(crate) fn tries(word: &str) -> String {
    format!(
        r#"
title = "the state of the PIN"
application = "A0 00 00 03 08 00 00 10 00 01 00"

[[test]]
name = "card.tries"
title = "VERIFY without a PIN"
measure = [{{ name = "VERIFY", apdu = "00 20 00 80", expect = ["{word}"] }}]
"#
    )
}
