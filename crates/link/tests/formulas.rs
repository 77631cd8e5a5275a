//! The formulas against sums done by hand, and what must hold of every link.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use proptest::prelude::*;
use tapstone_link::{Hop, Link};
use tapstone_measure::units::Nanos;

fn link(text: &str) -> Link {
    toml::from_str(text).unwrap()
}

fn ms(nanos: Nanos) -> f64 {
    nanos.as_secs_f64() * 1e3
}

/// F = 372, D = 1, 3.72 MHz: an etu of 100 µs.
const TENTH_MS: &str = "kind = 'contact'\nclock_hz = 3720000\n";

#[test]
fn ten_commands_with_2209_bytes_take_about_200_ms_in_a_106_kbit_field() {
    let field = link("kind = 'contactless'\nkbit_per_second = 106\n");
    // What a PKI authentication reads: nine short commands and answers of a frame each, and the
    // same bytes with long answers that are chained.
    for (there, back) in [(20, 201), (5, 216), (121, 100)] {
        let nine = Nanos(field.exchange(there, back).0 * 9);
        let total = nine + field.exchange(there, 2209 - 9 * (there + back) - there);
        assert!((190.0..215.0).contains(&ms(total)), "{total}");
    }
    let chained = field.exchange(260, 1868) + Nanos(field.exchange(5, 4).0 * 9);
    assert!((190.0..215.0).contains(&ms(chained)), "{chained}");
}

#[test]
fn t0_counts_headers_procedure_bytes_and_get_response() {
    let t0 = link(&format!("{TENTH_MS}protocol = 'T=0'\n"));
    // Case 1: 5 + 2 characters of 12 etu.
    assert_eq!(t0.exchange(4, 2), Nanos(7 * 1_200_000));
    // Case 2, 10 bytes: 5 + 1 + 10 + 2.
    assert_eq!(t0.exchange(5, 12), Nanos(18 * 1_200_000));
    // Case 3, 10 bytes: the same.
    assert_eq!(t0.exchange(15, 2), Nanos(18 * 1_200_000));
    // Case 4: 5 + 1 + 10 + 2, then 5 + 1 + 20 + 2.
    assert_eq!(t0.exchange(16, 22), Nanos((18 + 28) * 1_200_000));
}

#[test]
fn t1_counts_blocks_and_their_turns() {
    let t1 = link(&format!("{TENTH_MS}protocol = 'T=1'\nextra_guard_etu = 255\n"));
    // Two blocks with 3 + 1 characters around 5 and 12, 11 etu each, and 11 etu more to turn.
    assert_eq!(t1.exchange(5, 12), Nanos((4 + 5 + 4 + 12) * 1_100_000 + 2 * 1_100_000));
    // 40 bytes are two blocks of IFSC 32, the first answered by an R-block.
    let chained = (2 * 4 + 40 + 4) + (4 + 2);
    assert_eq!(t1.exchange(40, 2), Nanos((chained + 4) * 1_100_000));
    // BWT = 16 × 960 × 372 / f + 11 etu.
    assert_eq!(t1.waiting_time(), Nanos(1_536_000_000 + 1_100_000));
    assert_eq!(t1.waiting_time_extensions(t1.waiting_time()), Nanos::ZERO);
    assert_eq!(t1.waiting_time_extensions(Nanos::from_secs(4)), Nanos(2 * 2 * (5 + 1) * 1_100_000));
}

/// An etu of 100 µs.
fn etu(count: u64) -> Nanos {
    Nanos(count * 100_000)
}

#[test]
fn t1_chains_blocks_in_either_direction() {
    // The reader's characters take 12 + 2 etu, the card's 12; a turn 22 - 12.
    let t1 = link(&format!("{TENTH_MS}protocol = 'T=1'\nextra_guard_etu = 2\n"));
    let by_reader = 4 * 14 + 10;
    let by_card = 4 * 12 + 10;
    // 5 bytes in one block, 70 in three of IFSD 32, two of which are acknowledged.
    let expected = 5 * 14 + 70 * 12 + by_reader + 3 * by_card + 2 * by_reader;
    assert_eq!(t1.exchange(5, 70), etu(expected));
    let expected = 70 * 14 + 5 * 12 + 3 * by_reader + by_card + 2 * by_card;
    assert_eq!(t1.exchange(70, 5), etu(expected));
}

