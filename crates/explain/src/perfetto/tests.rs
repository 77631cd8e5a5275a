use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;

use proptest::prelude::*;
use prost::Message;
use tapstone_command::command::Command;
use tapstone_testing::skip;

use super::proto::{self, DebugAnnotation, Interned, Packet, Type};
use super::*;
use crate::samples;
use crate::timeline::FunctionId;
use tapstone_events::UnlistedCall;
use tapstone_observe::syscalls::{Launch, TracingError, TracingOptions, observe};

/// A trace as a reader of the format has it.
#[derive(Default)]
struct Read {
    packets: Vec<Packet>,
    names: BTreeMap<u64, String>,
    categories: BTreeMap<u64, String>,
    argument_names: BTreeMap<u64, String>,
    values: BTreeMap<u64, String>,
    events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    track: u64,
    kind: Type,
    at: u64,
    name: String,
    arguments: BTreeMap<String, String>,
}

impl Read {
    fn of_bytes(bytes: &[u8]) -> Self {
        let mut read =
            Self { packets: proto::Trace::decode(bytes).unwrap().packet, ..Self::default() };
        for packet in read.packets.clone() {
            let learn = |known: &mut BTreeMap<u64, String>, fresh: Vec<Interned>| {
                for text in fresh {
                    let old = known.insert(text.iid.unwrap(), text.text.unwrap());
                    assert_eq!(old, None, "a number is given once");
                }
            };
            let fresh = packet.interned_data.clone().unwrap_or_default();
            learn(&mut read.names, fresh.event_names);
            learn(&mut read.categories, fresh.event_categories);
            learn(&mut read.argument_names, fresh.debug_annotation_names);
            learn(&mut read.values, fresh.debug_annotation_string_values);
            if let Some(event) = &packet.track_event {
                let arguments =
                    event.debug_annotations.iter().map(|it| read.argument(it)).collect();
                let kind = event.r#type();
                assert_eq!(event.category_iid.is_some(), kind != Type::SliceEnd);
                event
                    .category_iid
                    .iter()
                    .for_each(|iid| assert!(read.categories.contains_key(iid)));
                let name = event.name_iid.map(|iid| read.names[&iid].clone()).unwrap_or_default();
                let track = event.track_uuid.unwrap();
                let at = packet.timestamp.unwrap();
                read.events.push(Event { track, kind, at, name, arguments });
            }
        }
        read
    }

    fn argument(&self, of: &DebugAnnotation) -> (String, String) {
        (self.argument_names[&of.name_iid.unwrap()].clone(), self.argument_value(of))
    }

    fn argument_value(&self, of: &DebugAnnotation) -> String {
        let values = [
            of.string_value_iid.map(|iid| self.values[&iid].clone()),
            of.uint_value.map(|value| value.to_string()),
            of.int_value.map(|value| value.to_string()),
            of.bool_value.map(|value| value.to_string()),
        ];
        let list: Vec<_> = of.array_values.iter().map(|value| self.argument_value(value)).collect();
        let list = (!list.is_empty()).then(|| list.join(" < "));
        let mut values = values.into_iter().flatten().chain(list);
        let value = values.next().unwrap();
        assert_eq!(values.next(), None, "one value an argument");
        value
    }

