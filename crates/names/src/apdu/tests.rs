use super::*;

mod tables;

/// Bytes of hexadecimal digits with blanks between them.
fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16))
        .collect::<Result<_, _>>()
        .unwrap()
}

fn said(command: &str, selected: Option<Application>) -> String {
    let Described { name, object, .. } = describe(&bytes(command), selected);
    object.map_or(name.to_owned(), |object| format!("{name}: {object}"))
}

#[test]
fn commands_of_piv() {
    let cases = [
        ("00 CB 3F FF 05 5C 03 5F C1 02 00", "GET DATA: Card Holder Unique Identifier"),
        (
            "00 CB 3F FF 05 5C 03 5F C1 05 00",
            "GET DATA: X.509 Certificate for PIV Authentication (9A)",
        ),
        ("00 CB 3F FF 05 5C 03 5F C1 07 00", "GET DATA: Card Capability Container"),
        ("00 CB 3F FF 03 5C 01 7E 08", "GET DATA: Discovery Object"),
        (
            "00 CB 3F FF 04 5C 02 7F 61 00",
            "GET DATA: Biometric Information Templates Group Template",
        ),
        (
            "00 CB 3F FF 05 5C 03 5F C1 0D 00",
            "GET DATA: X.509 Certificate for retired Key Management 1 (82)",
        ),
        (
            "00 CB 3F FF 05 5C 03 5F C1 20 00",
            "GET DATA: X.509 Certificate for retired Key Management 20 (95)",
        ),
        // The same with an extended length, and one that nobody has named.
        ("00 CB 3F FF 00 00 05 5C 03 5F C1 06 00 00", "GET DATA: Security Object"),
        ("00 CB 3F FF 05 5C 03 5F C1 77 00", "GET DATA: data object 5FC177"),
        ("00 20 00 80 08 31 32 33 34 35 36 FF FF", "VERIFY: PIV Card Application PIN"),
        ("00 20 00 80", "VERIFY: PIV Card Application PIN, state only"),
        ("00 20 00 00 08", "VERIFY: Global PIN"),
        ("00 24 00 80 10", "CHANGE REFERENCE DATA: PIV Card Application PIN"),
        ("00 24 00 81 10", "CHANGE REFERENCE DATA: PIN Unblocking Key"),
        ("00 2C 00 80 10", "RESET RETRY COUNTER: PIV Card Application PIN"),
        ("10 87 07 9A FF", "GENERAL AUTHENTICATE: RSA 2048, PIV Authentication Key 9A"),
        ("00 87 11 9E 26", "GENERAL AUTHENTICATE: ECC P-256, Card Authentication Key 9E"),
        (
            "00 87 03 9B 04",
            "GENERAL AUTHENTICATE: 3TDEA, PIV Card Application Administration Key 9B",
        ),
        ("00 87 27 04 45", "GENERAL AUTHENTICATE: Cipher Suite 2, PIV Secure Messaging Key 04"),
        ("00 47 00 9C 05 AC 03 80 01 11", "GENERATE ASYMMETRIC KEY PAIR: Digital Signature Key 9C"),
        (
            "00 DB 3F FF 0A 5C 03 5F C1 0A 53 03 70 01 00",
            "PUT DATA: X.509 Certificate for Digital Signature (9C)",
        ),
        ("00 DB 3F FF 03 7E 01 00", "PUT DATA: Discovery Object"),
        // P1 and P2 must be 3FFF: else it is the command of ISO 7816-4.
        ("00 CB 3F FE 05 5C 03 5F C1 02 00", "GET DATA: data object 5FC102"),
        ("00 DB 3F FE 05 5C 03 5F C1 02 00", "PUT DATA: data object 5FC102"),
        ("00 CB 3F FF 03 5C 01 42", "GET DATA: data object 42"),
        ("00 CB 3F FF 05 5C 03 5F C1", "GET DATA"),
        ("00 F9 9A 00", "ATTEST: key 9A"),
        ("00 FD 00 00 00", "GET VERSION"),
        ("00 FE 07 9A FF", "IMPORT ASYMMETRIC KEY: RSA 2048, PIV Authentication Key 9A"),
        ("00 C0 00 00 00", "GET RESPONSE"),
    ];
    for (command, expected) in cases {
        assert_eq!(said(command, Some(Application::Piv)), expected, "{command}");
    }
}

