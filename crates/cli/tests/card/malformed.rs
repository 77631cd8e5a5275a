//! Suites that cannot be used: file, line and field are named before any card is asked.

use insta::assert_snapshot;

use crate::support::Tapstone;

/// A good suite; each test below spoils one line of it.
const SUITE: &str = r#"title = "a test"
application = "F0 54 41 50 53 54 4F 4E 45 01"

[values]
des = "f462a7eac78ffedcda0298cb5db9d3e5"

[[prepare]]
name = "key"
steps = [{ name = "PUT KEY PART", apdu = "80 30 01 00", data = "{des}" }]

[[test]]
name = "card.one"
title = "one"
needs = ["key"]
input = { make = "random", bytes = 8 }
measure = [
  { name = "ONE", apdu = "80 12 00 00", data = "{input}", le = 256, output = true },
]
answer = { is = "length", bytes = 2 }
"#;

#[track_caller]
fn spoilt(old: &str, new: &str) -> String {
    assert_eq!(SUITE.matches(old).count(), 1, "{old}");
    Tapstone::suite(&SUITE.replace(old, new)).run().refusal()
}

#[test]
fn the_shape_of_the_file() {
    assert_snapshot!("a_field_is_missing", spoilt("title = \"one\"\n", ""));
    assert_snapshot!("a_field_is_unknown", spoilt("needs =", "nedes ="));
    assert_snapshot!("a_step_field_is_unknown", spoilt("output = true", "outptu = true"));
    assert_snapshot!("no_toml", spoilt("[values]", "[values"));
    assert_snapshot!("no_measure", spoilt("measure =", "before ="));
    assert_snapshot!("no_title", spoilt("title = \"a test\"\n", ""));
    assert_snapshot!("an_empty_file", Tapstone::suite("").run().refusal());
}

#[test]
fn bytes() {
    assert_snapshot!("value_not_hex", spoilt("f462a7eac78f", "f462a7eac78g"));
    assert_snapshot!("aid_not_hex", spoilt("F0 54 41 50", "F0 54 41 5"));
    assert_snapshot!("aid_too_short", spoilt("F0 54 41 50 53 54 4F 4E 45 01", "F0 54"));
    assert_snapshot!("header_not_hex", spoilt("80 12 00 00", "80 12 00 0x"));
    assert_snapshot!("header_of_three_bytes", spoilt("80 12 00 00", "80 12 00"));
    assert_snapshot!("header_of_five_bytes", spoilt("80 12 00 00", "80 12 00 00 00"));
    assert_snapshot!("brace_not_closed", spoilt("\"{input}\"", "\"{input\""));
    assert_snapshot!("width_of_nine", spoilt("\"{input}\"", "\"{length:9}\""));
    assert_snapshot!(
        "status_word_of_three_digits",
        spoilt("le = 256", "le = 256, expect = [\"900\"]")
    );
}

#[test]
fn numbers() {
    assert_snapshot!("le_of_zero", spoilt("le = 256", "le = 0"));
    assert_snapshot!("le_too_large", spoilt("le = 256", "le = 257"));
    assert_snapshot!("chunk_of_zero", spoilt("le = 256", "chunk = 0"));
    assert_snapshot!("chunk_and_chain", spoilt("le = 256", "chunk = 8, chain = true"));
    assert_snapshot!("input_too_long", spoilt("bytes = 8", "bytes = 5000"));
}

#[test]
fn names() {
    assert_snapshot!("unknown_maker", spoilt("\"random\"", "\"randon\""));
    assert_snapshot!("unknown_judge", spoilt("\"length\"", "\"lenght\""));
    assert_snapshot!(
        "unknown_key",
        spoilt("make = \"random\"", "make = \"3des-m2\", key = \"dse\"")
    );
    let key = "\"f462a7eac78ffedcda0298cb5db9d3e5\"\n";
    let short = "\"f462\"\n";
    let maker = "make = \"3des-m2\", key = \"des\"";
    let suite = SUITE.replace(key, short).replace("make = \"random\"", maker);
    assert_snapshot!("key_of_another_length", Tapstone::suite(&suite).run().refusal());
    assert_snapshot!("unknown_group", spoilt("needs = [\"key\"]", "needs = [\"kye\"]"));
    assert_snapshot!("judge_without_output", spoilt(", output = true", ""));
    assert_snapshot!("judge_without_length", spoilt("\"length\", bytes = 2", "\"length\""));
}
