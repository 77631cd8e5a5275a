//! What is planned of small suites.

use super::*;

const SUITE: &str = r#"
title = "a test"
application = "F0 54 41 50 53 54 4F 4E 45 01"
pin_bytes = 8

[values]
des = "f462a7eac78ffedcda0298cb5db9d3e5"

[[prepare]]
name = "key"
writes = "a key"
steps = [{ name = "PUT KEY PART", apdu = "80 30 01 00", data = "{des}" }]
clean_up = [{ name = "CLEAR KEY", apdu = "80 31 01 00" }]

[[prepare]]
name = "pin"
steps = [{ name = "VERIFY", apdu = "00 20 00 80", data = "{pin}" }]

[[prepare]]
name = "second"
writes = "another key"
steps = [{ name = "PUT KEY PART", apdu = "80 30 02 00", data = "{des}" }]
clean_up = [{ name = "CLEAR KEY", apdu = "80 31 02 00" }]

[[test]]
name = "card.plain"
title = "one command"
measure = [{ name = "VERSION", apdu = "80 12 00 00", le = 256, output = true }]
answer = { is = "length", bytes = 2 }

[[test]]
name = "card.aes.encrypt"
title = "what is varied"
needs = ["second", "key"]
input = { make = "random" }
vary = { bytes = [16, 32], set_ups = [1, 4], operations = [1, 10] }
measure = [{ name = "REPEAT", apdu = "80 60 03 00", data = "{input}" }]

[[test]]
name = "card.aes.decrypt"
title = "one thing varied"
input = { make = "random", bytes = 16 }
vary = { operations = [1, 10] }
measure = [{ name = "REPEAT", apdu = "80 60 03 00", data = "{input}" }]

[[test]]
name = "card.signed"
title = "with the PIN"
needs = ["pin"]
measure = [{ name = "SIGN", apdu = "00 87 07 9A" }]

[[test]]
name = "card.eeprom"
title = "the same cells"
writes = "cells"
write_cycles = 10
vary = { operations = [1, 10] }
measure = [{ name = "WRITE", apdu = "80 60 10 FF" }]
"#;

fn plan_of(text: &str, wishes: &Wishes) -> Result<Plan, String> {
    let source = SuiteText { name: "a suite".to_owned(), text: text.to_owned() };
    let suite = source.parse().map_err(|error| error.to_string())?;
    Plan::from_suite(&source, &suite, wishes).map_err(|error| error.to_string())
}

fn plan(wishes: &Wishes) -> Plan {
    plan_of(SUITE, wishes).unwrap()
}

fn wishes(tests: &[&str]) -> Wishes {
    let tests = tests.iter().map(|test| (*test).to_owned()).collect();
    Wishes { tests, rounds: 20, ..Wishes::default() }
}

fn everything() -> Wishes {
    let pin = Some(Secret::padded(b"123456", 0));
    Wishes { allow_writes: true, pin, ..wishes(&[]) }
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.cases.iter().map(|case| case.case.operation.as_str()).collect()
}

#[test]
fn two_tests_of_one_name_are_an_error() {
    let again = "[[test]]\nname = \"card.plain\"\ntitle = \"again\"\nmeasure = [{ name = \"GET\", apdu = \"80 CA 00 00\" }]\n";
    let error = plan_of(&format!("{SUITE}{again}"), &everything()).unwrap_err();
    let line = 2 + SUITE.lines().count();
    assert!(error.contains("a second [[test]] is called \"card.plain\""), "{error}");
    assert!(error.contains(&format!(":{line}: ")) && error.contains("hint:"), "{error}");
    // Also where only one of them was asked for.
    assert!(plan_of(&format!("{SUITE}{again}"), &wishes(&["card.aes*"])).is_err());
}

#[test]
fn two_preparations_of_one_name_are_an_error() {
    let group = "[[prepare]]\nname = \"mine\"\nsteps = []\n";
    let error = plan_of(&format!("{SUITE}{group}{group}"), &everything()).unwrap_err();
    assert!(error.contains("a second [[prepare]] is called \"mine\""), "{error}");
}

