//! What ISO 7816-4 says of every card, whatever its applications.

use proptest::prelude::*;
use tapstone_apdu::{CommandApdu, Expected, StatusWord};

use super::*;

/// Answers INS 10 with as many bytes as P1 P2 say, INS 20 with its data, and counts what the card
/// tells it about selections in the answer to INS 30.
#[derive(Default)]
struct Probe {
    aid: Vec<u8>,
    selections: u8,
    deselections: u8,
}

impl Applet for Probe {
    fn aid(&self) -> &[u8] {
        &self.aid
    }

    fn select(&mut self) -> Reply {
        self.selections += 1;
        Reply::ok(self.aid.clone())
    }

    fn deselect(&mut self) {
        self.deselections += 1;
    }

    fn answer(&mut self, command: &CommandApdu) -> Reply {
        let length = usize::from(u16::from_be_bytes([command.p1, command.p2]));
        match command.ins {
            0x10 => Reply::ok((0..length).map(|place| place as u8).collect::<Vec<_>>()),
            0x20 => Reply::ok(command.data.clone()),
            0x30 => Reply::ok([self.selections, self.deselections]),
            _ => Reply::refused(StatusWord::UNKNOWN_INSTRUCTION),
        }
    }
}

fn probe(aid: &[u8]) -> Box<dyn Applet> {
    Box::new(Probe { aid: aid.to_vec(), ..Probe::default() })
}

/// Two applications whose names begin alike; none is selected.
fn card() -> VirtualCard {
    VirtualCard::new().with("one", probe(b"probe1")).with("two", probe(b"probe2"))
}

/// The same with the first one selected.
fn selected() -> VirtualCard {
    let mut card = card();
    assert_eq!(
        send(&mut card, &CommandApdu::select(b"probe1")),
        (b"probe1".to_vec(), StatusWord::OK)
    );
    card
}

fn bytes(card: &mut VirtualCard, bytes: &[u8]) -> (Vec<u8>, StatusWord) {
    let answer = card.transmit(bytes).unwrap();
    let (data, status) = answer.response.split_last_chunk::<2>().unwrap();
    (data.to_vec(), StatusWord(u16::from_be_bytes(*status)))
}

fn send(card: &mut VirtualCard, command: &CommandApdu) -> (Vec<u8>, StatusWord) {
    bytes(card, &command.encode())
}

fn get(length: u16, le: u32) -> CommandApdu {
    let [p1, p2] = length.to_be_bytes();
    CommandApdu::new(0, 0x10, p1, p2).expecting(Expected::bytes(le).unwrap())
}

fn get_response(le: u32) -> CommandApdu {
    CommandApdu::new(0, 0xC0, 0, 0).expecting(Expected::bytes(le).unwrap())
}

fn refused(status: u16) -> (Vec<u8>, StatusWord) {
    (Vec::new(), StatusWord(status))
}

#[test]
fn select_takes_a_whole_name_the_start_of_it_and_the_next_one() {
    let mut card = card();
    assert_eq!(send(&mut card, &get(1, 1)), refused(0x6999));
    assert_eq!(send(&mut card, &CommandApdu::select(b"probe2")).0, b"probe2");
    assert_eq!(send(&mut card, &CommandApdu::select(b"pro")).0, b"probe1");
    let next = CommandApdu { p2: 0x02, ..CommandApdu::select(b"pro") };
    assert_eq!(send(&mut card, &next).0, b"probe2");
    assert_eq!(send(&mut card, &next), refused(0x6A82));
    // No control information: P2 = 0C, or no Le.
    assert_eq!(
        send(&mut card, &CommandApdu { p2: 0x0C, ..CommandApdu::select(b"pro") }),
        refused(0x9000)
    );
    let without = CommandApdu { expected: None, ..CommandApdu::select(b"probe1") };
    assert_eq!(send(&mut card, &without), refused(0x9000));
    for wrong in [b"probe12".as_slice(), b"x"] {
        assert_eq!(send(&mut card, &CommandApdu::select(wrong)), refused(0x6A82));
    }
    assert_eq!(send(&mut card, &CommandApdu::select(b"")), refused(0x6A82));
    // What was selected still is.
    assert_eq!(send(&mut card, &get(1, 1)), (vec![0], StatusWord::OK));
}