#[test]
fn an_epilogue_is_one_byte_or_two() {
    let t1 = |edc: &str| link(&format!("{TENTH_MS}protocol = 'T=1'\nedc = '{edc}'\n"));
    assert_eq!(t1("LRC").exchange(5, 12), etu((4 + 5 + 4 + 12) * 12 + 2 * 10));
    assert_eq!(t1("CRC").exchange(5, 12), etu((5 + 5 + 5 + 12) * 12 + 2 * 10));
}

/// ISO/IEC 7816-3, 11.2: TC1 = 255 is 11 etu with T=1, and 12 with T=0.
#[test]
fn the_least_guard_time_is_that_of_the_protocol() {
    let t0 = link(&format!("{TENTH_MS}protocol = 'T=0'\nextra_guard_etu = 255\n"));
    assert_eq!(t0.exchange(4, 2), etu(7 * 12));
    let t0 = link(&format!("{TENTH_MS}protocol = 'T=0'\nextra_guard_etu = 3\n"));
    assert_eq!(t0.exchange(4, 2), etu(5 * 15 + 2 * 12));
}

/// ISO/IEC 7816-3, 10.2: WT = WI × 960 × Fi / f; a NULL byte is a character of the card.
#[test]
fn t0_waits_for_the_waiting_time() {
    let t0 = link(&format!("{TENTH_MS}protocol = 'T=0'\n"));
    assert_eq!(t0.waiting_time(), Nanos::from_millis(960), "WI is 10 by default");
    assert_eq!(t0.waiting_time_extension(), etu(12));
    let t0 = link(&format!("{TENTH_MS}protocol = 'T=0'\nwi = 3\nF = 744\n"));
    assert_eq!(t0.waiting_time(), Nanos::from_millis(576));
}

#[test]
fn parameters_are_possible_up_to_the_ends_of_their_ranges() {
    let contact = |clock_hz: u32, parameter: &str| {
        let text =
            format!("kind = 'contact'\nprotocol = 'T=1'\nclock_hz = {clock_hz}\n{parameter}\n");
        toml::from_str::<Link>(&text).is_ok()
    };
    let possible =
        ["wi = 1", "wi = 255", "bwi = 0", "bwi = 9", "ifsc = 1", "ifsc = 254", "ifsd = 254"];
    assert_eq!(possible.map(|parameter| contact(5_000_000, parameter)), [true; 7]);
    let impossible =
        ["wi = 0", "bwi = 10", "ifsc = 0", "ifsc = 255", "ifsd = 0", "ifsd = 255", "D = 3"];
    assert_eq!(impossible.map(|parameter| contact(5_000_000, parameter)), [false; 7]);
    assert!(contact(1_000_000, "") && contact(20_000_000, ""));
    assert!(!contact(999_999, "") && !contact(20_000_001, ""));
}

#[test]
fn type_a_counts_nine_bits_a_byte_and_the_turns() {
    let field = link("kind = 'contactless'\nkbit_per_second = 106\n");
    // Two frames of (5 + 3) and (2 + 3) bytes with 2 bits around, and twice 1172 / fc.
    let bits = 9.0 * 13.0 + 4.0;
    let expected = bits * 128.0 / 13.56e6 + 2.0 * 1172.0 / 13.56e6;
    assert!((field.exchange(5, 2).as_secs_f64() - expected).abs() < 1e-8);
    // FWT = 4096 / fc × 16.
    assert_eq!(field.waiting_time().0 / 1000, 4833);
}

/// So many periods of the carrier of 13.56 MHz, rounded once or twice.
#[track_caller]
fn assert_periods(time: Nanos, periods: u64) {
    let expected = periods as f64 / 13.56e6;
    assert!((time.as_secs_f64() - expected).abs() < 3e-9, "{time} is not {periods} / fc");
}