#[test]
fn commands_of_iso_7816() {
    let cases = [
        (
            "00 A4 04 00 0B A0 00 00 03 08 00 00 10 00 01 00 00",
            "SELECT: PIV A000000308000010000100",
        ),
        ("00 A4 04 00 09 A0 00 00 03 08 00 00 10 00", "SELECT: PIV A00000030800001000"),
        (
            "00 A4 04 0C 0C A0 00 00 00 63 50 4B 43 53 2D 31 35",
            "SELECT: PKCS#15 A000000063504B43532D3135",
        ),
        ("00 A4 04 00 06 D2 76 00 01 24 01 00", "SELECT: OpenPGP D27600012401"),
        (
            "00 A4 04 00 08 A0 00 00 01 51 00 00 00",
            "SELECT: GlobalPlatform issuer security domain A000000151000000",
        ),
        ("00 A4 04 00 06 A0 00 00 00 01 01", "SELECT: MUSCLE A00000000101"),
        ("00 A4 04 00 07 A0 00 00 00 79 01 00", "SELECT: CAC A0000000790100"),
        (
            "00 A4 04 00 0F D2 33 00 00 00 45 73 74 45 49 44 20 76 33 35",
            "SELECT: EstEID D23300000045737445494420763335",
        ),
        (
            "00 A4 04 00 10 A0 00 00 00 77 01 08 00 07 00 00 FE 00 00 01 00",
            "SELECT: EstEID A000000077010800070000FE00000100",
        ),
        ("00 A4 04 00 05 F0 00 00 00 99", "SELECT: application F000000099"),
        ("00 A4 04 00", "SELECT: default application"),
        // Five bytes name a provider, fewer nobody (ISO 7816-5).
        ("00 A4 04 00 05 A0 00 00 03 08", "SELECT: PIV A000000308"),
        ("00 A4 04 00 04 A0 00 00 03", "SELECT: application A0000003"),
        // A SELECT by name whose name was cut off, and one by identifier.
        ("00 A4 04 00 05", "SELECT"),
        ("00 A4 00 00", "SELECT: MF"),
        ("00 A4 03 00", "SELECT: parent DF"),
        ("00 A4 00 00 01 3F", "SELECT"),
        ("00 A4 09 00 02 50 15", "SELECT: file 5015"),
        ("00 A4 00 0C 02 3F 00", "SELECT: MF"),
        ("00 A4 02 04 02 50 31", "SELECT: file 5031"),
        ("00 A4 08 0C 04 50 15 44 01", "SELECT: file 50154401"),
        ("00 B0 00 00 00", "READ BINARY"),
        ("00 B0 9E 00 00", "READ BINARY: short file 1E"),
        ("00 B2 01 0C 00", "READ RECORD: short file 01"),
        ("00 B2 01 04 00", "READ RECORD"),
        ("00 B2 01 FC 00", "READ RECORD: short file 1F"),
        ("00 B0 7E 00 00", "READ BINARY"),
        ("00 B0 C1 00 00", "READ BINARY"),
        ("00 D6 81 00 01 00", "UPDATE BINARY: short file 01"),
        ("00 20 00 01 08", "VERIFY: reference 01"),
        ("00 24 00 01", "CHANGE REFERENCE DATA: reference 01"),
        ("00 22 41 A4 03 84 01 81", "MANAGE SECURITY ENVIRONMENT: SET"),
        ("00 2A 9E 9A 33", "PERFORM SECURITY OPERATION: COMPUTE DIGITAL SIGNATURE"),
        ("00 2A 80 86 00", "PERFORM SECURITY OPERATION: DECIPHER"),
        ("00 84 00 00 08", "GET CHALLENGE"),
        ("00 88 00 00 23", "INTERNAL AUTHENTICATE"),
        ("00 CB 3F FF 0A 4D 08 70 06 BF 81 01 02 A0 80", "GET DATA: data object 4D"),
        ("00 CA 01 01 00", "GET DATA: data object 0101"),
        ("00 CB 00 00 02 5F 50", "GET DATA: data object 5F50"),
        ("00 CB 00 00 03 5F 81 02", "GET DATA: data object 5F8102"),
        // Tags have at most three bytes, and this one has only two of three.
        ("00 CB 00 00 04 5F 81 82 03", "GET DATA"),
        ("00 CB 00 00 02 5F 81", "GET DATA"),
        ("FF CA 01 00 00", "GET DATA: historical bytes"),
        ("FF CA 02 00 00", "GET DATA"),
        ("FF B0 00 00 10", "READ BINARY"),
        ("00 5A 00 00", "unknown command"),
        ("90 5A 00 00", "proprietary command"),
        ("FF CA 00 00 00", "GET DATA: UID"),
        ("00", "unknown command"),
    ];
    for (command, expected) in cases {
        assert_eq!(said(command, Some(Application::Other)), expected, "{command}");
    }
}

