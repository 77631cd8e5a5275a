//! What keeps a command from being run again: a PIN that was refused, and what it writes.
//!
//! Thirty rounds with a wrong PIN would block a card in the third, and thirty rounds of a command
//! that makes a key would leave thirty keys.

use tapstone_token::rv::Rv;

use crate::timeline::{Exchange, Family, Span, Timeline};

/// A PIN that was refused, as a sentence; `None` when there was none.
#[must_use]
pub fn refused_pin(timeline: &Timeline) -> Option<String> {
    let spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    spans.filter_map(|span| refused(timeline, span)).next()
}

fn refused(timeline: &Timeline, span: &Span) -> Option<String> {
    let call = timeline.call(span.call);
    match call.family {
        Family::Pkcs11 => {
            let rv = Rv(span.result);
            let login = matches!(call.function, "C_Login" | "C_LoginUser");
            let refused = rv.is_pin() || (login && span.result != 0 && !is_harmless(rv));
            refused.then(|| format!("{} returned {rv}", call.function))
        }
        Family::Pcsc | Family::Driver => {
            let exchange = timeline.exchange(span.exchange?);
            let name = pin_command(exchange)?;
            let status = exchange.status;
            // 63Cx: x tries are left; 6300: a wrong one without a count; 6983: blocked
            // (ISO 7816-4, 5.6). A VERIFY without data asks for the count and changes nothing.
            let asks = exchange.sent <= 5;
            let refused = status >> 4 == 0x63C || status == 0x6300 || status == 0x6983;
            (refused && !asks).then(|| format!("{name} was answered with {status:04X}"))
        }
        Family::Libc(_) => None,
    }
}

/// C_Login that has nothing to do with the PIN.
fn is_harmless(rv: Rv) -> bool {
    rv.name() == Some("CKR_USER_ALREADY_LOGGED_IN")
}

fn pin_command(exchange: &Exchange) -> Option<&'static str> {
    match exchange.command.get(1)? {
        0x20 | 0x21 => Some("VERIFY"),
        0x24 => Some("CHANGE REFERENCE DATA"),
        0x2C => Some("RESET RETRY COUNTER"),
        _ => None,
    }
}

/// What a command was seen to write, as names of calls and commands, each once.
#[must_use]
pub fn writes(timeline: &Timeline) -> Vec<String> {
    let spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    let mut seen: Vec<String> = spans.filter_map(|span| written(timeline, span)).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

fn written(timeline: &Timeline, span: &Span) -> Option<String> {
    let call = timeline.call(span.call);
    let name = match call.family {
        // Session objects are gone with the session; those with CKA_TOKEN stay.
        Family::Pkcs11 if makes_objects(call.function) && !span.on_token => return None,
        Family::Pkcs11 if makes_objects(call.function) || changes_token(call.function) => {
            call.function
        }
        Family::Pcsc | Family::Driver => written_by(timeline.exchange(span.exchange?))?,
        _ => return None,
    };
    Some(name.to_owned())
}

fn makes_objects(function: &str) -> bool {
    matches!(
        function,
        "C_CreateObject"
            | "C_CopyObject"
            | "C_GenerateKey"
            | "C_GenerateKeyPair"
            | "C_UnwrapKey"
            | "C_UnwrapKeyAuthenticated"
            | "C_DeriveKey"
            | "C_EncapsulateKey"
            | "C_DecapsulateKey"
    )
}

/// Whatever they are given, it may be on the token.
fn changes_token(function: &str) -> bool {
    matches!(
        function,
        "C_DestroyObject" | "C_SetAttributeValue" | "C_InitToken" | "C_InitPIN" | "C_SetPIN"
    )
}

/// Commands that change what is on a card: ISO 7816-4, 7816-8, 7816-9 and GlobalPlatform.
fn written_by(exchange: &Exchange) -> Option<&'static str> {
    let (class, instruction) = (exchange.command.first()?, exchange.command.get(1)?);
    Some(match instruction {
        0x0E | 0x0F => "ERASE BINARY",
        0x24 => "CHANGE REFERENCE DATA",
        0x2C => "RESET RETRY COUNTER",
        0x46 | 0x47 => "GENERATE ASYMMETRIC KEY PAIR",
        0xD0..=0xD2 => "WRITE",
        0xD6 | 0xD7 => "UPDATE BINARY",
        0xD8 => "PUT KEY",
        0xDA | 0xDB => "PUT DATA",
        0xDC | 0xDD => "UPDATE RECORD",
        0xE0 => "CREATE FILE",
        0xE2 if class & 0x80 != 0 => "STORE DATA",
        0xE2 => "APPEND RECORD",
        0xE4 => "DELETE",
        0xE6 => "INSTALL",
        0xE8 => "LOAD",
        0xF0 if class & 0x80 != 0 => "SET STATUS",
        _ => return None,
    })
}