/// A bit takes 16 periods, a byte 10 bits, an empty frame 22 bits and the bytes of the prologue
/// (3 with CID and NAD) and the CRC; both turns take (64 + 80) × 16 and 10 × 128 + 32 × 16.
#[test]
fn type_b_counts_ten_bits_a_byte_and_its_own_turns() {
    let field = |more: &str| {
        link(&format!("kind = 'contactless'\nkbit_per_second = 848\ntype = 'B'\nfsc = 32\n{more}"))
    };
    let both = field("cid = true\nnad = true\n");
    let empty = 22 + 10 * (3 + 2);
    // 27 bytes fill a frame of 32.
    assert_periods(both.exchange(27, 10), 16 * (10 * 37 + 2 * empty) + 4096);
    assert_periods(both.exchange(28, 10), 16 * (10 * 38 + 4 * empty) + 2 * 4096);
    assert_periods(both.exchange(60, 10), 16 * (10 * 70 + 6 * empty) + 3 * 4096);
    for more in ["cid = true\n", "nad = true\n"] {
        let empty = 22 + 10 * (2 + 2);
        assert_periods(field(more).exchange(28, 10), 16 * (10 * 38 + 2 * empty) + 4096);
    }
    // S(WTX) is a byte of information from either side.
    assert_periods(both.waiting_time_extension(), 16 * 2 * (22 + 10 * (3 + 1 + 2)) + 4096);
    let type_a = link("kind = 'contactless'\nkbit_per_second = 106\n");
    assert_periods(type_a.waiting_time_extension(), 128 * 2 * (2 + 9 * (1 + 1 + 2)) + 2 * 1172);
}

#[test]
fn a_field_waits_for_the_frame_waiting_time() {
    let field = |fwi: u8| {
        let text = format!("kind = 'contactless'\nkbit_per_second = 106\nfwi = {fwi}\n");
        toml::from_str::<Link>(&text)
    };
    assert_periods(field(0).unwrap().waiting_time(), 4096);
    assert_periods(field(14).unwrap().waiting_time(), 4096 * 16_384);
    assert!(field(15).is_err());
}

#[test]
fn bit_rates_are_those_of_the_standard() {
    for (kbit, periods) in [(106, 128), (212, 64), (424, 32), (848, 16)] {
        let field = link(&format!("kind = 'contactless'\nkbit_per_second = {kbit}\n"));
        let bits = 2 * (2 + 9 * (1 + 2)) + 9 * 7;
        assert_periods(field.exchange(5, 2), bits * periods + 2 * 1172);
    }
}

#[test]
fn impossible_parameters_are_refused_with_a_hint() {
    let texts = [
        format!("{TENTH_MS}protocol = 'T=1'\nF = 373\n"),
        format!("{TENTH_MS}protocol = 'T=1'\nifsc = 255\n"),
        "kind = 'contact'\nclock_hz = 3\nprotocol = 'T=0'\n".to_owned(),
        "kind = 'contactless'\nkbit_per_second = 107\n".to_owned(),
        "kind = 'contactless'\nkbit_per_second = 106\nfsc = 100\n".to_owned(),
    ];
    for text in texts {
        let error = toml::from_str::<Link>(&text).unwrap_err().to_string();
        assert!(error.contains("is impossible") && error.contains("hint: "), "{error}");
    }
}

fn links() -> impl Strategy<Value = Link> {
    let contact = (prop_oneof![Just("T=0"), Just("T=1")], 1..=254_u8, any::<u8>()).prop_map(
        |(protocol, ifsc, guard)| {
            link(&format!(
                "{TENTH_MS}protocol = '{protocol}'\nifsc = {ifsc}\nextra_guard_etu = {guard}\n"
            ))
        },
    );
    let kbit = prop_oneof![Just(106), Just(212), Just(424), Just(848)];
    let field =
        (kbit, prop_oneof![Just("A"), Just("B")], any::<bool>()).prop_map(|(kbit, kind, cid)| {
            link(&format!(
                "kind = 'contactless'\nkbit_per_second = {kbit}\ntype = '{kind}'\ncid = {cid}\n"
            ))
        });
    prop_oneof![contact, field]
}

