use super::*;
use crate::findings::prediction::{self, Saving};
use crate::findings::tests::{each, figures, only, trial, whole};
use crate::operation::Operations;
use crate::synthetic::{Story, ThreadStory, micros, millis};
use crate::timeline::Timeline;

fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
    Story::new().thread(tell).timeline()
}

fn saving(timeline: &Timeline, finding: &Finding) -> Saving {
    let removable = prediction::union([finding]);
    prediction::saving(timeline, &Operations::whole(timeline), &removable)
}

fn leaves(scene: &Scene<'_>) -> Vec<Finding> {
    find(scene, [])
}

/// Asks for a protocol's name for each packet.
fn packets(told: &mut ThreadStory<'_>, count: u64) {
    for _ in 0..count {
        told.leaf("getprotobynumber", micros(40)).with(|leaf| {
            leaf.a = 6;
            leaf.result = 0x1234;
        });
        told.advance(micros(60));
    }
}

#[test]
fn a_lookup_for_each_packet_is_found() {
    let timeline = one(|told| packets(told, 1_000));
    let finding = only(whole(&timeline, leaves));
    assert_eq!(figures(&finding), (999.0, 999, micros(999 * 40), 400));
    assert_eq!((finding.place.as_str(), finding.layer.as_str()), ("getprotobynumber", "program"));
    assert_eq!(trial(&finding).as_deref(), Some("memoise:getprotobynumber"));
    let says = "getprotobynumber(6) was called 1,000 times and returned the same each time";
    assert_eq!(finding.evidence, [says]);
    // The first one is needed.
    let second = Removed { thread: 0, start: micros(100), end: micros(140) };
    assert_eq!(finding.removed[0], second);
}

#[test]
fn lookups_that_were_counted_are_all_but_the_first_in_vain() {
    let timeline = one(|told| {
        told.counted("getpwnam", 10, micros(15), micros(200)).about("card");
        told.advance(micros(300));
    });
    let finding = only(whole(&timeline, leaves));
    assert_eq!((finding.count, finding.time), (9, micros(135)));
    assert!(finding.evidence[0].starts_with("getpwnam(\"card\") was called 10 times"));
    // All that lies between them is between equal calls.
    let timeline = one(|told| {
        told.counted("getpwnam", 10, micros(15), millis(2)).about("card");
        told.advance(micros(2100)).call("C_Sign", 1, millis(1));
    });
    let saved = saving(&timeline, &only(whole(&timeline, leaves)));
    assert_eq!((saved.low, saved.high), (135e3, 2100e3));
    // A longer one of the same is listed among them.
    let with_long = |name: &str| {
        let timeline = one(|told| {
            told.counted("getpwnam", 10, micros(15), millis(2)).about("card");
            told.advance(micros(500)).leaf("getpwnam", micros(30)).about(name);
            told.advance(micros(1570)).call("C_Sign", 1, millis(1));
        });
        saving(&timeline, &only(whole(&timeline, leaves))).high
    };
    assert_eq!(with_long("card"), 2100e3);
    assert!(with_long("other") < 2000e3, "{}", with_long("other"));
    // Two in turns, of which the second began after the first: nothing begins inside it.
    let timeline = one(|told| {
        told.counted("getpwuid", 10, micros(15), millis(2));
        told.advance(micros(50)).counted("getpwnam", 10, micros(15), micros(2040)).about("card");
        told.advance(micros(2050)).call("C_Sign", 1, millis(1));
    });
    let of_names = whole(&timeline, leaves).into_iter().find(|it| it.place == "getpwnam");
    assert_eq!(saving(&timeline, &of_names.unwrap()).high, 150e3 + 100e3);
    // Another lies among them: 100 us follow the last, and as many each other one.
    let timeline = one(|told| {
        told.counted("getpwnam", 10, micros(15), millis(2)).about("card");
        told.advance(micros(500)).call("C_Digest", 1, micros(10));
        told.advance(micros(1590)).call("C_Sign", 1, millis(1));
    });
    let saved = saving(&timeline, &only(whole(&timeline, leaves)));
    assert_eq!((saved.low, saved.high), (135e3, 150e3 + 1000e3));
}

