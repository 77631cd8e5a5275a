//! The tables as pages: a change of one shows here, to be held against its standard.

use std::fmt::Write as _;

use super::*;

/// One line for each instruction that has a name: what is read of it, and whether it hides its data.
fn instructions(class: u8, p1: u8, p2: u8, selected: Option<Application>) -> String {
    let unnamed = ["unknown command", "proprietary command", "command to the reader"];
    let mut page = String::new();
    for instruction in 0..=0xFF {
        let described = describe(&[class, instruction, p1, p2], selected);
        if unnamed.contains(&described.name) {
            assert!(described.secret, "{instruction:02X}: what has no name can carry anything");
            continue;
        }
        let secret = if described.secret { " (secret)" } else { "" };
        let object = described.object.map_or(String::new(), |object| format!(": {object}"));
        writeln!(page, "{instruction:02X} {}{object}{secret}", described.name).unwrap();
    }
    page
}

/// One line for each of these commands that is about something with a name of its own.
fn objects(
    selected: Application,
    unnamed: &str,
    commands: impl Iterator<Item = (u32, Vec<u8>)>,
) -> String {
    let mut page = String::new();
    for (number, command) in commands {
        match describe(&command, Some(selected)).object {
            Some(object) if !object.starts_with(unnamed) => {
                writeln!(page, "{number:02X} {object}").unwrap();
            }
            _ => {}
        }
    }
    page
}

/// Commands of this header, with each value of one of its bytes.
fn each(header: [u8; 4], at: usize) -> impl Iterator<Item = (u32, Vec<u8>)> {
    (0..=0xFF).map(move |value: u8| {
        let mut command = header.to_vec();
        command[at] = value;
        (value.into(), command)
    })
}

#[test]
fn instructions_of_iso_7816() {
    insta::assert_snapshot!(instructions(0x00, 0, 0, Some(Application::Other)));
}

/// Without what is the same in ISO 7816-4.
#[test]
fn instructions_of_applications_and_readers() {
    use Application::{Benchmark, Cac, GlobalPlatform, OpenPgp, Piv};
    let mut page = String::new();
    for (title, selected, class, p1, p2) in [
        ("GlobalPlatform", GlobalPlatform, 0x80, 0, 0),
        ("Common Access Card", Cac, 0x80, 0, 0),
        ("Benchmark applet", Benchmark, 0x80, 1, 2),
        ("Reader", Application::Other, 0xFF, 0, 0),
        ("OpenPGP card", OpenPgp, 0x00, 0, 0),
        ("PIV", Piv, 0x00, 0x3F, 0xFF),
    ] {
        let iso = instructions(class, p1, p2, Some(Application::Other));
        let all = instructions(class, p1, p2, Some(selected));
        // Readers have no application: theirs is a class of its own.
        let own = all.lines().filter(|line| class == 0xFF || iso.lines().all(|it| it != *line));
        writeln!(page, "{title}\n{}\n", own.collect::<Vec<_>>().join("\n")).unwrap();
    }
    insta::assert_snapshot!(page);
}

#[test]
fn data_objects() {
    let by_parameters = |class: u8| {
        (0..=0xFFFF_u32).map(move |tag| {
            let [high, low] = (tag as u16).to_be_bytes();
            (tag, vec![class, 0xCA, high, low])
        })
    };
    let in_tag_list = (0x5F_0000..=0x5F_FFFF).map(|tag: u32| {
        let [_, tag @ ..] = tag.to_be_bytes();
        let list = [&[0x00, 0xCB, 0x3F, 0xFF, 0x05, 0x5C, 0x03], &tag[..]].concat();
        (u32::from_be_bytes([0, tag[0], tag[1], tag[2]]), list)
    });
    let unnamed = "data object ";
    insta::assert_snapshot!(format!(
        "GlobalPlatform\n{}\nOpenPGP card\n{}\nPIV\n{}",
        objects(Application::GlobalPlatform, unnamed, by_parameters(0x80)),
        objects(Application::OpenPgp, unnamed, by_parameters(0x00)),
        objects(Application::Piv, unnamed, in_tag_list),
    ));
}

#[test]
fn keys_algorithms_and_passwords() {
    use Application::{GlobalPlatform, OpenPgp, Other, Piv};
    let operations = (0..=0xFFFF_u16).map(|parameters| {
        let [high, low] = parameters.to_be_bytes();
        (parameters.into(), vec![0x00, 0x2A, high, low])
    });
    // The high half of P1 says for which uses: 4, for verification, encipherment and the like.
    let environments =
        each([0x00, 0x22, 0x00, 0x00], 2).filter(|(uses_and_action, _)| uses_and_action >> 4 == 4);
    let pages = [
        ("PIV keys", objects(Piv, "key ", each([0x00, 0x47, 0x00, 0x00], 3))),
        ("PIV algorithms", objects(Piv, "algorithm ", each([0x00, 0x87, 0x00, 0x00], 2))),
        ("PIV passwords", objects(Piv, "reference ", each([0x00, 0x24, 0x00, 0x00], 3))),
        ("OpenPGP passwords", objects(OpenPgp, "reference ", each([0x00, 0x24, 0x00, 0x00], 3))),
        ("OpenPGP resets", objects(OpenPgp, "reference ", each([0x00, 0x2C, 0x00, 0x00], 3))),
        ("PERFORM SECURITY OPERATION", objects(Other, "\0", operations)),
        ("MANAGE SECURITY ENVIRONMENT", objects(Other, "\0", environments)),
        ("GET STATUS", objects(GlobalPlatform, "\0", each([0x80, 0xF2, 0x00, 0x00], 2))),
    ];
    let mut page = String::new();
    for (title, lines) in pages {
        writeln!(page, "{title}\n{lines}").unwrap();
    }
    insta::assert_snapshot!(page);
}