#[test]
fn a_value_that_is_varied_twice_is_an_error() {
    let doubled = SUITE.replace(
        "write_cycles = 10\nvary = { operations = [1, 10] }",
        "write_cycles = 10\nvary = { operations = [1, 1] }",
    );
    assert_ne!(doubled, SUITE);
    let error = plan_of(&doubled, &everything()).unwrap_err();
    assert!(error.contains("two cases are called \"card.eeprom[operations=1]\""), "{error}");
}

#[test]
fn cases_are_named_by_what_is_varied() {
    let plan = plan(&everything());
    assert_eq!(
        names(&plan),
        [
            "card.plain",
            "card.aes.encrypt[bytes=16,set_ups=1,operations=1]",
            "card.aes.encrypt[bytes=16,set_ups=1,operations=10]",
            "card.aes.encrypt[bytes=16,set_ups=4,operations=1]",
            "card.aes.encrypt[bytes=16,set_ups=4,operations=10]",
            "card.aes.encrypt[bytes=32,set_ups=1,operations=1]",
            "card.aes.encrypt[bytes=32,set_ups=1,operations=10]",
            "card.aes.encrypt[bytes=32,set_ups=4,operations=1]",
            "card.aes.encrypt[bytes=32,set_ups=4,operations=10]",
            "card.aes.decrypt[operations=1]",
            "card.aes.decrypt[operations=10]",
            "card.signed",
            "card.eeprom[operations=1]",
            "card.eeprom[operations=10]",
        ]
    );
    assert_eq!(plan.cases.len(), plan.job.lanes.len());
    assert!(plan.left_out.is_empty());
    let case = &plan.cases[4];
    assert_eq!(case.point, Point { bytes: 16, set_ups: 4, operations: 10 });
    assert_eq!((case.case.message_bytes, case.test.as_str()), (Some(16), "card.aes.encrypt"));
    let lane = &plan.job.lanes[4];
    assert_eq!((lane.set_ups, lane.operations), (4, 10));
    assert_eq!(plan.cases[0].case.message_bytes, None);
}

#[test]
fn inputs_differ_from_one_another_and_stay_the_same_for_a_seed() {
    let inputs = |seed| plan(&Wishes { seed, ..everything() }).job.lanes[1].inputs.clone();
    let mut some = inputs(1);
    assert_eq!((some.len(), some[0].len()), (16, 16));
    assert_eq!(some, inputs(1));
    assert_ne!(some, inputs(2));
    some.sort();
    some.dedup();
    assert_eq!(some.len(), 16);
    // What the controller keeps is what the worker sends.
    let plan = plan(&everything());
    let kept: Vec<_> = plan.cases[1].materials.iter().map(|it| it.input.clone()).collect();
    assert_eq!(kept, plan.job.lanes[1].inputs);
}

#[test]
fn tests_are_chosen_by_name_with_or_without_the_prefix() {
    let chosen = |wish| plan(&Wishes { tests: vec![String::from(wish)], ..everything() });
    assert_eq!(names(&chosen("card.plain")), ["card.plain"]);
    assert_eq!(names(&chosen("plain")), ["card.plain"]);
    assert_eq!(chosen("card.aes*").cases.len(), 10);
    assert_eq!(chosen("aes.d*").cases.len(), 2);
    let unknown = plan_of(SUITE, &wishes(&["aes"])).unwrap_err();
    assert!(unknown.starts_with("a suite: no test \"aes\"; there are card.plain, "), "{unknown}");
}

#[test]
fn what_is_not_allowed_is_left_out_with_the_reason() {
    let plan = plan(&wishes(&[]));
    let reasons: Vec<_> =
        plan.left_out.iter().map(|(test, why)| format!("{test}: {why}")).collect();
    assert_eq!(
        reasons,
        [
            "card.aes.encrypt: writes to the card (another key): allow it with --allow-writes",
            "card.signed: needs the PIN: name one with --pin-file",
            "card.eeprom: writes to the card (cells): allow it with --allow-writes",
        ]
    );
    // What nobody needs is not prepared, and nothing changes.
    let prepared: Vec<_> = plan.job.prepare.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(prepared, ["SELECT"]);
    assert!(plan.job.clean_up.is_empty() && plan.changes.is_empty());
}

