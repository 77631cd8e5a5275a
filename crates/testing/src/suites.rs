//! Suites as nobody would write them, but somebody may: with commands that cost something, in
//! chains and envelopes, on other channels, with bytes that the card brings.

use std::fmt::Write;

use crate::counting_card::Random;

/// A suite of random steps, from a seed. Most of its commands are dangerous, some are not, so that
/// runs come far.
#[must_use]
pub fn random_suite(seed: u64) -> String {
    let random = &mut Random::new(seed);
    let mut text = String::from("title = \"random\"\n");
    const APPLICATIONS: [&str; 5] = [
        "A0 00 00 03 08 00 00 10 00 01 00",
        "D2 76 00 01 24 01",
        "F0 54 41 50 53 54 4F 4E 45 01",
        "A0 00 00 01 51 00 00 00",
        "F0 53 4F 4D 45 4F 4E 45",
    ];
    if random.chance(70) {
        let _ = writeln!(text, "application = \"{}\"", random.one(&APPLICATIONS));
    }
    if random.chance(80) {
        text.push_str("pin_bytes = 8\n");
    }
    text.push_str("[values]\nbyte = \"20\"\nguess = \"313233343536FFFF\"\n");
    if random.chance(40) {
        let _ = writeln!(text, "[[prepare]]\nname = \"group\"\nsteps = [");
        steps(&mut text, random);
        text.push_str("]\n");
        if random.chance(30) {
            text.push_str("writes = \"something\"\n");
        }
        if random.chance(40) {
            text.push_str("clean_up = [");
            steps(&mut text, random);
            text.push_str("]\n");
        }
    }
    let has_group = text.contains("[[prepare]]");
    for number in 0..1 + random.below(3) {
        let _ = writeln!(text, "[[test]]\nname = \"card.random{number}\"\ntitle = \"random\"");
        if has_group && random.chance(60) {
            text.push_str("needs = [\"group\"]\n");
        } else if !has_group && random.chance(10) {
            text.push_str("cold = true\n");
        }
        if random.chance(50) {
            text.push_str("writes = \"something\"\n");
        }
        text.push_str("input = { make = \"random\", bytes = 8 }\n");
        for list in ["before", "measure", "after"] {
            if list == "measure" || random.chance(30) {
                let _ = writeln!(text, "{list} = [");
                steps(&mut text, random);
                text.push_str("]\n");
            }
        }
    }
    text
}

fn steps(text: &mut String, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        step(text, random);
    }
}

fn step(text: &mut String, random: &mut Random) {
    const HARMLESS: [&str; 9] = [
        "A4 04 00", "CB 3F FF", "B0 00 00", "84 00 00", "CA 00 C4", "20 00 80", "20 00 81",
        "87 07 9A", "12 00 00",
    ];
    const COSTLY: [&str; 25] = [
        "20 00 80", "20 00 00", "20 00 81", "20 00 83", "20 00 FF", "21 00 80", "24 00 80",
        "25 00 80", "2C 00 80", "26 00 80", "28 00 80", "82 00 9B", "83 00 00", "87 03 9B",
        "86 00 00", "22 C1 A4", "C2 00 00", "50 00 00", "FB 00 00", "FE 00 00", "2E 00 00",
        "70 00 01", "70 00 00", "A5 00 00", "C3 00 00",
    ];
    const WRITING: [&str; 30] = [
        "D6 00 00", "DB 3F FF", "DA 00 6E", "47 00 9A", "E4 00 00", "D8 00 00", "30 01 00",
        "44 00 00", "D9 00 00", "DA 00 00", "DB 00 00", "DC 00 00", "DD 00 00", "DE 00 00",
        "DF 00 00", "E0 00 00", "E1 00 00", "E2 00 00", "E3 00 00", "E5 00 00", "E6 00 00",
        "E7 00 00", "E8 00 00", "E9 00 00", "EA 00 00", "EB 00 00", "EC 00 00", "ED 00 00",
        "EE 00 00", "22 F2 01",
    ];
    const PATCHED: [&str; 4] = ["{saved} 00 80", "{byte} 00 80", "20 00 {saved}", "87 03 {saved}"];
    const CLASSES: [&str; 23] = [
        "00", "00", "00", "00", "00", "00", "00", "00", "00", "00", "00", "00", "00", "10", "01",
        "80", "0C", "84", "40", "FF", "A0", "B0", "90",
    ];
    const DATA: [&str; 10] = [
        "{pin}",
        "{guess}",
        "{guess}",
        "{saved}",
        "{input}",
        "31",
        "A0 00 00 03 08 00 00 10 00 01 00",
        "5C 03 5F C1 05",
        "00 20 00 80 08 {pin}",
        "00 20 00 80 08 {guess}",
    ];
    let instruction = match random.below(100) {
        0..70 => *random.one(&HARMLESS),
        70..76 => *random.one(&COSTLY),
        76..84 => *random.one(&WRITING),
        _ if text.contains("\"saved\"") => *random.one(&PATCHED),
        _ => "B0 00 00",
    };
    // A VERIFY as its authors write it comes often, so that PINs are given too.
    let plain = random.chance(25);
    let (class, instruction, data) = match plain {
        true => ("00", "20 00 80", Some("{pin}")),
        false => {
            let mut data = random.chance(40).then(|| *random.one(&DATA));
            if data == Some("{saved}") && !text.contains("\"saved\"") {
                data = None;
            }
            (*random.one(&CLASSES), instruction, data)
        }
    };
    let _ = write!(text, "  {{ name = \"STEP\", apdu = \"{class} {instruction}\"");
    if let Some(data) = data {
        let _ = write!(text, ", data = \"{data}\"");
    }
    if !plain {
        for (percent, field) in [
            (25, ", le = 256"),
            (5, ", le = 8"),
            (10, ", chain = true"),
            (5, ", chunk = 4"),
            (5, ", extended = true"),
            (35, ", effect = \"read\""),
            (5, ", effect = \"something\""),
        ] {
            // Two of one name would be no suite at all.
            let name = field.split('=').next().unwrap_or_default();
            let last = text.rfind('{').map_or("", |at| &text[at..]);
            if random.chance(percent) && !last.contains(name) {
                text.push_str(field);
            }
        }
    }
    if random.chance(30) {
        text.push_str(", save = \"saved\"");
    }
    text.push_str(", expect = [] },\n");
}