#[test]
fn what_cannot_be_memoised_says_what_to_change() {
    let timeline = one(|told| {
        for _ in 0..4 {
            told.leaf("getaddrinfo", millis(5)).about("hsm.example").advance(millis(5));
        }
    });
    let finding = only(whole(&timeline, leaves));
    assert_eq!((finding.time, finding.trial), (millis(15), None));
    assert!(finding.advice.unwrap().starts_with("ask once"));
}

/// Opens, reads and closes a file.
fn reads(told: &mut ThreadStory<'_>, path: &str) {
    told.leaf("open", micros(30)).about(path).with(|leaf| leaf.result = 5);
    told.leaf("read", micros(50)).with(|leaf| leaf.a = 5);
    told.leaf("close", micros(20)).with(|leaf| leaf.a = 5);
}

#[test]
fn a_file_that_is_read_for_each_operation_is_found() {
    let timeline = one(|told| {
        for _ in 0..5 {
            told.enter("C_Sign");
            reads(told, "/etc/module.conf");
            told.advance(micros(400)).exit().advance(millis(1));
        }
    });
    let finding = only(each("C_Sign", &timeline, leaves));
    assert_eq!(figures(&finding), (0.8, 4, micros(400), 160));
    assert_eq!((finding.place.as_str(), finding.module.as_str()), ("C_Sign", "module.so"));
    assert_eq!((finding.layer.as_str(), finding.trial), ("pkcs11 module.so", None));
    let says = "/etc/module.conf was opened 5 times by C_Sign of module.so";
    assert_eq!(finding.evidence, [says]);
}

/// What is read is read into something: that goes too where the file is kept.
#[test]
fn a_file_is_a_unit_from_its_open_to_the_next_call() {
    let timeline = one(|told| {
        for _ in 0..5 {
            told.leaf("open", micros(30)).about("/etc/client.conf").with(|it| it.result = 5);
            told.advance(micros(10)).leaf("read", micros(50)).with(|leaf| leaf.a = 5);
            told.advance(micros(200)).leaf("close", micros(20)).with(|leaf| leaf.a = 5);
            told.advance(micros(300)).call("C_Sign", 1, millis(1));
        }
    });
    let finding = only(whole(&timeline, leaves));
    assert_eq!(finding.time, micros(4 * 310));
    let saved = saving(&timeline, &finding);
    assert_eq!((saved.low, saved.high), (4.0 * 310e3, 4.0 * 610e3));
    // What is done with the answer of a lookup may go too, up to the next one.
    let timeline = one(|told| packets(told, 101));
    let saved = saving(&timeline, &only(whole(&timeline, leaves)));
    assert_eq!((saved.low, saved.high), (100.0 * 40e3, 99.0 * 100e3 + 40e3));
}

/// A policy and, by what is asked for, one of several messages.
#[test]
fn of_several_files_the_low_end_has_the_one_that_takes_longest() {
    let timeline = one(|told| {
        for request in 0..12 {
            told.leaf("fopen", micros(30)).about("/policy").with(|it| it.result = 7);
            told.advance(micros(100)).leaf("fclose", micros(20)).with(|leaf| leaf.a = 7);
            let message = format!("/message-{}", request % 3);
            told.leaf("fopen", micros(30)).about(&message).with(|it| it.result = 7);
            told.advance(micros(50)).leaf("fclose", micros(20)).with(|leaf| leaf.a = 7);
        }
    });
    let finding = only(whole(&timeline, leaves));
    assert_eq!(finding.time, micros(11 * 150 + 9 * 100));
    let Saving { low, high } = saving(&timeline, &finding);
    assert_eq!((low, high), (11.0 * 150e3, 11.0 * 150e3 + 9.0 * 100e3));
}

/// What libc reads of a stream is not seen: all from its open to its close is of it, unless the
/// thread does something else meanwhile.
#[test]
fn a_stream_is_a_unit_from_its_open_to_its_close() {
    let saved = |otherwise: Option<&str>| {
        let timeline = one(|told| {
            for _ in 0..5 {
                told.leaf("fopen", micros(30)).about("/etc/client.conf").with(|it| it.result = 7);
                told.advance(micros(100));
                if let Some(function) = otherwise {
                    told.call(function, 1, micros(100));
                }
                // An address, of which a result has the lower half.
                told.leaf("fclose", micros(20)).with(|leaf| leaf.a = 0x7F00_0000_0007);
                told.advance(micros(300)).call("C_Sign", 1, millis(1));
            }
        });
        let Saving { low, high } = saving(&timeline, &only(whole(&timeline, leaves)));
        (low, high)
    };
    assert_eq!(saved(None), (4.0 * 150e3, 4.0 * 450e3));
    assert_eq!(saved(Some("C_Digest")), (4.0 * 50e3, 4.0 * 550e3));
}

