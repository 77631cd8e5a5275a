//! Steps as the bytes that a card gets (ISO 7816-4, 5.1 and 5.3.3; ISO 7816-3, 12.1).

use super::*;

fn bytes(bytes: &[u8]) -> Vec<Piece> {
    vec![Piece::Bytes(bytes.to_vec())]
}

fn value(name: &str) -> Piece {
    Piece::Value(name.to_owned())
}

fn number(name: &str, width: u8) -> Piece {
    Piece::Number { name: name.to_owned(), width }
}

/// A step that sends the input.
fn sends_input(split: Split) -> Step {
    Step {
        name: "STEP".to_owned(),
        header: bytes(&[0x80, 0x24, 0, 0]),
        data: vec![value("input")],
        split,
        ..Step::default()
    }
}

fn render(
    step: &Step,
    protocol: CardProtocol,
    input: &[u8],
) -> Result<Vec<RenderedCommand>, Fault> {
    let saved = HashMap::from([("key".to_owned(), vec![0xAB; 3])]);
    let pin = Secret::padded(b"1234", 6);
    let lane = JobCase { set_ups: 2, operations: 0x0102, ..JobCase::default() };
    let rendering =
        Rendering { saved: &saved, pin: Some(&pin), protocol, lane: &lane, input: Some(input) };
    rendering.commands(step, 7)
}

fn commands(step: &Step, input: &[u8]) -> Vec<Vec<u8>> {
    let ready = render(step, CardProtocol::T1, input).unwrap();
    ready.into_iter().map(|ready| ready.bytes).collect()
}

#[test]
fn a_header_alone_has_four_bytes() {
    let step = Step { header: bytes(&[0x80, 0x26, 0, 0]), ..Step::default() };
    let ready = render(&step, CardProtocol::T1, &[]).unwrap();
    assert_eq!(ready.len(), 1);
    assert_eq!((&ready[0].bytes[..], ready[0].step), (&[0x80, 0x26, 0, 0][..], 7));
}

#[test]
fn le_of_256_is_a_zero() {
    let step =
        |le| Step { header: bytes(&[0, 0xCB, 0x3F, 0xFF]), expected: Some(le), ..Step::default() };
    assert_eq!(commands(&step(256), &[]), [[0, 0xCB, 0x3F, 0xFF, 0]]);
    assert_eq!(commands(&step(8), &[]), [[0, 0xCB, 0x3F, 0xFF, 8]]);
}

#[test]
fn extended_lengths_have_a_zero_before_them() {
    let step = Step { extended: true, expected: Some(65_536), ..sends_input(Split::None) };
    let sent = commands(&step, &[0x11; 300]);
    assert_eq!(sent[0][..7], [0x80, 0x24, 0, 0, 0, 0x01, 0x2C]);
    assert_eq!((sent.len(), sent[0].len()), (1, 4 + 3 + 300 + 2));
    assert_eq!(sent[0][307..], [0, 0]);
}

#[test]
fn data_in_chunks_is_numbered() {
    let header = vec![Piece::Bytes(vec![0x80, 0x24]), value("buffer"), number("chunk", 1)];
    let step = Step { header, ..sends_input(Split::Chunks(3)) };
    let ready = render(&step, CardProtocol::T1, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
    let sent: Vec<_> = ready.iter().map(|ready| &ready.bytes[..]).collect();
    assert_eq!(
        sent,
        [
            &[0x80, 0x24, 0, 0, 3, 1, 2, 3][..],
            &[0x80, 0x24, 0, 1, 3, 4, 5, 6],
            &[0x80, 0x24, 0, 2, 1, 7],
        ]
    );
    for ready in ready {
        assert_eq!(ready.patches, [(2, "buffer".to_owned())]);
        assert_eq!(ready.chunk_at, Some(3));
    }
    // Nothing to send is one command all the same.
    assert_eq!(render(&step, CardProtocol::T1, &[]).unwrap().len(), 1);
}

#[test]
fn a_chain_marks_all_commands_but_the_last() {
    let step = Step { expected: Some(256), ..sends_input(Split::Chain) };
    let sent = commands(&step, &[0x22; 255 + 255 + 10]);
    let classes: Vec<_> = sent.iter().map(|command| (command[0], command.len())).collect();
    // Le is in the last one alone.
    assert_eq!(classes, [(0x90, 260), (0x90, 260), (0x80, 5 + 10 + 1)]);
    // What fits one command is no chain.
    let sent = commands(&step, &[0x22; 255]);
    assert_eq!((sent.len(), sent[0][0], sent[0].len()), (1, 0x80, 5 + 255 + 1));
}

#[test]
fn t_0_has_no_command_with_data_and_le() {
    let step = Step { expected: Some(256), ..sends_input(Split::None) };
    let sent = |protocol, input: &[u8]| render(&step, protocol, input).unwrap().remove(0).bytes;
    assert_eq!(sent(CardProtocol::T0, &[1]), [0x80, 0x24, 0, 0, 1, 1]);
    assert_eq!(sent(CardProtocol::T1, &[1]), [0x80, 0x24, 0, 0, 1, 1, 0]);
    // Without data Le is P3.
    assert_eq!(sent(CardProtocol::T0, &[]), [0x80, 0x24, 0, 0, 0]);
}

#[test]
fn names_stand_for_bytes_and_numbers() {
    let data = vec![
        number("set_ups", 2),
        number("operations", 2),
        number("length", 4),
        number("key.length", 1),
        value("key"),
        value("pin"),
    ];
    let step = Step { data, ..sends_input(Split::None) };
    let expected =
        [0, 2, 1, 2, 0, 0, 0, 9, 3, 0xAB, 0xAB, 0xAB, b'1', b'2', b'3', b'4', 0xFF, 0xFF];
    assert_eq!(commands(&step, &[0; 9])[0][5..], expected);
}

#[test]
fn a_name_that_stands_for_nothing_is_named() {
    for piece in [value("nothing"), number("nothing", 1), number("nothing.length", 2)] {
        let step = Step { data: vec![piece], ..sends_input(Split::None) };
        let Err(Fault::Garbage { step, why }) = render(&step, CardProtocol::T1, &[]) else {
            panic!("it is refused")
        };
        assert!(step == "STEP" && why.contains("nothing"), "{why}");
    }
}
