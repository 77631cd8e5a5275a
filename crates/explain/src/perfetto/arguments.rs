//! What is told of a call beside its name. Of commands to cards: what they are called, never what
//! they carried.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use tapstone_apdu::StatusWord;
use tapstone_measure::units::Nanos;
use tapstone_names::apdu::{Described, status_text};
use tapstone_names::pkcs11::{FirstArgument, first_argument, mechanism_name, takes_mechanism};

use super::packets::Packets;
use super::proto::DebugAnnotation;
use super::system_calls::SystemCallSlice;
use crate::codes;
use crate::timeline::{CalledFunction, End, Family, Kind, Leaf, On, Span, Timeline};

type Arguments = Vec<DebugAnnotation>;

/// Of a call of PKCS#11, PC/SC or a driver, and the time that a fix put into it.
pub(super) fn of_span<W: Write>(
    to: &mut Packets<W>,
    timeline: &Timeline,
    span: &Span,
    injected: Option<Nanos>,
    commands: &[Described],
) -> Arguments {
    let call = timeline.call(span.call);
    let mut arguments = of_call(to, call);
    let result = codes::failure(timeline, span).unwrap_or_else(|| success(call.family).to_owned());
    arguments.push(to.text("result", &result));
    if let Some(name) = handle(call) {
        arguments.push(to.text(name, &format!("{:#x}", span.handle)));
    }
    if takes_mechanism(call.function) {
        let named = mechanism_name(span.detail).map(str::to_owned);
        let name = named.unwrap_or_else(|| format!("{:#010x}", span.detail));
        arguments.push(to.text("mechanism", &name));
    }
    if call.function == "SCardGetStatusChange" {
        arguments.push(to.number("time_limit_ms", span.detail));
    }
    if let Some(name) = made(call.function).filter(|_| span.made() != 0) {
        let text =
            if name == "objects" { span.made().to_string() } else { format!("{:#x}", span.made()) };
        arguments.push(to.text(name, &text));
    }
    if let Some(reader) = span.text() {
        arguments.push(to.text("reader", &String::from_utf8_lossy(timeline.text(reader))));
    }
    if let Some(id) = span.exchange() {
        let exchange = timeline.exchange(id);
        let described = &commands[id.0.index()];
        arguments.push(to.text("command", described.name));
        arguments.extend(described.object.as_ref().map(|object| to.text("object", object)));
        let header: String =
            exchange.command.iter().take(4).map(|byte| format!("{byte:02X}")).collect();
        arguments.push(to.text("header", &header));
        if exchange.status != 0 {
            let status = StatusWord(exchange.status);
            arguments.push(to.text("status", &format!("{status} {}", status_text(status))));
        }
        arguments.push(to.number("sent_bytes", exchange.sent.into()));
        arguments.push(to.number("received_bytes", exchange.received.into()));
    }
    if span.end_kind == End::Replaced {
        arguments.push(to.truth("answered_by_a_fix"));
    }
    if let Some(time) = injected {
        arguments.push(to.number("injected_ns", time.0));
    }
    arguments
}

/// Of a call of libc, or many.
pub(super) fn of_leaf<W: Write>(
    to: &mut Packets<W>,
    timeline: &Timeline,
    leaf: &Leaf,
) -> Arguments {
    let call = timeline.call(leaf.call);
    let mut arguments = of_call(to, call);
    if leaf.count > 1 {
        arguments.push(to.number("count", leaf.count.into()));
        arguments.push(to.number("summed_ns", leaf.time.0));
    }
    let Family::Libc(kind) = call.family else { return arguments };
    if let Some(text) = leaf.text.map(|id| timeline.text(id)) {
        let (name, text) = match kind {
            Kind::Connect => ("address", address(text)),
            Kind::Open | Kind::Stat => ("path", String::from_utf8_lossy(text).into_owned()),
            _ => ("name", String::from_utf8_lossy(text).into_owned()),
        };
        arguments.push(to.text(name, &text));
    }
    match kind {
        Kind::Sleep => arguments.push(to.number("asked_ns", leaf.b)),
        Kind::Poll if leaf.b != u64::MAX => arguments.push(to.number("time_limit_ns", leaf.b)),
        Kind::Read | Kind::Write => arguments.push(to.number("asked_bytes", leaf.b)),
        Kind::LookupNumber => arguments.push(to.number("number", leaf.a)),
        _ => {}
    }
    if matches!(kind, Kind::Poll | Kind::Close | Kind::Read | Kind::Write | Kind::Connect) {
        arguments.push(to.signed("descriptor", i64::from(leaf.a as i32)));
    }
    match kind {
        // The time of day says nothing here.
        Kind::Clock => {}
        _ if gives_pointer(call.function) => {
            arguments.push(to.text("result", if leaf.result == 0 { "null" } else { "found" }));
        }
        _ => arguments.push(to.signed("result", leaf.result)),
    }
    match leaf.on {
        On::Something => {}
        On::Service => arguments.push(to.text("on", "pcscd")),
        On::Terminal => arguments.push(to.text("on", "terminal")),
    }
    if leaf.replaced {
        arguments.push(to.truth("answered_by_a_fix"));
    }
    arguments
}

