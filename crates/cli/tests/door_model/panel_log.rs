//! A panel's log: its stages, its resolution, and its broken lines.

use std::fmt::Write;

use tapstone_record::Outcome;

use crate::{folder, tapstone};

const MAP: &str = "\
made_by = 'Example panel'
format = '%Y-%m-%d %H:%M:%S%.f'
[events]
time = 'Timestamp'
transaction = 'Badge'
event = 'Event'
[[stage]]
operation = 'door.pki-cak'
from = 'detected'
to = 'sent'
[[stage]]
operation = 'door.pki-cak.challenge'
from = 'read'
to = 'sent'
";

/// 400 transactions, ten seconds apart, of 3.0 to 3.4 s in tenths of a second.
fn log() -> String {
    let mut log = String::from("Timestamp,Badge,Event\n");
    for tap in 0..400_u64 {
        let at = |tenths: u64| {
            let tenths = tap * 100 + tenths;
            let s = tenths / 10;
            let tenth = tenths % 10;
            format!("2026-01-15 {:02}:{:02}:{:02}.{tenth}", 9 + s / 3600, s / 60 % 60, s % 60)
        };
        let more = tap % 5;
        writeln!(log, "{},{},detected", at(0), tap % 50).unwrap();
        writeln!(log, "{},{},read", at(14), tap % 50).unwrap();
        writeln!(log, "{},{},door opened", at(20), tap % 50).unwrap();
        writeln!(log, "{},{},sent", at(30 + more), tap % 50).unwrap();
    }
    log
}

fn import(files: &[(&str, &str)], more: &[&str]) -> crate::Said {
    let here = folder(files);
    let arguments = ["import", "panel-log", "door.csv", "--map", "map.toml"];
    tapstone(here.path(), &[&arguments[..], more].concat())
}