#[test]
fn an_applet_hears_of_the_end_of_its_selection_only() {
    let mut card = selected();
    let count = CommandApdu::new(0, 0x30, 0, 0).expecting(Expected::SHORT);
    send(&mut card, &CommandApdu::select(b"nobody"));
    send(&mut card, &CommandApdu::select(b"probe1"));
    assert_eq!(send(&mut card, &count).0, [2, 0]);
    send(&mut card, &CommandApdu::select(b"probe2"));
    send(&mut card, &CommandApdu::select(b"probe1"));
    assert_eq!(send(&mut card, &count).0, [3, 1]);
    card.reset();
    assert_eq!(send(&mut card, &count), refused(0x6999));
    let mut card = VirtualCard::new().with_default("one", probe(b"probe1"));
    assert_eq!(send(&mut card, &count).0, [1, 0]);
    card.reset();
    assert_eq!(send(&mut card, &count).0, [2, 1]);
}

#[test]
fn a_long_response_is_fetched_in_parts() {
    let mut card = selected();
    let (first, status) = send(&mut card, &get(600, 256));
    assert_eq!((first.len(), status), (256, StatusWord(0x6100)));
    let (second, status) = send(&mut card, &get_response(256));
    assert_eq!((second.len(), status), (256, StatusWord(0x6158)));
    let (third, status) = send(&mut card, &get_response(0x58));
    assert_eq!((third.len(), status), (88, StatusWord::OK));
    let all = [first, second, third].concat();
    assert_eq!(send(&mut card, &get(600, 65_536)), (all, StatusWord::OK));
    // A short Le gets so much and no more.
    assert_eq!(send(&mut card, &get(5, 2)), (vec![0, 1], StatusWord(0x6103)));
    assert_eq!(send(&mut card, &get_response(256)), (vec![2, 3, 4], StatusWord::OK));
    assert_eq!(send(&mut card, &get_response(256)), refused(0x6985));
    // Another command in between: gone.
    send(&mut card, &get(5, 2));
    send(&mut card, &get(1, 1));
    assert_eq!(send(&mut card, &get_response(3)), refused(0x6985));
    // Without Le nothing can be answered, but all can be fetched.
    assert_eq!(send(&mut card, &CommandApdu { expected: None, ..get(5, 1) }), refused(0x6105));
}

#[test]
fn with_t0_lengths_are_exact() {
    let mut card = selected().with_transmission(Transmission::T0);
    assert_eq!(send(&mut card, &get(5, 256)), refused(0x6C05));
    assert_eq!(send(&mut card, &get(5, 5)).0.len(), 5);
    assert_eq!(send(&mut card, &get(5, 3)), (vec![0, 1, 2], StatusWord(0x6102)));
    assert_eq!(send(&mut card, &get_response(3)), refused(0x6C02));
    assert_eq!(send(&mut card, &get_response(2)), (vec![3, 4], StatusWord::OK));
    assert_eq!(send(&mut card, &get(300, 256)).1, StatusWord(0x612C));
    // Data both ways: the response always waits for GET RESPONSE.
    let both = CommandApdu::new(0, 0x20, 0, 0).with_data(b"abc").expecting(Expected::SHORT);
    assert_eq!(send(&mut card, &both), refused(0x6103));
    assert_eq!(send(&mut card, &get_response(3)), (b"abc".to_vec(), StatusWord::OK));
}

