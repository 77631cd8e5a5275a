//! Timelines made up for tests.

use proptest::prelude::*;
use tapstone_measure::units::Nanos;

use crate::timeline::{
    About, CalledFunction, End, Exchange, ExchangeId, Family, FunctionId, Kind, Leaf, On, Outcome,
    Place, Program, Span, TextId, Thread, Timeline,
};

fn span(start: u64, end: u64, call: u32, parent: Option<u32>) -> Span {
    Span {
        start: Nanos(start),
        end: Nanos(end),
        call: FunctionId(call),
        parent: parent.map(Place::new),
        end_kind: End::Returned,
        result: 0,
        handle: 7,
        detail: 0,
        operand: 0,
        outcome: Outcome::NOTHING,
        about: None,
        on_token: false,
    }
}

fn leaf(start: u64, end: u64, call: u32, parent: Option<u32>) -> Leaf {
    Leaf {
        start: Nanos(start),
        end: Nanos(end),
        call: FunctionId(call),
        parent: parent.map(Place::new),
        count: 1,
        time: Nanos(end - start),
        result: 0,
        a: 3,
        b: 0,
        text: None,
        on: On::Something,
        replaced: false,
    }
}

/// A signature through a proxy: two modules, two commands to a PIV card, of which one fails, polls
/// in a row between them; and another thread that opens a file.
pub(crate) fn signature() -> Timeline {
    let call = |function, family, module: &str, caller: &str| CalledFunction {
        function,
        family,
        module: module.to_owned(),
        caller: caller.to_owned(),
    };
    let polls =
        Leaf { count: 12, time: Nanos(180), on: On::Service, ..leaf(2310, 2600, 3, Some(2)) };
    let poll = Leaf { on: On::Service, b: u64::MAX, ..leaf(2650, 2850, 3, Some(3)) };
    let open = Leaf { text: Some(TextId(Place::new(0))), result: 3, ..leaf(2100, 2200, 4, None) };
    let transmit = |start, end, exchange, result| Span {
        about: Some(About::exchange(ExchangeId(Place::new(exchange)))),
        result,
        ..span(start, end, 2, Some(1))
    };
    let exchange = |command: &[u8], status, received| Exchange {
        command: command.into(),
        digest: 0,
        sent: command.len() as u32,
        received,
        status,
        answer: 0,
    };
    let select = b"\x00\xA4\x04\x00\x0B\xA0\x00\x00\x03\x08\x00\x00\x10\x00\x01\x00\x00";
    Timeline {
        processes: vec![Program {
            id: 4211,
            parent: 1,
            program: "/usr/bin/pkcs11-tool".to_owned(),
            started: Nanos(2000),
        }],
        threads: vec![
            Thread {
                process: 4211,
                id: 4211,
                start: Nanos(2000),
                end: Nanos(3000),
                spans: vec![
                    span(2050, 2950, 0, None),
                    span(2100, 2900, 1, Some(0)),
                    transmit(2200, 2600, 0, 0),
                    transmit(2650, 2850, 1, 0x8010_0016),
                ],
                leaves: vec![polls, poll],
                ..Thread::default()
            },
            Thread {
                process: 4211,
                id: 4212,
                start: Nanos(2000),
                end: Nanos(2400),
                leaves: vec![open],
                ..Thread::default()
            },
        ],
        calls: vec![
            call("C_Sign", Family::Pkcs11, "p11-kit-proxy.so", ""),
            call("C_Sign", Family::Pkcs11, "opensc-pkcs11.so", "p11-kit-proxy.so"),
            call("SCardTransmit", Family::Pcsc, "libpcsclite.so.1", "libopensc.so.8"),
            call("poll", Family::Libc(Kind::Poll), "libc.so.6", "libpcsclite.so.1"),
            call("open", Family::Libc(Kind::Open), "libc.so.6", ""),
        ],
        texts: vec![b"/etc/opensc.conf".as_slice().into()],
        exchanges: vec![exchange(select, 0x9000, 35), exchange(b"\x00\x20\x00\x80\x08", 0x63C2, 2)],
        started: Nanos(2000),
        ended: Nanos(3000),
        root: 4211,
        ..Timeline::default()
    }
}

prop_compose! {
    /// A thread whose calls may overlap and stick out as no real ones do.
    pub(crate) fn any_thread()(
        spans in prop::collection::vec((0u64..900, 0u64..900, any::<prop::sample::Index>()), 0..12),
        leaves in prop::collection::vec(
            (0u64..900, 0u64..300, any::<prop::sample::Index>(), 1u32..4), 0..25,
        ),
        wall in 1u64..1200,
    ) -> Thread {
        let parent = |known: usize, index: &prop::sample::Index| {
            index.index(known + 1).checked_sub(1).map(|at| at as u32)
        };
        let with_parents = |(at, (start, length, index)): (usize, &(u64, u64, prop::sample::Index))| {
            span(*start, start + length, at as u32 % 3, parent(at, index))
        };
        let spans: Vec<Span> = spans.iter().enumerate().map(with_parents).collect();
        let of_libc = |(start, length, index, count): &(u64, u64, prop::sample::Index, u32)| Leaf {
            count: *count,
            time: Nanos(length / u64::from(*count)),
            ..leaf(*start, start + length, 3, parent(spans.len(), index))
        };
        let leaves = leaves.iter().map(of_libc).collect();
        Thread { process: 4211, id: 4211, end: Nanos(wall), spans, leaves, ..Thread::default() }
    }
}