proptest! {
    #[test]
    fn more_bytes_never_take_less_time(
        link in links(), command in 4..5000_usize, response in 2..5000_usize, more in 1..600_usize,
    ) {
        let time = link.exchange(command, response);
        prop_assert!(time > Nanos::ZERO);
        prop_assert!(link.exchange(command + more, response) >= time);
        prop_assert!(link.exchange(command, response + more) >= time);
    }
}

fn hop(text: &str) -> Hop {
    toml::from_str(text).unwrap()
}

#[test]
fn two_hundred_bits_of_wiegand_at_2_ms_take_400_ms() {
    let line = hop("kind = 'wiegand'\nbits = 200\ninterval_us = 2000\n");
    assert_eq!(line.exchange(0, 25), Nanos::from_millis(400));
    assert_eq!(line.exchange(10, 0), Nanos::ZERO, "nothing goes back over Wiegand");
}

#[test]
fn osdp_counts_packets_polls_and_the_secure_channel() {
    let line = |more: &str| hop(&format!("kind = 'osdp'\nbaud = 9600\n{more}"));
    // A command of 10 bytes: 9 + 10 characters, its ACK of 9, 10 bits each, and 3 ms.
    let plain = line("poll_us = 0\n");
    let expected = 28.0 * 10.0 / 9600.0 + 0.003;
    assert!((plain.exchange(10, 0).as_secs_f64() - expected).abs() < 1e-8);
    // The secure channel adds 6 bytes to both packets and pads 10 bytes to 16.
    let secure = line("poll_us = 0\nsecure_channel = true\n");
    let expected = (28.0 + 12.0 + 6.0) * 10.0 / 9600.0 + 0.003;
    assert!((secure.exchange(10, 0).as_secs_f64() - expected).abs() < 1e-8);
    // What the peripheral has to say waits half a poll on average.
    let polled = line("poll_us = 50000\n");
    assert_eq!(polled.exchange(0, 10), plain.exchange(0, 10) + Nanos::from_millis(25));
    // 300 bytes in packets of 128 are 114 + 114 + 72, so two further polls.
    let fast = hop("kind = 'osdp'\nbaud = 230400\npoll_us = 50000\n");
    let last = (9.0 + 9.0 + 78.0) * 10.0 / 230_400.0 + 0.003;
    let expected = 0.025 + 2.0 * 0.050 + last;
    assert!((fast.exchange(0, 300).as_secs_f64() - expected).abs() < 1e-7);
}

/// At 9600 baud, without a pause between polls: so many characters, and replies after 3 ms.
#[track_caller]
fn assert_characters(time: Nanos, characters: u64, replies: u64) {
    let expected = characters as f64 * 10.0 / 9600.0 + replies as f64 * 0.003;
    assert!((time.as_secs_f64() - expected).abs() < 1e-8, "{time} is not {characters} characters");
}

#[test]
fn a_packet_of_osdp_has_room_for_what_its_headers_leave() {
    let line = |more: &str| hop(&format!("kind = 'osdp'\nbaud = 9600\npoll_us = 0\n{more}"));
    // 128 bytes leave 120, in a message of several packets 114; the ACK has 9 characters.
    let plain = line("");
    assert_characters(plain.exchange(120, 0), (9 + 120) + 9, 1);
    assert_characters(plain.exchange(121, 0), (9 + 120) + (9 + 7 + 6) + 2 * 9, 2);
    // The secure channel leaves 7 AES blocks, a byte of which is padding.
    let secure = line("secure_channel = true\n");
    assert_characters(secure.exchange(15, 0), (15 + 16) + 15, 1);
    assert_characters(secure.exchange(16, 0), (15 + 32) + 15, 1);
    assert_characters(secure.exchange(111, 0), (15 + 112) + 15, 1);
    assert_characters(secure.exchange(112, 0), (15 + 112) + (15 + 16) + 2 * 15, 2);
    // 122 bytes leave 108 for data, which are no more than 6 whole blocks.
    let small = line("secure_channel = true\npacket_bytes = 122\n");
    assert_characters(small.exchange(95, 0), (15 + 96) + 15, 1);
    assert_characters(small.exchange(96, 0), (15 + 96) + (15 + 16) + 2 * 15, 2);
}