#[test]
fn these_are_none() {
    let twice = one(|told| (0..2).for_each(|_| reads(told, "/etc/module.conf")));
    let others = one(|told| {
        for number in 0..9 {
            reads(told, &format!("/etc/{number}.conf"));
        }
    });
    let other_answers = one(|told| {
        for answer in 0..9 {
            told.leaf("getpwnam", millis(1)).about("card").with(|leaf| leaf.result = answer);
        }
    });
    let other_questions = one(|told| {
        for number in 0..9 {
            told.leaf("getpwuid", millis(1)).with(|leaf| leaf.a = number);
        }
    });
    let kept = one(|told| {
        for _ in 0..9 {
            told.leaf("getpwuid", millis(1)).with(|leaf| leaf.replaced = true);
        }
    });
    let too_short = one(|told| {
        packets(told, 3);
        told.advance(millis(100));
    });
    let two_programs = Story::new()
        .thread(|told| packets(told, 2))
        .process("other")
        .thread(|told| packets(told, 2))
        .timeline();
    for timeline in [twice, others, other_answers, other_questions, kept, too_short, two_programs] {
        assert_eq!(whole(&timeline, leaves), []);
    }
}

fn of_libc() -> CallOrigin<'static> {
    CallOrigin { function: "getprotobynumber", module: "libc.so.6", caller: "filter_packet" }
}

/// The system calls of so many lookups.
fn files(count: u64, origin: CallOrigin<'static>) -> Vec<FileCall<'static>> {
    let parts = [("openat", 0, 9), ("read", 12, 6), ("read", 20, 2), ("close", 25, 5)];
    let calls = (0..count).flat_map(|packet| {
        parts.map(|(call, after, time)| {
            let start = micros(packet * 100 + after);
            let end = start + micros(time);
            FileCall { thread: 0, start, end, call, path: b"/etc/protocols", origin }
        })
    });
    calls.collect()
}

#[test]
fn system_calls_say_what_a_lookup_reads_and_for_whom() {
    let timeline = one(|told| packets(told, 1_000));
    let operations = crate::operation::Operations::whole(&timeline);
    let scene = Scene::new(&timeline, &operations);
    let finding = only(find(&scene, files(1_000, of_libc())));
    assert_eq!((finding.count, finding.time), (999, micros(999 * 40)));
    let says = "/etc/protocols was opened 1,000 times by getprotobynumber of libc.so.6, called \
                by filter_packet (close 1,000, openat 1,000, read 2,000)";
    assert_eq!(finding.evidence[1], says);
}

#[test]
fn what_another_function_opens_besides_is_no_evidence() {
    let timeline = one(|told| {
        for _ in 0..10 {
            reads(told, "/etc/protocols");
        }
    });
    let origin = CallOrigin { function: "x_load", module: "libx.so", caller: "main" };
    let cache = b"/etc/ld.so.cache";
    let loads = files(10, origin).into_iter().map(|file| FileCall { path: cache, ..file });
    let all: Vec<_> = files(10, origin).into_iter().chain(loads).collect();
    let operations = crate::operation::Operations::whole(&timeline);
    let finding = only(find(&Scene::new(&timeline, &operations), all));
    let [_, from_below] = &finding.evidence[..] else { panic!("{finding:#?}") };
    assert!(from_below.starts_with("/etc/protocols was opened 10 times by x_load"));
}

#[test]
fn system_calls_alone_are_enough() {
    let timeline = one(|told| {
        told.advance(millis(10));
    });
    let operations = crate::operation::Operations::whole(&timeline);
    let scene = Scene::new(&timeline, &operations);
    let finding = only(find(&scene, files(100, of_libc())));
    assert_eq!((finding.count, finding.time), (99, micros(99 * 22)));
    assert_eq!(finding.place, "getprotobynumber");
    assert_eq!(trial(&finding).as_deref(), Some("memoise:getprotobynumber"));
    assert_eq!(find(&scene, files(2, of_libc())), []);
}
