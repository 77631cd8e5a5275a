//! What the Java Card applet answers, answered by this one with the same bytes.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use serde::Deserialize;
use tapstone_vcard::{BenchApplet, VirtualCard};

#[derive(Deserialize)]
struct Exchange {
    note: String,
    command: String,
    response: String,
}

/// Each file is for an applet that was just installed.
fn replay(file: &str, text: &str) {
    let exchanges: Vec<Exchange> = serde_json::from_str(text).unwrap();
    assert!(!exchanges.is_empty(), "{file} has no exchange");
    let mut card = VirtualCard::new().with("bench", Box::new(BenchApplet::default()));
    for (place, exchange) in exchanges.iter().enumerate() {
        let answer = card.transmit(&hex::decode(&exchange.command).unwrap()).unwrap();
        let answered = hex::encode_upper(answer.response);
        let Exchange { note, command, response } = exchange;
        assert_eq!(&answered, response, "{file}, {place}: {note}\n{command}");
    }
}

macro_rules! vectors {
    ($($name:ident),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let file = concat!(stringify!($name), ".json");
            replay(file, include_str!(concat!("../../../applet/vectors/", stringify!($name), ".json")));
        }
    )+};
}

vectors!(buffers, refused, decrypt, programs, machine, repeat);