/// Of a system call. Of its arguments those that it has; pointers are only numbers.
pub(super) fn of_system_call<W: Write>(
    to: &mut Packets<W>,
    call: &SystemCallSlice<'_>,
) -> Arguments {
    let mut arguments = Vec::new();
    if let Some(object) = call.object {
        arguments.push(to.text("object", &String::from_utf8_lossy(object)));
    }
    let hex: Vec<String> = call.arguments.iter().map(|value| format!("{value:#x}")).collect();
    if !hex.is_empty() {
        arguments.push(to.list("arguments", hex.iter().map(String::as_str)));
    }
    match call.result {
        Some(result) => arguments.push(to.signed("result", result)),
        None => arguments.push(to.text("result", "never returned")),
    }
    if !call.stack.is_empty() {
        arguments.push(to.list("stack", call.stack.iter().map(String::as_str)));
    }
    if !call.slept {
        arguments.push(to.truth("duration_is_of_the_tracer"));
    }
    arguments
}

/// Who is called, and by whom.
fn of_call<W: Write>(to: &mut Packets<W>, call: &CalledFunction) -> Arguments {
    let mut arguments = Vec::new();
    // Functions of libc are all of one library.
    if !matches!(call.family, Family::Libc(_)) {
        arguments.push(to.text("module", &call.module));
    }
    let caller = if call.caller.is_empty() { "the program" } else { &call.caller };
    arguments.push(to.text("caller", caller));
    arguments
}

const fn success(family: Family) -> &'static str {
    match family {
        Family::Pkcs11 => "CKR_OK",
        Family::Pcsc => "SCARD_S_SUCCESS",
        Family::Driver => "IFD_SUCCESS",
        Family::Libc(_) => "0",
    }
}

/// What the first argument is; `None` when it is a pointer, or nothing that tells calls apart.
fn handle(call: &CalledFunction) -> Option<&'static str> {
    match (call.family, call.function) {
        (Family::Pkcs11, function) => match first_argument(function) {
            FirstArgument::Session => Some("session"),
            FirstArgument::Slot => Some("slot"),
            FirstArgument::Other => None,
        },
        (Family::Pcsc, "SCardEstablishContext") | (Family::Libc(_), _) => None,
        (
            Family::Pcsc,
            "SCardReleaseContext"
            | "SCardIsValidContext"
            | "SCardConnect"
            | "SCardGetStatusChange"
            | "SCardListReaderGroups"
            | "SCardListReaders"
            | "SCardFreeMemory"
            | "SCardCancel",
        ) => Some("context"),
        (Family::Pcsc, _) => Some("card"),
        (Family::Driver, _) => Some("reader_number"),
    }
}

/// What a call made.
fn made(function: &str) -> Option<&'static str> {
    Some(match function {
        "C_OpenSession" => "session",
        "C_FindObjects" => "objects",
        "SCardConnect" => "card",
        "SCardEstablishContext" => "context",
        _ => return None,
    })
}

/// Functions of libc whose result is an address, or none.
fn gives_pointer(function: &str) -> bool {
    let lookup = ["getproto", "getserv", "getpw", "getgr", "gethost"];
    matches!(function, "fopen" | "fopen64" | "opendir")
        || (lookup.iter().any(|name| function.starts_with(name)) && !function.ends_with("_r"))
}

/// A sockaddr as people write it; its beginning when it is cut off or of another kind.
fn address(bytes: &[u8]) -> String {
    let family = bytes.first_chunk().map(|family| u16::from_ne_bytes(*family));
    let port = || bytes.get(2..4).map(|port| u16::from_be_bytes([port[0], port[1]]));
    match family.map(i32::from) {
        Some(libc::AF_UNIX) => {
            let path = bytes[2..].strip_prefix(&[0]).map(|name| [b"@", name].concat());
            let path = path.unwrap_or_else(|| bytes[2..].to_vec());
            String::from_utf8_lossy(&path).trim_end_matches('\0').to_owned()
        }
        Some(libc::AF_INET) => match (port(), bytes.get(4..8)) {
            (Some(port), Some(ip)) => {
                format!("{}:{port}", Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]))
            }
            _ => "IPv4".to_owned(),
        },
        Some(libc::AF_INET6) => match (port(), bytes.get(8..24).and_then(|ip| ip.first_chunk())) {
            (Some(port), Some(ip)) => format!("[{}]:{port}", Ipv6Addr::from(*ip)),
            _ => "IPv6".to_owned(),
        },
        Some(family) => format!("address family {family}"),
        None => "no address".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_people_write_them() {
        assert_eq!(address(b"\x01\x00/run/pcscd/pcscd.comm\0\0\0"), "/run/pcscd/pcscd.comm");
        assert_eq!(address(b"\x01\x00\0abstract"), "@abstract");
        assert_eq!(address(b"\x02\x00\x8C\x7B\x7F\0\0\x01\0\0\0\0\0\0\0\0"), "127.0.0.1:35963");
        let ipv6 = [&[10, 0, 0, 80, 0, 0, 0, 0][..], &[0; 15], &[1, 0, 0, 0, 0]].concat();
        assert_eq!(address(&ipv6), "[::1]:80");
        assert_eq!(address(b"\x02\x00\x8C"), "IPv4");
        assert_eq!(address(b"\x01"), "no address");
        assert_eq!(address(b"\x10\x00abc"), "address family 16");
    }
}
