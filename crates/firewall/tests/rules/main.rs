//! Every rule, with its near miss that has to pass.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod effects;
mod pins;
mod selection;

use tapstone_apdu::{CommandApdu, StatusWord};
use tapstone_firewall::{CardContext, Declared, Effect, Firewall, Permissions, Why};
use tapstone_names::apdu::{Application, describe};

const PIN: [u8; 8] = *b"123456\xFF\xFF";
const PIV: &[u8] = b"\xA0\x00\x00\x03\x08\x00\x00\x10\x00\x01\x00";
const OPENPGP: &[u8] = b"\xD2\x76\x00\x01\x24\x01";
const BENCHMARK: &[u8] = b"\xF0TAPSTONE\x01";
const FOREIGN: &[u8] = b"\xF0SOMETHING";

/// A context in which an application was selected.
fn within(aid: &[u8]) -> CardContext {
    let mut context = CardContext::default();
    if !aid.is_empty() {
        context.sent(&CommandApdu::select(aid).encode());
        context.answered(StatusWord::OK);
    }
    context
}

fn effect(context: &CardContext, hex: &str) -> Result<Effect, Why> {
    context.effect(&bytes(hex))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[track_caller]
fn all(aid: &[u8], expected: Effect, commands: &[&str]) {
    let context = within(aid);
    for command in commands {
        assert_eq!(effect(&context, command), Ok(expected), "{command}");
    }
}

#[track_caller]
fn never(aid: &[u8], expected: Why, commands: &[&str]) {
    let context = within(aid);
    for command in commands {
        assert_eq!(effect(&context, command), Err(expected), "{command}");
    }
}

/// Of a known selection the benchmark applet's WRITE is known, else it is CHANGE REFERENCE DATA.
fn knows(context: &CardContext, class: &str) -> bool {
    effect(context, &format!("{class} 24 00 00 01 31")) == Ok(Effect::Reads)
}

fn exchanged(context: &mut CardContext, hex: &str, status: u16) {
    context.sent(&bytes(hex));
    context.answered(StatusWord(status));
}

fn with_pin() -> Firewall {
    Firewall::new(Permissions::default().with_pin(&PIN))
}

/// Sends a command that is expected to pass.
#[track_caller]
fn passes(firewall: &mut Firewall, command: &[u8], status: u16) {
    firewall.clear(command, Declared::Nothing).unwrap();
    firewall.answered(StatusWord(status), &[]);
}

#[track_caller]
fn refused(firewall: &mut Firewall, command: &[u8]) -> Why {
    firewall.clear(command, Declared::Nothing).unwrap_err().why
}

fn verify(reference: u8, pin: &[u8]) -> Vec<u8> {
    CommandApdu::new(0, 0x20, 0, reference).with_data(pin).encode()
}

const ASKS: &[u8] = &[0, 0x20, 0, 0x80];