#[test]
fn stages_have_their_times_and_intervals_as_wide_as_the_resolution() {
    let said = import(&[("door.csv", &log()), ("map.toml", MAP)], &["--format", "json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let record = said.record();
    let whole = &record.results[0];
    assert_eq!((whole.operation.as_str(), whole.completed), ("door.pki-cak", 400));
    let latency = whole.latency_ns.unwrap();
    let mean = latency.mean.unwrap();
    assert_eq!(mean.estimate, 3.2e9);
    assert!(mean.low <= 3.1e9 && mean.high >= 3.3e9, "{mean:?}");
    assert_eq!((latency.min.0, latency.max.0), (3_000_000_000, 3_400_000_000));
    assert_eq!(record.results[1].latency_ns.unwrap().mean.unwrap().estimate, 1.8e9);
    let imported = record.imported.unwrap();
    assert_eq!((imported.format.as_str(), imported.lines_skipped), ("panel-log", 0));
    assert_eq!(imported.sha256.len(), 64);
    assert_eq!(record.started_at.to_string(), "2026-01-15T09:00:00Z");
    assert!(record.warnings[0].contains("100 ms apart"), "{:?}", record.warnings);
    assert!(whole.interval.as_ref().unwrap().method.contains("wider by the log's 100 ms"));
}

#[test]
fn broken_lines_are_counted_shown_and_skipped() {
    let mut log = log();
    let whole = import(&[("door.csv", &log), ("map.toml", MAP)], &["--format", "json"]).record();
    for line in 0..30 {
        writeln!(log, "broken {line}\u{1b}[31m").unwrap();
    }
    log.push_str("2026-99-15 09:00:00,7,detected\n2026-01-15 09:00:00.0,,detected\n");
    // Ends before it starts.
    log.push_str("2026-01-15 12:00:05.0,x,detected\n2026-01-15 12:00:00.0,x,sent\n");
    let said = import(&[("door.csv", &log), ("map.toml", MAP)], &["--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.err.matches("skipped: line ").count(), 20, "{}", said.err);
    assert!(said.err.contains("skipped: line 1602: 1 fields in the place of 3"), "{}", said.err);
    assert!(said.err.ends_with("skipped: 13 more lines\n"), "{}", said.err);
    assert!(!said.err.contains('\u{1b}'));
    let record = said.record();
    assert_eq!(record.imported.as_ref().unwrap().lines_skipped, 33);
    assert_eq!(record.results, whole.results, "what is broken moves nothing");
    assert!(
        record.warnings.iter().any(|it| it.contains("33 of 1,634 lines")),
        "{:?}",
        record.warnings
    );
    assert!(
        record.warnings.iter().any(|it| it.contains("1 transaction began")),
        "{:?}",
        record.warnings
    );
}

#[test]
fn a_log_with_a_line_for_each_transaction_is_read_too() {
    let log = "\u{feff}start;end;sign_ms\n09:00:00.5;09:00:03.5;812,5\n23:59:59.0;00:00:02.0;800\n;;790\n";
    let map = "delimiter = ';'\nformat = '%H:%M:%S%.f'\n[[stage]]\noperation = 'door.pki-cak'\n\
               from = 'start'\nto = 'end'\n[[stage]]\noperation = 'sign'\nlength = 'sign_ms'\nunit = 'ms'\n";
    let said = import(&[("door.csv", log), ("map.toml", map)], &["--format", "json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let rows = said.record().results;
    let mean = |row: usize| rows[row].latency_ns.unwrap().mean.unwrap().estimate;
    assert_eq!((rows[0].completed, mean(0)), (2, 3e9), "midnight is passed");
    assert_eq!((rows[1].completed, mean(1)), (3, 800_833_333.333_333_4));
}

#[test]
fn a_stage_that_never_happened_has_no_figures() {
    let map = format!("{MAP}[[stage]]\noperation = 'never'\nfrom = 'detected'\nto = 'moon'\n");
    // The event is there, and never after the other one.
    let log = format!("{}2026-01-15 13:00:00.0,other,moon\n", log());
    let said = import(&[("door.csv", &log), ("map.toml", &map)], &["--format", "json"]);
    let row = said.record().results[2].clone();
    assert_eq!((row.status.outcome, row.latency_ns), (Outcome::Failed, None));
}

/// An import that fails: exit code 2, one error with a hint, and nothing on standard output.
fn refused(log: &str, map: &str) -> String {
    let said = import(&[("door.csv", log), ("map.toml", map)], &["--output", "x.json"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
    assert_eq!(said.err.matches("error: ").count(), 1, "{}", said.err);
    assert!(said.err.contains("\nhint: "), "{}", said.err);
    said.err
}

#[test]
fn an_event_of_the_map_that_never_occurs_is_named() {
    let error = refused(&log(), &MAP.replace("'sent'", "'Sent'"));
    assert!(error.contains("has no event \"Sent\", which stage \"door.pki-cak\""), "{error}");
    assert!(error.contains("hint: its events are detected, door opened, read, sent"), "{error}");
}

#[test]
fn stages_in_an_impossible_order_are_named() {
    // Each badge of this log comes again, so that the end of one tap is before the start of the
    // next: still the shorter way is the wrong one.
    let exchanged = MAP.replace("from = 'detected'\nto = 'sent'", "from = 'sent'\nto = 'detected'");
    let error = refused(&log(), &exchanged);
    assert!(error.contains("\"sent\" comes after \"detected\" 400 of 750 times"), "{error}");
    // Once each.
    let once: String = log().lines().take(5).map(|line| format!("{line}\n")).collect();
    assert!(refused(&once, &exchanged).contains("1 of 1 times"));
    // A part that begins before its whole.
    let outside = MAP.replace("from = 'detected'\nto = 'sent'", "from = 'read'\nto = 'sent'");
    let outside = format!(
        "{outside}[[stage]]\noperation = 'door.pki-cak.select'\nfrom = 'detected'\nto = 'read'\n"
    );
    let error = refused(&log(), &outside);
    assert!(error.contains("is a part of \"door.pki-cak\""), "{error}");
    // Steps of the card, each well by itself, in an order that no card has.
    let steps = "format = '%Y-%m-%d %H:%M:%S%.f'\n[events]\ntime = 'Timestamp'\n\
                 transaction = 'Badge'\nevent = 'Event'\n\
                 [[stage]]\noperation = 'door.pki-cak.challenge'\nfrom = 'detected'\nto = 'read'\n\
                 [[stage]]\noperation = 'door.pki-cak.select'\nfrom = 'door opened'\nto = 'sent'\n";
    let error = refused(&log(), steps);
    assert!(error.contains("select comes before challenge on every card"), "{error}");
}

#[test]
fn columns_in_an_impossible_order_are_named() {
    let log = "start,end\n2026-01-15 09:00:00,2026-01-15 09:00:03\n\
               2026-01-15 09:01:00,2026-01-15 09:01:03\n";
    let map = "[[stage]]\noperation = 'door.pki-cak'\nfrom = 'end'\nto = 'start'\n";
    let error = refused(log, map);
    assert!(error.contains("\"end\" comes after \"start\" 2 of 2 times"), "{error}");
}

/// Days of January 2026, day first as this log has it, a tap at noon of each.
fn days(days: std::ops::RangeInclusive<u32>) -> String {
    let mut log = String::from("Timestamp,Badge,Event\n");
    for day in days {
        for (second, event) in [(0, "detected"), (1, "read"), (3, "sent")] {
            writeln!(log, "{day:02}/01/2026 12:00:{second:02},{day},{event}").unwrap();
        }
    }
    log
}

#[test]
fn a_date_format_that_contradicts_the_log_is_named() {
    let with = |format: &str| MAP.replace("%Y-%m-%d %H:%M:%S%.f", format);
    let month_first = with("%m/%d/%Y %H:%M:%S");
    // From the 13th on there is no such month.
    let error = refused(&days(1..=31), &month_first);
    assert!(error.contains("door.csv, line 38: \"13/01/2026 12:00:00\" contradicts"), "{error}");
    assert!(error.contains("day and month are the other way round"), "{error}");
    // Before it every moment can be read, and each day is a month after the last.
    let error = refused(&days(1..=12), &month_first);
    assert!(error.contains("each day is a month after the one before it"), "{error}");
    // Right, it is read.
    let right = with("%d/%m/%Y %H:%M:%S");
    let said = import(&[("door.csv", &days(1..=31)), ("map.toml", &right)], &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    // A log of a shop that logs on the first of each month is no contradiction of `%m/%d`.
    let firsts = days(1..=12).replace("2026 12", "2026 11");
    let said = import(&[("door.csv", &firsts), ("map.toml", &right)], &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    // Seconds are taken for milliseconds, and two digits for a year of four.
    let seconds = "Timestamp,Badge,Event\n1768469400,1,detected\n1768469401,1,read\n\
                   1768469403,1,sent\n";
    let error = refused(seconds, &with("unix-ms"));
    assert!(error.contains("read so, it is not from 1980 to 2100"), "{error}");
    let error = refused(&log(), &with("%d.%m.%Y %H:%M"));
    assert!(error.contains("most lines of the log do not read so"), "{error}");
}

#[test]
fn maps_and_logs_that_do_not_fit_are_refused_with_a_hint() {
    let log = log();
    let other_column = MAP.replace("'Badge'", "'Card'");
    let other_format = MAP.replace("%Y-%m-%d ", "%d/%m/%Y ");
    for (log, map, says) in [
        (
            log.as_str(),
            other_column.as_str(),
            "has no column \"Card\"\nhint: its columns are Timestamp, Badge, Event",
        ),
        (&log, &other_format, "contradicts the map's format"),
        (&log, "stage = 3", "map.toml, line 1: "),
        (&log, "stage = []", "it has no stage"),
        (&log, "[[stage]]\noperation = 'x'\nfrom = 'a'\n", "has not what a stage has"),
        (&log, &MAP.replace("from = 'read'", "form = 'read'"), "line 13: unknown field `form`"),
        ("", MAP, "door.csv is empty"),
        ("Timestamp,Badge,Event\n", MAP, "0 lines and not one stage"),
    ] {
        let said = import(&[("door.csv", log), ("map.toml", map)], &["--output", "x.json"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{says}");
        assert!(said.err.contains(says), "{says}\n{}", said.err);
        assert!(said.err.contains("\nhint: "), "{}", said.err);
    }
    let here = folder(&[("map.toml", MAP)]);
    let said = tapstone(here.path(), &["import", "panel-log", "none.csv", "--map", "map.toml"]);
    assert!(said.code == 2 && said.err.contains("cannot read none.csv"), "{}", said.err);
}

/// Of the same log, by a map with two fields of its format exchanged: every moment of the first hour
/// can be read, and every figure would be wrong.
#[test]
fn a_clock_with_two_fields_exchanged_is_named() {
    let log = log();
    let map = |format: &str| MAP.replace("%H:%M:%S", format);
    let first_minutes: String = log.split_inclusive('\n').take(4 * 100 + 1).collect();
    let cases = [
        (&first_minutes, "%M:%H:%S", "hour and minute are the other way round"),
        (&first_minutes, "%H:%S:%M", "minute and second are the other way round"),
        (&log, "%H:%S:%M", "minute and second are the other way round"),
        (&log, "%M:%H:%S", "hour and minute are the other way round"),
    ];
    for (log, format, why) in cases {
        let said = import(&[("door.csv", log), ("map.toml", &map(format))], &[]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{format}: {}", said.err);
        assert!(said.err.contains(why) && said.err.contains("hint: exchange"), "{}", said.err);
        assert_eq!(said.err.lines().count(), 2, "{}", said.err);
    }
    let right = import(&[("door.csv", &log), ("map.toml", &map("%T"))], &[]);
    assert_eq!(right.code, 0, "{}", right.err);
}

/// What a right format must not be blamed for: a tap each hour at the same minute, a log from the
/// newest to the oldest, a panel that writes midnight as 24:00, a clock that is set back, and lines
/// that two doors write out of order.
#[test]
fn a_right_clock_is_not_called_exchanged() {
    let line = |at: u64, badge: u64, event: &str| {
        let day = 15 + at / 86_400;
        let hour = at / 3600 % 24;
        let minute = at / 60 % 60;
        let second = at % 60;
        format!("2026-01-{day} {hour:02}:{minute:02}:{second:02}.0,{badge},{event}\n")
    };
    let taps = |starts: &[u64]| -> Vec<String> {
        let tap = |(badge, at): (usize, &u64)| {
            let event = |after, event| line(at + after, badge as u64, event);
            [event(0, "detected"), event(1, "read"), event(3, "sent")]
        };
        starts.iter().enumerate().flat_map(tap).collect()
    };
    let hourly: Vec<u64> = (0..40).map(|hour| hour * 3600 + 305 + hour % 3).collect();
    let busy: Vec<u64> = (0..200).map(|tap| 7 * 3600 + tap * 55).collect();
    let two_doors: Vec<u64> = (0..200).map(|tap| 7 * 3600 + tap * 40 - tap % 2 * 300).collect();
    let set_back: Vec<u64> = (0..200).map(|tap| 7200 + tap * 40 - tap / 100 * 3600).collect();
    let midnight = vec![line(86_390, 900, "detected"), "2026-01-15 24:00:03.0,900,sent\n".into()];
    let newest_first: Vec<String> = taps(&busy).into_iter().rev().collect();
    let logs = [taps(&hourly), taps(&busy), taps(&two_doors), taps(&set_back)];
    for lines in logs.into_iter().chain([[taps(&busy), midnight].concat()]) {
        let log = format!("Timestamp,Badge,Event\n{}", lines.concat());
        let said = import(&[("door.csv", &log), ("map.toml", MAP)], &["--format", "json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(said.record().results[0].latency_ns.unwrap().mean.unwrap().estimate, 3e9);
    }
    // Read backwards, no tap ends after it starts: that is what is wrong with it.
    let log = format!("Timestamp,Badge,Event\n{}", newest_first.concat());
    let said = import(&[("door.csv", &log), ("map.toml", MAP)], &[]);
    assert!(said.code == 2 && !said.err.contains("other way round"), "{}", said.err);
}

/// A quotation mark that is not closed takes all lines up to the next one with it.
#[test]
fn lines_behind_an_open_quotation_mark_are_counted_as_lost() {
    let cut = log().replacen("2,read", "\"2,read", 1);
    let said = import(&[("door.csv", &cut), ("map.toml", MAP)], &["--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains("it goes on to line 1601: a quotation mark is not closed"),
        "{}",
        said.err
    );
    let record = said.record();
    let lost = record.imported.as_ref().unwrap().lines_skipped;
    assert_eq!(record.results[0].completed + record.results[1].completed, 4);
    assert_eq!(lost, 1601 - 11 + 1);
    let told = "1,591 of 1,600 lines could not be read";
    assert!(record.warnings.iter().any(|it| it.contains(told)), "{:?}", record.warnings);
    // Blank lines are no field with line breaks.
    let blank = log().replacen('\n', &"\n".repeat(20), 1);
    assert_ne!(blank, log());
    let said = import(&[("door.csv", &blank), ("map.toml", MAP)], &["--format", "json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
fn what_is_no_log_is_named_for_what_it_is() {
    let zip = b"\x1f\x8b\x08\x08 and more\n".to_vec();
    let wide: Vec<u8> = log().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = [vec![0xFF, 0xFE], wide].concat();
    let long = [b"Timestamp,Badge,Event\n".to_vec(), vec![b'x'; 20 << 20]].concat();
    let quoted = [b"Timestamp,Badge,Event\n\"".to_vec(), b"a,b,c\n".repeat(3 << 20)].concat();
    for (bytes, what) in [
        (Vec::new(), "is empty"),
        (zip, "is compressed by gzip"),
        (wide, "is UTF-16"),
        (long, "line 2: it has more than 8 MiB"),
        (quoted, "line 2: it has more than 8 MiB"),
    ] {
        let here = folder(&[("map.toml", MAP)]);
        std::fs::write(here.path().join("door.csv"), bytes).unwrap();
        let said = tapstone(here.path(), &["import", "panel-log", "door.csv", "--map", "map.toml"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
        assert!(said.err.contains(what) && said.err.contains("\nhint: "), "{}", said.err);
        assert_eq!(said.err.lines().count(), 2, "{}", said.err);
    }
}