#[test]
fn groups_are_prepared_in_the_order_of_the_file_and_undone_backwards() {
    let plan = plan(&everything());
    let header = |step: &Step| match &step.header[..] {
        [Piece::Bytes(bytes)] => hex::encode(bytes),
        other => panic!("{other:?}"),
    };
    let headers = |steps: &[Step]| steps.iter().map(header).collect::<Vec<_>>();
    assert_eq!(headers(&plan.job.prepare), ["00a40400", "80300100", "00200080", "80300200"]);
    assert_eq!(headers(&plan.job.clean_up), ["80310200", "80310100"]);
    let expected = ["cells", "420 writes to the same cells (card.eeprom)", "a key", "another key"];
    assert_eq!(plan.changes, expected);
}

#[test]
fn cells_are_written_at_most_a_thousand_times() {
    // 10 cycles, two cases, and one operation more to find out whether the card can do it.
    let of = |rounds| plan(&Wishes { rounds, tests: vec!["eeprom".into()], ..everything() });
    assert_eq!(of(49).changes[1], "1000 writes to the same cells (card.eeprom)");
    let too_many = of(50);
    assert!(too_many.cases.is_empty() && too_many.changes.is_empty());
    assert_eq!(
        too_many.left_out[0].1,
        "50 rounds would write more than 1000 times to the same cells: at most 49 rounds"
    );
}

#[test]
fn the_pin_is_padded_and_never_too_long() {
    let pin = plan(&everything()).job.pin.unwrap();
    assert_eq!(pin.expose(), b"123456\xFF\xFF");
    assert!(!format!("{pin:?}").contains("123456") && !format!("{pin:?}").contains("49, 50"));
    for pin in [&b""[..], b"123456789"] {
        let refused = plan_of(SUITE, &Wishes { pin: Some(Secret::padded(pin, 0)), ..everything() });
        let error = refused.unwrap_err();
        assert!(error.contains(&format!("has {} bytes", pin.len())), "{error}");
        assert!(!error.contains("123456"), "{error}");
    }
}

#[test]
fn commands_that_write_belong_under_something_that_says_so() {
    for (header, refused) in [
        // CHANGE REFERENCE DATA, PUT DATA, GENERATE ASYMMETRIC KEY PAIR, ERASE BINARY, PUT KEY.
        ("00 24 00 80", true),
        ("00 DB 3F FF", true),
        ("00 47 00 9A", true),
        ("00 0E 00 00", true),
        ("80 D8 00 00", true),
        // With command chaining, or on another channel.
        ("10 DB 3F FF", true),
        ("01 DB 3F FF", true),
        // GET DATA, and a proprietary command that may do anything.
        ("00 CB 3F FF", false),
        ("80 24 00 00", false),
    ] {
        let text = SUITE.replace("80 12 00 00", header);
        let outcome = plan_of(&text, &everything());
        assert_eq!(outcome.is_err(), refused, "{header}: {:?}", outcome.err());
    }
    let text = SUITE.replace("80 12 00 00", "00 24 00 80");
    let error = plan_of(&text, &everything()).unwrap_err();
    assert!(error.starts_with("a suite:28: apdu: VERSION changes the card"), "{error}");
    let said = text.replace("title = \"one command\"", "title = \"one command\"\nwrites = \"it\"");
    assert!(plan_of(&said, &everything()).is_ok());
}

#[test]
fn a_pin_is_not_given_after_an_operation() {
    let after =
        "after = [{ name = \"VERIFY\", apdu = \"00 20 00 80\", data = \"{pin}\" }]\nanswer =";
    let error = plan_of(&SUITE.replacen("answer =", after, 1), &everything()).unwrap_err();
    assert!(error.contains("{pin} is for what comes before"), "{error}");
}

#[test]
fn a_cold_card_is_not_measured_with_a_warm_one() {
    let text = SUITE.replacen("title = \"one command\"", "title = \"cold\"\ncold = true", 1);
    // Nothing is selected on a card that was just powered.
    let text = text.replace("80 12 00 00", "00 CA 00 00");
    assert!(plan_of(&text, &everything()).unwrap_err().contains("cold = true"));
    let alone = plan_of(&text, &wishes(&["card.plain"])).unwrap();
    assert_eq!(alone.cases[0].case.steps, ["SCardConnect", "SCardBeginTransaction", "VERSION"]);
    assert_eq!(alone.job.lanes[0].steps_before(), 2);
}