    /// All slices with their depths, and marks; fails when they do not nest.
    fn slices(&self) -> Vec<String> {
        let mut open: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut slices = Vec::new();
        for event in &self.events {
            let before = last.insert(event.track, event.at);
            assert!(before <= Some(event.at), "moments of a track only rise");
            let open = open.entry(event.track).or_default();
            match event.kind {
                Type::SliceBegin => open.push(event.clone()),
                Type::SliceEnd => {
                    let begun = open.pop().expect("what ends has begun");
                    let depth = "  ".repeat(open.len());
                    slices.push(format!("{depth}{} {}-{}", begun.name, begun.at, event.at));
                }
                Type::Instant => {
                    slices.push(format!("{}{} {}", "  ".repeat(open.len()), event.name, event.at));
                }
                Type::Unspecified => panic!("{event:?}"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "what has begun ends");
        slices
    }

    fn arguments(&self, name: &str) -> Vec<&BTreeMap<String, String>> {
        let named = self.events.iter().filter(|event| event.name == name);
        named.map(|event| &event.arguments).collect()
    }
}

fn written(timeline: &Timeline, system_calls: &[SystemCallSlice<'_>]) -> Read {
    let mut bytes = Vec::new();
    write_trace(timeline, system_calls.iter().cloned(), &mut bytes).unwrap();
    Read::of_bytes(&bytes)
}

#[test]
fn calls_lie_inside_the_calls_that_made_them() {
    let read = written(&samples::signature(), &[]);
    let expected = [
        "      poll 2310-2490",
        "    SCardTransmit 2200-2600",
        "      poll 2650-2850",
        "    SCardTransmit 2650-2850",
        "  C_Sign 2100-2900",
        "C_Sign 2050-2950",
        "open 2100-2200",
    ];
    assert_eq!(read.slices(), expected);
}

/// Of calls that were only counted the last ones are there, with what they returned.
#[test]
fn last_calls_follow_what_was_listed() {
    let call = |thread, start, end, function, result| UnlistedCall {
        process: 4211,
        thread,
        function: FunctionId(function),
        start: Nanos(start),
        end: Nanos(end),
        result,
    };
    let mut timeline = samples::signature();
    timeline.last_calls = vec![
        call(4211, 4000, 4100, 0, 0x30),
        call(4211, 4010, 4050, 2, 0),
        call(4211, 4020, 4030, 3, 1),
        call(4211, 4100, 4200, 0, 0),
        call(4212, 4005, 4040, 1, 0),
    ];
    let read = written(&timeline, &[]);
    let expected = [
        "    poll 4020-4030",
        "  SCardTransmit 4010-4050",
        "C_Sign 4000-4100",
        "C_Sign 4100-4200",
        "C_Sign 4005-4040",
    ];
    assert_eq!(read.slices()[7..], expected);
    let results: Vec<_> = read.arguments("C_Sign")[2..].iter().map(|it| &it["result"]).collect();
    assert_eq!(results, ["CKR_DEVICE_ERROR", "CKR_OK", "CKR_OK"]);
    assert!(!read.arguments("SCardTransmit")[2].contains_key("card"), "not known");
}

#[test]
fn commands_and_results_are_arguments() {
    let read = written(&samples::signature(), &[]);
    let transmits = read.arguments("SCardTransmit");
    let first = transmits[0];
    let second = transmits[1];
    assert_eq!(first["command"], "SELECT");
    assert_eq!(first["object"], "PIV A000000308000010000100");
    assert_eq!(first["header"], "00A40400");
    assert_eq!(first["status"], "9000 done");
    assert_eq!((first["sent_bytes"].as_str(), first["received_bytes"].as_str()), ("17", "35"));
    assert_eq!(first["result"], "SCARD_S_SUCCESS");
    // What is selected tells whose PIN it is, and nothing tells which.
    assert_eq!(second["command"], "VERIFY");
    assert_eq!(second["object"], "PIV Card Application PIN");
    assert_eq!(second["status"], "63C2 2 tries left");
    assert_eq!(second["result"], "SCARD_E_NOT_TRANSACTED");
    let sign = read.arguments("C_Sign");
    assert_eq!(
        (sign[0]["module"].as_str(), sign[0]["caller"].as_str()),
        ("p11-kit-proxy.so", "the program")
    );
    assert_eq!((sign[1]["result"].as_str(), sign[1]["session"].as_str()), ("CKR_OK", "0x7"));
    let polls = read.arguments("poll");
    assert_eq!((polls[0]["count"].as_str(), polls[0]["summed_ns"].as_str()), ("12", "180"));
    assert_eq!(polls[1]["on"], "pcscd");
    assert!(!polls[1].contains_key("count") && !polls[1].contains_key("time_limit_ns"));
    let open = read.arguments("open")[0];
    assert_eq!((open["path"].as_str(), open["result"].as_str()), ("/etc/opensc.conf", "3"));
}

#[test]
fn threads_and_processes_have_tracks() {
    let read = written(&samples::signature(), &[]);
    let first = &read.packets[0];
    let clock = first.clock_snapshot.as_ref().unwrap();
    assert_eq!(clock.primary_trace_clock, Some(3));
    assert_eq!(first.trace_packet_defaults.as_ref().unwrap().timestamp_clock_id, Some(3));
    assert_eq!(first.sequence_flags, Some(1));
    let tracks: Vec<_> =
        read.packets.iter().filter_map(|packet| packet.track_descriptor.clone()).collect();
    let process = tracks[0].process.as_ref().unwrap();
    assert_eq!((process.pid, process.process_name.as_deref()), (Some(4211), Some("pkcs11-tool")));
    let threads: Vec<_> = tracks[1..].iter().map(|track| track.thread.clone().unwrap()).collect();
    let ids: Vec<_> = threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
    assert_eq!(ids, [(Some(4211), Some(4211)), (Some(4211), Some(4212))]);
    let known: Vec<_> = tracks.iter().map(|track| track.uuid.unwrap()).collect();
    assert!(read.events.iter().all(|event| known.contains(&event.track)));
    let needs = read.packets.iter().filter(|packet| packet.track_event.is_some());
    assert!(needs.into_iter().all(|packet| packet.sequence_flags == Some(2)));
}

#[test]
fn system_calls_have_a_track_of_their_own() {
    let stack = ["open64 [libc.so.6]", "main [packet-filter]"].map(str::to_owned);
    let call = |thread, start, end, result| SystemCallSlice {
        process: 4211,
        thread,
        start: Nanos(start),
        end: Nanos(end),
        name: "openat",
        arguments: vec![0xFFFF_FF9C, 0x7FFF_0000, 0, 0],
        object: Some(b"/etc/protocols"),
        result,
        stack: stack.as_slice().into(),
        slept: false,
    };
    // Of two threads, in the order in which they ended; one of them is nowhere else.
    let calls = [
        call(4211, 2150, 2160, Some(-2)),
        call(5000, 2120, 2170, None),
        call(4211, 2170, 2180, Some(3)),
    ];
    let read = written(&samples::signature(), &calls);
    assert_eq!(read.slices()[7..], ["openat 2150-2160", "openat 2120-2170", "openat 2170-2180"]);
    let arguments = read.arguments("openat");
    assert_eq!(arguments[0]["object"], "/etc/protocols");
    assert_eq!(arguments[0]["stack"], "open64 [libc.so.6] < main [packet-filter]");
    assert_eq!(arguments[0]["arguments"], "0xffffff9c < 0x7fff0000 < 0x0 < 0x0");
    assert_eq!(
        (arguments[0]["result"].as_str(), arguments[1]["result"].as_str()),
        ("-2", "never returned")
    );
    let rows = read.packets.iter().filter_map(|packet| packet.track_descriptor.as_ref());
    let named: Vec<_> = rows.filter(|track| track.name.is_some()).collect();
    assert_eq!(named.len(), 2);
    assert!(named.iter().all(|track| track.parent_uuid.is_some() && track.thread.is_none()));
}

/// A real program: what it opens is there, with the stack that opened it.
#[test]
fn a_program_s_system_calls_are_told_with_what_they_are_about() {
    let command = Command::from_words(["cat", "/etc/passwd"].map(OsString::from)).unwrap();
    let nowhere = File::options().write(true).open("/dev/null").unwrap();
    let launch = Launch::new(&command).stdout(nowhere.into());
    let observed = match observe(&launch, &TracingOptions::default()) {
        Ok(observed) => observed,
        Err(TracingError::Refused { .. }) => return skip("the right to trace"),
        Err(error) => panic!("{error}"),
    };
    let calls: Vec<_> = system_calls(&observed).collect();
    assert_eq!(calls.len() as u64, observed.calls.len());
    let timeline = Timeline { threads: Vec::new(), ..samples::signature() };
    let read = written(&timeline, &calls);
    assert_eq!(read.slices().len(), calls.len());
    let opened = read.arguments("openat");
    let opened = opened
        .iter()
        .find(|arguments| arguments.get("object").is_some_and(|it| it == "/etc/passwd"));
    let opened = opened.expect("cat opens its file");
    assert!(opened["result"].parse::<i64>().unwrap() >= 0);
    assert!(opened["stack"].contains("[libc.so.6]"), "{}", opened["stack"]);
}

#[test]
fn what_is_missing_is_said() {
    let mut timeline = samples::signature();
    timeline.dropped = 17;
    let read = written(&timeline, &[]);
    assert_eq!(read.slices().last().unwrap(), "events that found no room 3000");
    assert_eq!(read.arguments("events that found no room")[0]["count"], "17");
}

#[test]
fn a_program_that_was_only_forked_off_is_called_after_its_parent() {
    let mut timeline = samples::signature();
    let forked = crate::timeline::Program {
        id: 4300,
        parent: 4211,
        program: String::new(),
        started: Nanos(2100),
    };
    timeline.processes.push(forked.clone());
    assert_eq!(program(&timeline, 4300), "/usr/bin/pkcs11-tool");
    timeline.processes.push(crate::timeline::Program { program: "/bin/true".to_owned(), ..forked });
    assert_eq!(program(&timeline, 4300), "/bin/true");
    // Ids that go round.
    timeline.processes = vec![crate::timeline::Program {
        id: 1,
        parent: 1,
        program: String::new(),
        started: Nanos(0),
    }];
    assert_eq!(program(&timeline, 1), "unknown program");
}

proptest! {
    #[test]
    fn whatever_happened_nests(thread in samples::any_thread()) {
        let calls = thread.spans.len() + thread.leaves.len();
        let timeline = Timeline { threads: vec![thread], ..samples::signature() };
        prop_assert_eq!(written(&timeline, &[]).slices().len(), calls);
    }
}