#[test]
fn commands_of_other_applications() {
    use Application::{Benchmark, Cac, GlobalPlatform, OpenPgp};
    let cases = [
        (Some(GlobalPlatform), "80 50 00 00 08 01 02 03 04 05 06 07 08 00", "INITIALIZE UPDATE"),
        (None, "84 82 03 00 10", "EXTERNAL AUTHENTICATE"),
        (
            Some(GlobalPlatform),
            "80 F2 40 00 02 4F 00",
            "GET STATUS: applications and security domains",
        ),
        (Some(GlobalPlatform), "80 E6 0C 00 20", "INSTALL: for make selectable, install"),
        (Some(GlobalPlatform), "84 D8 00 81 48", "PUT KEY: key version 00"),
        // Bit 8: more of the keys follow.
        (Some(GlobalPlatform), "84 D8 B1 81 48", "PUT KEY: key version 31"),
        (
            Some(GlobalPlatform),
            "80 E6 7E 00",
            "INSTALL: for registry update, personalization, extradition, make selectable, install, \
             load",
        ),
        (
            Some(GlobalPlatform),
            "80 CB 00 00 02 9F 7F",
            "GET DATA: card production life cycle (CPLC)",
        ),
        (Some(GlobalPlatform), "80 CA 9F 7F 00", "GET DATA: card production life cycle (CPLC)"),
        (None, "00 CA 00 66 00", "GET DATA: Card Data"),
        (Some(GlobalPlatform), "80 E2 80 00 10", "STORE DATA"),
        (Some(OpenPgp), "00 CA 00 6E 00", "GET DATA: Application Related Data"),
        (Some(OpenPgp), "00 CA 5F 50 00", "GET DATA: Uniform resource locator"),
        (Some(OpenPgp), "00 DA 00 5B 01", "PUT DATA: Name"),
        (Some(OpenPgp), "00 20 00 81 06", "VERIFY: PW1 for signatures"),
        (Some(OpenPgp), "00 2A 9E 9A 33", "PERFORM SECURITY OPERATION: COMPUTE DIGITAL SIGNATURE"),
        (
            Some(OpenPgp),
            "00 47 81 00 02 B6 00 00",
            "GENERATE ASYMMETRIC KEY PAIR: read public key, signature",
        ),
        (
            Some(OpenPgp),
            "00 47 80 00 02 B8 00 00",
            "GENERATE ASYMMETRIC KEY PAIR: generate, decryption",
        ),
        (
            Some(OpenPgp),
            "00 47 80 00 02 A4 00 00",
            "GENERATE ASYMMETRIC KEY PAIR: generate, authentication",
        ),
        (Some(OpenPgp), "00 47 80 00", "GENERATE ASYMMETRIC KEY PAIR: generate"),
        (Some(OpenPgp), "00 20 00 82", "VERIFY: PW1, state only"),
        (Some(OpenPgp), "00 DB 3F FF 20", "PUT DATA: private key import"),
        (Some(Cac), "80 52 00 00 02 01 00", "READ BUFFER"),
        (Some(Benchmark), "80 50 00 00 00", "LOAD"),
        // The same bytes to an application of which nothing is known.
        (Some(Application::Other), "80 50 00 00 08", "proprietary command"),
        (Some(Application::Piv), "00 CA 00 6E 00", "GET DATA: data object 6E"),
    ];
    for (selected, command, expected) in cases {
        assert_eq!(said(command, selected), expected, "{command}");
    }
}