/// What no card is ever sent is an error in its own line, before a card is asked.
#[test]
fn what_is_never_sent_is_an_error_of_the_suite() {
    let spoilt = |step: &str| {
        let text = SUITE.replace("apdu = \"80 12 00 00\", le = 256", step);
        assert_ne!(text, SUITE);
        let error = plan_of(&text, &everything()).unwrap_err();
        error
            .strip_prefix("a suite:28: apdu: VERSION")
            .unwrap_or_else(|| panic!("{error}"))
            .to_owned()
    };
    let costs = " can cost a try of a PIN or a key";
    assert!(spoilt("apdu = \"00 20 00 80\", data = \"39\"").starts_with(costs));
    assert!(spoilt("apdu = \"10 20 00 80\", data = \"39\"").starts_with(costs));
    assert!(spoilt("apdu = \"00 C2 00 00\", data = \"00 20 00 80 01 31\"").starts_with(costs));
    assert!(spoilt("apdu = \"00 24 00 80\", data = \"39\", effect = \"read\"").starts_with(costs));
    assert!(spoilt("apdu = \"00 FE 00 00\"").starts_with(" is never sent: it ends a card"));
    assert!(spoilt("apdu = \"0C B0 00 00\"").starts_with(" is never sent: what secure messaging"));
    assert!(spoilt("apdu = \"FF CA 00 00\"").starts_with(" is never sent: its class"));
    assert!(spoilt("apdu = \"80 99 00 00\"").contains("no standard says what it does"));
    let pin = ": {pin} is for a plain VERIFY";
    assert!(spoilt("apdu = \"00 20 00 80\", data = \"{pin}\", chain = true").starts_with(pin));
    assert!(spoilt("apdu = \"00 20 00 80\", data = \"{pin} FF\"").starts_with(pin));
    assert!(spoilt("apdu = \"00 24 00 80\", data = \"{pin}\"").starts_with(pin));
    assert!(spoilt("apdu = \"00 D6 00 00\", data = \"{pin}\", effect = \"it\"").starts_with(pin));
}

#[test]
fn what_a_step_says_of_itself_counts_like_what_its_test_says() {
    let said = |effect: &str| {
        let step = format!("apdu = \"80 99 00 00\", effect = \"{effect}\", le = 256");
        SUITE.replace("apdu = \"80 12 00 00\", le = 256", &step)
    };
    let plan = plan_of(&said("read"), &wishes(&["card.plain"])).unwrap();
    assert!(plan.left_out.is_empty() && plan.changes.is_empty());
    let plan = plan_of(&said("a counter"), &wishes(&["card.plain"])).unwrap();
    let why = "writes to the card (a counter): allow it with --allow-writes";
    assert_eq!(plan.left_out, [("card.plain".to_owned(), why.to_owned())]);
    let plan = plan_of(&said("a counter"), &everything()).unwrap();
    assert!(plan.changes.contains(&"a counter".to_owned()), "{:?}", plan.changes);
    // Said of two steps it is announced once.
    let twice = said("a counter").replace("measure = [{ name = \"WRITE\"", "before = [{ name = \"FLUSH\", apdu = \"80 26 00 00\", effect = \"cells\" }]\nmeasure = [{ name = \"WRITE\"");
    let plan = plan_of(&twice, &everything()).unwrap();
    assert_eq!(plan.changes.iter().filter(|it| *it == "cells").count(), 1, "{:?}", plan.changes);
    assert!(plan_of(&said(" "), &everything()).unwrap_err().contains("effect: say \"read\""));
}

#[test]
fn the_shipped_suites_can_be_planned_in_full() {
    for (name, _) in crate::suite::file::SHIPPED {
        let source = SuiteText::find(name).unwrap();
        let suite = source.parse().unwrap();
        let mut wishes = everything();
        // A suite with cold and warm tests is run in two.
        let plan = Plan::from_suite(&source, &suite, &wishes).unwrap();
        assert!(plan.left_out.is_empty(), "{name}: {:?}", plan.left_out);
        assert!(plan.cases.len() >= suite.test.len(), "{name}");
        wishes.allow_writes = false;
        let reading = Plan::from_suite(&source, &suite, &wishes).unwrap();
        assert!(reading.changes.is_empty(), "{name}: {:?}", reading.changes);
    }
}
