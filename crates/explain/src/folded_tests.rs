use proptest::prelude::*;

use super::*;
use crate::samples;

fn lines(timeline: &Timeline) -> Vec<(String, u64)> {
    let mut text = Vec::new();
    write_folded(timeline, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = |line: &str| {
        let (stack, time) = line.rsplit_once(' ').unwrap();
        // What follows the last blank of a stack must be no number: it would be another count.
        assert!(stack.rsplit(' ').next().unwrap().parse::<f64>().is_err(), "{line}");
        (stack.to_owned(), time.parse().unwrap())
    };
    text.lines().map(line).collect()
}

#[test]
fn a_thread_is_shared_out_among_its_stacks() {
    let expected = [
        ("pkcs11-tool;main-4211", 100),
        ("pkcs11-tool;main-4211;C_Sign [p11-kit-proxy.so]", 100),
        ("pkcs11-tool;main-4211;C_Sign [p11-kit-proxy.so];C_Sign [opensc-pkcs11.so]", 200),
        (
            "pkcs11-tool;main-4211;C_Sign [p11-kit-proxy.so];C_Sign [opensc-pkcs11.so];SCardTransmit",
            220,
        ),
        (
            "pkcs11-tool;main-4211;C_Sign [p11-kit-proxy.so];C_Sign [opensc-pkcs11.so];\
             SCardTransmit;poll",
            380,
        ),
        ("pkcs11-tool;thread-4212", 300),
        ("pkcs11-tool;thread-4212;open", 100),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(stack, time)| ((*stack).to_owned(), *time)).collect();
    assert_eq!(lines(&samples::signature()), expected);
}

#[test]
fn names_have_no_meaning_in_the_format() {
    let mut timeline = samples::signature();
    timeline.processes[0].program = "/bin/evil;program\nx 7".to_owned();
    timeline.calls[0].module = "p11;kit\n.so".to_owned();
    let lines = lines(&timeline);
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[0].0, "evil_program_x_7;main-4211");
    assert_eq!(lines[1].0, "evil_program_x_7;main-4211;C_Sign [p11_kit_.so]");
}

proptest! {
    /// Whatever overlaps or sticks out, no nanosecond is lost, and none is there twice.
    #[test]
    fn self_times_add_up_to_the_wall_time(thread in samples::any_thread()) {
        let wall = thread.wall();
        let timeline = Timeline { threads: vec![thread], ..samples::signature() };
        let sum: u64 = lines(&timeline).iter().map(|(_, time)| time).sum();
        prop_assert_eq!(sum, wall.0);
    }
}