#[test]
fn what_can_carry_a_secret_is_marked() {
    let applications = [
        None,
        Some(Application::GlobalPlatform),
        Some(Application::Piv),
        Some(Application::OpenPgp),
    ];
    let always = ["20", "21", "24", "2C", "82", "86", "87", "DA", "DB", "D6", "C2", "2A"];
    for selected in applications {
        for instruction in always {
            let command = format!("00 {instruction} 00 80 08");
            assert!(describe(&bytes(&command), selected).secret, "{command} {selected:?}");
        }
    }
    let named = [
        (Some(Application::GlobalPlatform), "80 D8 01 81 10"),
        (Some(Application::GlobalPlatform), "80 E2 00 00 10"),
        (Some(Application::GlobalPlatform), "84 82 00 00 10"),
        (Some(Application::Piv), "00 FE 07 9A 10"),
        (Some(Application::Piv), "00 FF FF FF 1B"),
        (Some(Application::OpenPgp), "00 DB 3F FF 10"),
        (Some(Application::Benchmark), "80 30 01 00 10"),
        (Some(Application::Muscle), "B0 42 00 00 08"),
    ];
    for (selected, command) in named {
        assert!(describe(&bytes(command), selected).secret, "{command}");
    }
    for command in ["00 A4 04 00 05", "00 CB 3F FF 05", "00 B0 00 00 00", "00 C0 00 00 00"] {
        assert!(!describe(&bytes(command), Some(Application::Piv)).secret, "{command}");
    }
}

/// No PIN and no key becomes part of a name, whatever is sent.
#[test]
fn data_of_secret_commands_is_in_no_name() {
    for selected in
        [None, Some(Application::Piv), Some(Application::OpenPgp), Some(Application::Muscle)]
    {
        for (class, instruction) in
            [0x00, 0x80, 0xB0].iter().flat_map(|class| (0..=0xFF).map(move |ins| (*class, ins)))
        {
            let command =
                [&[class, instruction, 0x00, 0x80, 0x08][..], b"\x9712345\xFF\xFF"].concat();
            let described = describe(&command, selected);
            let text = format!("{}{:?}", described.name, described.object);
            let told = text.contains("12345") || text.contains("3132333435");
            assert!(!told || !described.secret, "{text}");
        }
    }
}

#[test]
fn an_interpreter_follows_what_is_selected() {
    let mut card = Interpreter::new();
    let mut say = |command: &str, status: u16| {
        let Described { name, object, .. } = card.exchange(&bytes(command), StatusWord(status));
        object.map_or(name.to_owned(), |object| format!("{name}: {object}"))
    };
    assert_eq!(say("80 50 00 00 08", 0x9000), "INITIALIZE UPDATE");
    assert_eq!(say("00 A4 04 00 06 D2 76 00 01 24 01 00", 0x6A82), "SELECT: OpenPGP D27600012401");
    assert_eq!(say("00 CA 00 7E 00", 0x6A88), "GET DATA: data object 7E");
    let piv = "00 A4 04 00 0B A0 00 00 03 08 00 00 10 00 01 00 00";
    assert_eq!(say(piv, 0x6114), "SELECT: PIV A000000308000010000100");
    assert_eq!(say("00 C0 00 00 14", 0x9000), "GET RESPONSE: PIV A000000308000010000100");
    let certificate = "X.509 Certificate for PIV Authentication (9A)";
    assert_eq!(say("00 CB 3F FF 05 5C 03 5F C1 05 00", 0x6100), format!("GET DATA: {certificate}"));
    assert_eq!(say("00 C0 00 00 00", 0x6132), format!("GET RESPONSE: {certificate}"));
    assert_eq!(say("00 C0 00 00 32", 0x9000), format!("GET RESPONSE: {certificate}"));
    assert_eq!(say("80 50 00 00 08", 0x6D00), "proprietary command");
    // A chain: only its first command names the object.
    let put = "PUT DATA: Card Holder Unique Identifier";
    assert_eq!(say("10 DB 3F FF 05 5C 03 5F C1 02", 0x9000), put);
    assert_eq!(say("10 DB 3F FF 05 5C 03 5F C1 07", 0x9000), put);
    assert_eq!(say("00 DB 3F FF 02 FE 00", 0x9000), put);
    assert_eq!(say("00 DB 3F FF 05 5C 03 5F C1 07", 0x9000), "PUT DATA: Card Capability Container");
    // Another channel has nothing selected yet.
    assert_eq!(say("81 50 00 00 08", 0x9000), "INITIALIZE UPDATE");
    assert_eq!(card.selected(), Some(Application::Piv));
    card.reset();
    assert_eq!(card.selected(), None);
}