#[test]
fn chained_data_comes_together_and_a_broken_chain_is_dropped() {
    let mut card = selected();
    let part = |cla, data: &[u8]| CommandApdu::new(cla, 0x20, 0, 0).with_data(data);
    let last = part(0, b"ef").expecting(Expected::SHORT);
    assert_eq!(send(&mut card, &part(0x10, b"ab")), refused(0x9000));
    assert_eq!(send(&mut card, &part(0x10, b"cd")), refused(0x9000));
    assert_eq!(send(&mut card, &last), (b"abcdef".to_vec(), StatusWord::OK));
    // Another command in the middle is refused, and the data is gone.
    send(&mut card, &part(0x10, b"ab"));
    assert_eq!(send(&mut card, &get(1, 1)), refused(0x6883));
    assert_eq!(send(&mut card, &last), (b"ef".to_vec(), StatusWord::OK));
    // A selection and a reset get out of it.
    for reset in [false, true] {
        send(&mut card, &part(0x10, b"ab"));
        if reset {
            card.reset();
        }
        send(&mut card, &CommandApdu::select(b"probe1"));
        assert_eq!(send(&mut card, &last), (b"ef".to_vec(), StatusWord::OK));
    }
    // Garbage ends it too, and SELECT itself does not chain.
    send(&mut card, &part(0x10, b"ab"));
    assert_eq!(bytes(&mut card, &[0, 0x20]), refused(0x6700));
    assert_eq!(send(&mut card, &last), (b"ef".to_vec(), StatusWord::OK));
    assert_eq!(
        send(&mut card, &CommandApdu { cla: 0x10, ..CommandApdu::select(b"x") }),
        refused(0x6884)
    );
}

#[test]
fn a_chain_ends_at_65535_bytes() {
    let mut card = selected();
    let part = |cla, length| CommandApdu::new(cla, 0x20, 0, 0).with_data(&vec![7; length]);
    assert_eq!(send(&mut card, &part(0x10, 65_535)), refused(0x9000));
    assert_eq!(send(&mut card, &part(0, 1)), refused(0x6700));
    send(&mut card, &part(0x10, 65_534));
    let whole = send(&mut card, &part(0, 1).expecting(Expected::EXTENDED));
    assert_eq!((whole.0.len(), whole.1), (65_535, StatusWord::OK));
}

#[test]
fn classes_that_the_card_lacks_are_named() {
    let mut card = selected();
    for (cla, status) in [
        (0x01, 0x6881),
        (0x41, 0x6881),
        (0x0C, 0x6882),
        (0x20, 0x6E00),
        (0xFF, 0x6E00),
        (0x80, 0x6D00),
    ] {
        assert_eq!(
            send(&mut card, &CommandApdu::new(cla, 0x99, 0, 0)),
            refused(status),
            "{cla:02X}"
        );
    }
    for garbage in [&[][..], &[0], &[0, 0xA4, 4, 0, 5, 1], &[0; 8]] {
        assert_eq!(bytes(&mut card, garbage), refused(0x6700), "{garbage:02X?}");
    }
}

/// Mostly commands, some of them sensible, and some bytes that are none.
fn commands() -> impl Strategy<Value = Vec<u8>> {
    let cla = prop_oneof![Just(0), Just(0x10), Just(0x80), any::<u8>()];
    let ins = prop_oneof![Just(0xA4), Just(0xC0), Just(0x10), Just(0x20), any::<u8>()];
    let data = prop_oneof![
        Just(Vec::new()),
        Just(b"pro".to_vec()),
        prop::collection::vec(any::<u8>(), 0..300)
    ];
    let le = prop::option::of(1..=65_536_u32);
    let command =
        (cla, ins, any::<[u8; 2]>(), data, le).prop_map(|(cla, ins, [p1, p2], data, le)| {
            let expected = le.and_then(Expected::bytes);
            CommandApdu { expected, ..CommandApdu::new(cla, ins, p1, p2).with_data(&data) }.encode()
        });
    prop_oneof![9 => command, 1 => prop::collection::vec(any::<u8>(), 0..20)]
}

proptest! {
    #[test]
    fn any_commands_are_answered_within_their_le(
        all in prop::collection::vec(commands(), 1..40), t0 in any::<bool>(),
    ) {
        let transmission = if t0 { Transmission::T0 } else { Transmission::T1 };
        let mut card = card().with_transmission(transmission);
        for one in &all {
            let (data, status) = bytes(&mut card, one);
            prop_assert!(matches!(status.0 >> 12, 6 | 9));
            let room = CommandApdu::parse(one).ok().and_then(|(command, _)| command.expected);
            prop_assert!(data.len() <= room.map_or(0, Expected::count));
        }
    }
}
