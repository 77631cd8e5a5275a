//! What a command is called, and what it is about: by ISO 7816-4, -8 and -9, GlobalPlatform, PIV
//! (SP 800-73-5), the OpenPGP card and PC/SC part 3.
//!
//! The same bytes mean different things to different applications, so a name depends on which one
//! is selected: an [`Interpreter`] follows that. A command may be cut off behind its header; it
//! then has a name, and an object as far as the header tells. Names are never made from data, but
//! for those that say which object is meant: an AID, a file identifier, a tag.

mod application;
mod bench;
mod cac;
mod global_platform;
mod interpreter;
mod iso;
mod openpgp;
mod piv;
mod reader;
mod view;

use std::borrow::Cow;

pub use self::application::Application;
pub use self::interpreter::Interpreter;
use self::view::View;
use tapstone_apdu::StatusWord;

/// A command in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name, as its specification spells it; `proprietary command` and `unknown command` where
    /// none does.
    pub name: &'static str,
    /// What it is about: a data object, a file, an application, a key.
    pub object: Option<String>,
    /// Its data can be a PIN, a key, or made from one, and must not be shown. True unless it is
    /// known that they cannot.
    pub secret: bool,
}

impl Described {
    fn from_name(Name { name, secret }: Name, object: Option<String>) -> Self {
        Self { name, object, secret }
    }
}

/// A name of a table.
#[derive(Clone, Copy)]
struct Name {
    name: &'static str,
    secret: bool,
}

/// A command whose data are harmless.
const fn open(name: &'static str) -> Name {
    Name { name, secret: false }
}

/// A command that can carry a secret.
const fn secret(name: &'static str) -> Name {
    Name { name, secret: true }
}

/// What a command is called while an application is selected; `None`: which is not known, as after
/// a reset, when most cards have their issuer's security domain selected.
#[must_use]
pub fn describe(command: &[u8], selected: Option<Application>) -> Described {
    let Some(view) = View::parse(command) else {
        return Described::from_name(secret("unknown command"), None);
    };
    if view.class == 0xFF {
        return reader::describe(&view);
    }
    let known = if view.is_proprietary() {
        match selected {
            None | Some(Application::GlobalPlatform) => global_platform::describe(&view),
            Some(Application::Cac) => cac::describe(&view),
            Some(Application::Benchmark) => bench::describe(&view),
            Some(_) => None,
        }
    } else {
        let own = match selected {
            Some(Application::Piv) => piv::describe(&view),
            Some(Application::OpenPgp) => openpgp::describe(&view),
            None => piv::describe_data(&view).or_else(|| global_platform::describe_data(&view)),
            Some(Application::GlobalPlatform) => global_platform::describe_data(&view),
            Some(_) => None,
        };
        own.or_else(|| iso::describe(&view))
    };
    known.unwrap_or_else(|| {
        let name = if view.is_proprietary() { "proprietary command" } else { "unknown command" };
        Described::from_name(secret(name), None)
    })
}

/// A status word in words, with the number that it carries: `26 bytes more`, `2 tries left`.
#[must_use]
pub fn status_text(status: StatusWord) -> Cow<'static, str> {
    let counted = |count: usize, one: &str, more: &str| match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    if let Some(bytes) = status.bytes_to_fetch() {
        return format!("{} more", counted(bytes, "byte", "bytes")).into();
    }
    if let Some(bytes) = status.exact_length() {
        return format!("wrong Le, the right one is {bytes}").into();
    }
    match status.tries() {
        // 6983 has no counter: it says that the method is blocked.
        Some(tries) if status != StatusWord::BLOCKED => {
            format!("{} left", counted(tries.into(), "try", "tries")).into()
        }
        _ => status.meaning().into(),
    }
}

/// Bytes as hexadecimal text, two digits a byte.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests;