/// As OpenSC finds a PIV card: it asks for the discovery object before it selects anything.
#[test]
fn what_only_piv_has_tells_that_it_is_selected() {
    let mut card = Interpreter::new();
    let mut say = |command: &str, status: u16| {
        card.exchange(&bytes(command), StatusWord(status)).object.unwrap_or_default()
    };
    assert_eq!(say("00 20 00 80", 0x63C3), "reference 80, state only");
    assert_eq!(say("00 CB 3F FF 03 5C 01 7E 08", 0x6A82), "Discovery Object");
    assert_eq!(say("00 20 00 80", 0x63C3), "reference 80, state only");
    assert_eq!(say("00 CB 3F FF 03 5C 01 7E 08", 0x610C), "Discovery Object");
    assert_eq!(say("00 20 00 80", 0x63C3), "PIV Card Application PIN, state only");
    // Another application's objects, and another command's, are not taken for PIV's.
    assert_eq!(said("00 CB 3F FE 05 5C 03 5F C1 02", None), "GET DATA: data object 5FC102");
    assert_eq!(
        said("00 CB 3F FF 0A 4D 08 70 06 BF 81 01 02 A0 80", None),
        "GET DATA: data object 4D"
    );
}

#[test]
fn a_file_is_what_was_selected() {
    let mut card = Interpreter::new();
    let mut object = |command: &str| card.exchange(&bytes(command), StatusWord::OK).object;
    object("00 A4 04 0C 0C A0 00 00 00 63 50 4B 43 53 2D 31 35");
    assert_eq!(object("00 B0 00 00 00"), None);
    object("00 A4 02 04 02 50 31 00");
    assert_eq!(object("00 B0 00 00 00").as_deref(), Some("file 5031"));
    assert_eq!(object("00 B0 01 00 00").as_deref(), Some("file 5031"));
    assert_eq!(object("00 B0 82 00 00").as_deref(), Some("short file 02"));
    object("00 A4 04 00 06 D2 76 00 01 24 01 00");
    assert_eq!(object("00 B0 00 00 00"), None);
}

#[test]
fn only_a_select_that_succeeds_changes_the_file() {
    let mut card = Interpreter::new();
    let mut object =
        |command: &str, status: u16| card.exchange(&bytes(command), StatusWord(status)).object;
    object("00 A4 00 0C 02 50 31", 0x9000);
    object("00 A4 00 0C 02 50 32", 0x6A82);
    // A4 of a proprietary class is no SELECT, and neither is another command that succeeds.
    object("80 A4 00 0C 02 50 33", 0x9000);
    object("00 CA 01 01 00", 0x9000);
    assert_eq!(object("00 B0 00 00 00", 0x9000).as_deref(), Some("file 5031"));
    assert_eq!(object("00 D6 00 00 01 00", 0x9000).as_deref(), Some("file 5031"));
    // What is not about files, and a proprietary command, say nothing of the file.
    assert_eq!(object("00 84 00 00 08", 0x9000), None);
    assert_eq!(object("80 B0 00 00 08", 0x9000), None);
    // The default application: nobody has said which.
    object("00 A4 04 00", 0x9000);
    assert_eq!(object("00 B0 00 00 00", 0x9000), None);
}

#[test]
fn the_default_application_may_be_any() {
    let mut card = Interpreter::new();
    card.exchange(&bytes("00 A4 04 00 05 A0 00 00 03 08"), StatusWord::OK);
    assert_eq!(card.selected(), Some(Application::Piv));
    card.exchange(&bytes("00 A4 04 00"), StatusWord::OK);
    assert_eq!(card.selected(), None);
}

/// ISO 7816-4, 5.4.1: classes 00 to 03 and 40 to 4F carry channels 0 to 3 and 4 to 19.
#[test]
fn each_logical_channel_has_its_own_application() {
    let channels: Vec<u8> = (0x00..=0x03).chain(0x40..=0x4F).collect();
    for own in &channels {
        let mut card = Interpreter::new();
        let select = [&[*own], &bytes("A4 04 00 05 A0 00 00 03 08")[..]].concat();
        card.exchange(&select, StatusWord::OK);
        assert_eq!(card.selected().is_some(), *own == 0, "{own:02X}");
        for class in &channels {
            let verify = [*class, 0x20, 0x00, 0x80, 0x08];
            let known = card.exchange(&verify, StatusWord::OK).object.unwrap();
            let expected = if class == own { "PIV Card Application PIN" } else { "reference 80" };
            assert_eq!(known, expected, "{class:02X} after a SELECT of class {own:02X}");
        }
    }
}