#[test]
fn osdp_is_polled_twenty_times_a_second_by_default() {
    let line = |more: &str| hop(&format!("kind = 'osdp'\nbaud = 9600\n{more}"));
    assert_eq!(line("").exchange(0, 10), line("poll_us = 50000\n").exchange(0, 10));
}

#[test]
fn hops_are_named_by_what_makes_their_time() {
    let names = [
        (
            "kind = 'contact'\nclock_hz = 3720000\nprotocol = 'T=0'\nD = 4\n",
            "ISO 7816-3, F/D 372/4 at 3.72 MHz",
        ),
        (
            "kind = 'contactless'\nkbit_per_second = 424\nfsc = 64\n",
            "ISO 14443 type A, 424 kbit/s, frames of 64 bytes",
        ),
        ("kind = 'wiegand'\nbits = 200\ninterval_us = 2500\n", "Wiegand, 200 bits every 2.5 ms"),
        ("kind = 'osdp'\nbaud = 9600\n", "OSDP, 9600 baud"),
        ("kind = 'osdp'\nbaud = 9600\nsecure_channel = true\n", "OSDP, 9600 baud, secure channel"),
        (
            "kind = 'ip'\nround_trip_us = 2500\nbits_per_second = 1500000\n",
            "IP, 2.5 ms round trip, 1.5 Mbit/s",
        ),
    ];
    for (text, name) in names {
        assert_eq!(hop(text).name(), name);
    }
}

#[test]
fn ip_counts_round_trips_and_bytes_on_the_wire() {
    let path = hop("kind = 'ip'\nround_trip_us = 2000\nbits_per_second = 1000000\n");
    // 78 bytes around each of 2 segments there and 1 back.
    let expected = 0.002 + 8.0 * (2000.0 + 100.0 + 3.0 * 78.0) / 1e6;
    assert!((path.exchange(2000, 100).as_secs_f64() - expected).abs() < 1e-8);
    let one_way = 0.001 + 8.0 * 178.0 / 1e6;
    assert!((path.exchange(0, 100).as_secs_f64() - one_way).abs() < 1e-8);
    let tls = hop(
        "kind = 'ip'\nround_trip_us = 2000\nbits_per_second = 1000000\nsetup_round_trips = 2\n",
    );
    assert_eq!(tls.exchange(0, 100), path.exchange(0, 100) + Nanos::from_millis(4));
}

#[test]
fn links_behind_a_reader_refuse_what_their_standards_do_not_have() {
    let wrong = [
        ("kind = 'wiegand'\nbits = 200\ninterval_us = 50\n", "interval_us = 50"),
        ("kind = 'wiegand'\nbits = 0\ninterval_us = 2000\n", "bits = 0"),
        ("kind = 'osdp'\nbaud = 12345\n", "baud = 12345"),
        ("kind = 'osdp'\nbaud = 9600\npacket_bytes = 32\n", "packet_bytes = 32"),
        ("kind = 'osdp'\nbaud = 9600\npoll_us = 9000000\n", "poll_us = 9000000"),
        ("kind = 'ip'\nround_trip_us = 1\nbits_per_second = 1\n", "bits_per_second = 1"),
        ("kind = 'pigeon'\n", "unknown variant `pigeon`"),
    ];
    for (text, says) in wrong {
        let error = toml::from_str::<Hop>(text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

proptest! {
    #[test]
    fn more_bytes_never_take_less(bytes in 0usize..4000, more in 0usize..400, baud in 0usize..6) {
        let baud = [9600, 19200, 38400, 57600, 115_200, 230_400][baud];
        for secure in [false, true] {
            let line = hop(&format!("kind='osdp'\nbaud={baud}\nsecure_channel={secure}\n"));
            // The header of fragments is the only thing that a split may cost beside its poll.
            prop_assert!(line.exchange(bytes, 0) <= line.exchange(bytes + more, 0));
            prop_assert!(line.exchange(0, bytes) <= line.exchange(0, bytes + more));
        }
    }
}