/// Chaining is a bit of the class (10), and goes on only with the same command.
#[test]
fn a_chain_goes_on_with_the_same_command() {
    let mut card = Interpreter::new();
    let mut object = |command: &str| card.exchange(&bytes(command), StatusWord::OK).object;
    object("00 A4 04 00 05 A0 00 00 03 08");
    object("10 DB 3F FF 05 5C 03 5F C1 02");
    // The chain was given up: this begins something else.
    assert_eq!(object("00 CB 3F FF 05 5C 03 5F C1 05").unwrap().split(' ').next(), Some("X.509"));
    // No chain: the second one has an object of its own.
    object("00 DB 3F FF 05 5C 03 5F C1 02");
    assert_eq!(
        object("00 DB 3F FF 05 5C 03 5F C1 07").as_deref(),
        Some("Card Capability Container")
    );
}

#[test]
fn an_extended_length_has_two_bytes_behind_a_zero() {
    let long = [&bytes("00 A4 04 00 00 01 00")[..], b"\xA0\x00\x00\x03\x08", &[0; 251]].concat();
    let selected = describe(&long, None).object.unwrap();
    assert!(selected.starts_with("application A000000308"), "{selected}");
    assert_eq!(selected.len(), "application ".len() + 2 * 0x100);
    // Of what stands behind the data nothing is taken for data.
    let with_le = bytes("00 A4 04 00 00 00 05 A0 00 00 03 08 00 00");
    assert_eq!(describe(&with_le, None).object.as_deref(), Some("PIV A000000308"));
}

#[test]
fn status_words_say_their_numbers() {
    let cases = [
        (0x9000, "done"),
        (0x611A, "26 bytes more"),
        (0x6100, "256 bytes more"),
        (0x6C01, "wrong Le, the right one is 1"),
        (0x63C2, "2 tries left"),
        (0x63C1, "1 try left"),
        (0x63C0, "no try left"),
        (0x6C00, "wrong Le, the right one is 256"),
        (0x6982, "security status not satisfied"),
        (0x6983, "authentication method blocked"),
        (0x6A82, "file, object or application not found"),
        (0x6D00, "instruction not supported"),
    ];
    for (status, text) in cases {
        assert_eq!(status_text(StatusWord(status)), text);
    }
}

/// The steps of every shipped suite, as they stand there: `{ name = "…", apdu = "…", data = "…"`.
#[test]
fn suites_use_the_same_names() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites");
    let mut suites = 0;
    let mut steps = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_str().unwrap().starts_with("card-") {
            continue;
        }
        suites += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let field = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!("{name} = \""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let application = text.lines().find(|line| line.starts_with("application = "));
        let aid = application.and_then(|line| field(line, "application"));
        let selected = aid.map(|aid| Application::by_aid(&bytes(&aid)));
        for line in text.lines() {
            let (Some(name), Some(apdu)) = (field(line, "name"), field(line, "apdu")) else {
                continue;
            };
            let data = field(line, "data").unwrap_or_default();
            let data = if data.contains('{') { "00 00".to_owned() } else { data };
            let mut command = bytes(&filled(&apdu));
            command.push(bytes(&data).len() as u8);
            command.extend(bytes(&data));
            assert_eq!(describe(&command, selected).name, name, "{}: {line}", path.display());
            steps += 1;
        }
    }
    assert!(suites >= 5 && steps > 150, "{suites} suites, {steps} steps");
}

/// A header with zeros for what differs from command to command: `{length:2}`, `{buffer}`.
fn filled(apdu: &str) -> String {
    let mut filled = String::new();
    let mut rest = apdu;
    while let Some((before, placeholder)) = rest.split_once('{') {
        let (placeholder, after) = placeholder.split_once('}').unwrap();
        filled.push_str(before);
        let width = placeholder.split_once(':').map_or(1, |(_, width)| width.parse().unwrap());
        filled.push_str(&"00 ".repeat(width));
        rest = after;
    }
    filled + rest
}

proptest::proptest! {
    #[test]
    fn any_bytes_have_a_name(
        command in proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..24),
        status: u16,
    ) {
        let mut card = Interpreter::new();
        for _ in 0..2 {
            assert!(!card.exchange(&command, StatusWord(status)).name.is_empty());
        }
    }
}
