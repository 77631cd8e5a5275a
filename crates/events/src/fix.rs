//! Fixes, as a user writes them: `no-sleep:SCardEndTransaction`, `delay:C_Sign=1ms..10ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use tapstone_measure::units::Nanos;
use thiserror::Error;

use tapstone_probe_core::functions::{FUNCTIONS, Family, Kind};

/// A function that the probe watches, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WatchedFunction(u16);

impl WatchedFunction {
    /// The function of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        FUNCTIONS.iter().position(|function| function.name == name).map(|at| Self(at as u16))
    }

    /// Its name, as its library exports it.
    #[must_use]
    pub fn name(self) -> &'static str {
        FUNCTIONS[usize::from(self.0)].name
    }

    fn family(self) -> Family {
        FUNCTIONS[usize::from(self.0)].family
    }
}

impl fmt::Debug for WatchedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the waits are that a fix is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsIn {
    /// In any call of a library that is watched.
    AnyCall,
    /// In this one.
    Call(WatchedFunction),
    /// In the program itself; sleeps only on a thread that has called such a library before.
    Program,
}

impl WaitsIn {
    /// As a fix names the program itself.
    pub const PROGRAM: &str = "program";
}

/// A change to a program that stays as it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// `delay:FUNCTION=LOW..HIGH`: the function returns so much later.
    Delay {
        /// The function that is delayed.
        function: WatchedFunction,
        /// The shortest delay of a call.
        low: Nanos,
        /// The longest delay; equal to the shortest for a fixed one.
        high: Nanos,
    },
    /// `no-sleep[:FUNCTION]`, `no-sleep:program`: sleeps there return at once.
    NoSleep(WaitsIn),
    /// `no-busy-wait[:FUNCTION]`: the clock hurries while the function spins;
    /// `no-busy-wait:program`: who asks in vain waits in between.
    NoBusyWait(WaitsIn),
    /// `memoise:FUNCTION`: the lookup's first answer is given again.
    Memoise(WatchedFunction),
    /// `cache-apdu`: a reading command's first answer is given again.
    CacheApdu,
    /// `cache-find`: what a search for objects found is given again.
    CacheFind,
    /// `cache-attributes`: what was read of an object's public attributes is given again.
    CacheAttributes,
    /// `keep-login`: a login stays over C_Logout, for the next C_Login with the same PIN.
    KeepLogin,
    /// `keep-session`: a session stays over C_CloseSession, for the next C_OpenSession.
    KeepSession,
    /// `whole-read`: a length probe reads all there is.
    WholeRead,
    /// `tcp-nodelay`: small segments do not wait for an acknowledgement.
    TcpNodelay,
}

/// The names of all fixes, as their usage shows them.
const USAGE: [&str; 13] = [
    "no-sleep[:FUNCTION]",
    "no-sleep:program",
    "no-busy-wait[:FUNCTION]",
    "no-busy-wait:program",
    "memoise:FUNCTION",
    "cache-apdu",
    "cache-find",
    "cache-attributes",
    "keep-login",
    "keep-session",
    "whole-read",
    "tcp-nodelay",
    "delay:FUNCTION=1ms..10ms",
];

/// Why a text is no fix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FixError {
    /// There is none of that name.
    #[error("there is no fix \"{0}\"\nhint: fixes are {list}", list = USAGE.join(", "))]
    Unknown(String),
    /// The probe does not watch such a function.
    #[error(
        "{fix}: no function \"{function}\" is watched{}\nhint: {}", did_you_mean(.near.as_deref()),
        "PKCS#11 (C_…), PC/SC (SCard…), reader drivers (IFDH…) and some of libc are"
    )]
    Function {
        /// The fix as it was written.
        fix: String,
        /// What was asked for.
        function: String,
        /// One that is spelled almost so.
        near: Option<String>,
    },
    /// It needs one, or takes none.
    #[error("{fix} {why}\nhint: write it as {usage}")]
    Shape {
        /// The fix as it was written.
        fix: String,
        /// What is wrong with its value, as a clause.
        why: &'static str,
        /// As it should be.
        usage: &'static str,
    },
    /// The function cannot be memoised.
    #[error(
        "memoise: the answers of {0} cannot be copied: their layout is not known\n\
         hint: memoise takes {list}, and those with _r", list = MEMOISABLE.join(", ")
    )]
    NotMemoisable(String),
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// Lookups whose answers the probe can copy, each also with `_r` behind it.
const MEMOISABLE: [&str; 8] = [
    "getprotobyname",
    "getprotobynumber",
    "getservbyname",
    "getservbyport",
    "getpwnam",
    "getpwuid",
    "getgrnam",
    "getgrgid",
];

impl Fix {
    /// Its name without what it is about.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delay { .. } => "delay",
            Self::NoSleep(_) => "no-sleep",
            Self::NoBusyWait(_) => "no-busy-wait",
            Self::Memoise(_) => "memoise",
            Self::CacheApdu => "cache-apdu",
            Self::CacheFind => "cache-find",
            Self::CacheAttributes => "cache-attributes",
            Self::KeepLogin => "keep-login",
            Self::KeepSession => "keep-session",
            Self::WholeRead => "whole-read",
            Self::TcpNodelay => "tcp-nodelay",
        }
    }

    /// Whether it does what another one would: one without a function does it for all.
    #[must_use]
    pub fn does(&self, other: &Self) -> bool {
        match self {
            Self::NoSleep(WaitsIn::AnyCall) => {
                matches!(other, Self::NoSleep(WaitsIn::AnyCall | WaitsIn::Call(_)))
            }
            Self::NoBusyWait(WaitsIn::AnyCall) => {
                matches!(other, Self::NoBusyWait(WaitsIn::AnyCall | WaitsIn::Call(_)))
            }
            _ => self == other,
        }
    }

    /// What else it changes than what it is for.
    #[must_use]
    pub const fn caution(&self) -> Option<&'static str> {
        match self {
            Self::NoSleep(_) => Some("a loop that tries again a number of times gives up earlier"),
            Self::NoBusyWait(WaitsIn::Program) => {
                Some("what the loop does between its questions comes up to a millisecond later")
            }
            Self::NoBusyWait(_) => {
                Some("inside the call that spins, other time limits become shorter too")
            }
            Self::CacheApdu => {
                Some("a card that another program changes meanwhile is not read again")
            }
            Self::CacheFind => {
                Some("objects that another program makes or removes meanwhile are not noticed")
            }
            Self::CacheAttributes => {
                Some("attributes that another program changes meanwhile are not noticed")
            }
            Self::KeepLogin => Some(
                "the token stays logged in between, until another call could notice or the program \
                 ends",
            ),
            Self::KeepSession => Some(
                "closed sessions stay open on the token, until another call could notice or the \
                 program ends",
            ),
            Self::Memoise(_) => Some("a change of the database is not seen while the program runs"),
            Self::Delay { .. } | Self::WholeRead | Self::TcpNodelay => None,
        }
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Delay { function, low, high } => {
                let text = |time: &Nanos| time.to_string().replace(' ', "");
                write!(f, ":{}={}..{}", function.name(), text(low), text(high))
            }
            Self::NoSleep(WaitsIn::Program) | Self::NoBusyWait(WaitsIn::Program) => {
                write!(f, ":{}", WaitsIn::PROGRAM)
            }
            Self::NoSleep(WaitsIn::Call(function))
            | Self::NoBusyWait(WaitsIn::Call(function))
            | Self::Memoise(function) => write!(f, ":{}", function.name()),
            _ => Ok(()),
        }
    }
}

impl FromStr for Fix {
    type Err = FixError;

    fn from_str(text: &str) -> Result<Self, FixError> {
        let (name, about) = match text.split_once(':') {
            Some((name, about)) => (name, Some(about)),
            None => (text, None),
        };
        let shape = |why| {
            let usage = USAGE.iter().find(|usage| usage.starts_with(name)).unwrap_or(&"");
            FixError::Shape { fix: name.to_owned(), why, usage }
        };
        let function = |function: &str| watched(name, function);
        let waits_in = || match about {
            None => Ok(WaitsIn::AnyCall),
            Some(WaitsIn::PROGRAM) => Ok(WaitsIn::Program),
            Some(name) => function(name).map(WaitsIn::Call),
        };
        let needed = || about.ok_or_else(|| shape("needs a function"));
        let plain = |fix| if about.is_none() { Ok(fix) } else { Err(shape("takes no function")) };
        match name {
            "delay" => {
                let (about, times) =
                    needed()?.split_once('=').ok_or_else(|| shape("needs a time"))?;
                let (low, high) = range(times).ok_or_else(|| shape("needs a time, or a range"))?;
                Ok(Self::Delay { function: function(about)?, low, high })
            }
            "no-sleep" => Ok(Self::NoSleep(waits_in()?)),
            "no-busy-wait" => Ok(Self::NoBusyWait(waits_in()?)),
            "memoise" => {
                let function = function(needed()?)?;
                let plain = function.name().strip_suffix("_r").unwrap_or(function.name());
                if !MEMOISABLE.contains(&plain) {
                    return Err(FixError::NotMemoisable(function.name().to_owned()));
                }
                Ok(Self::Memoise(function))
            }
            "cache-apdu" => plain(Self::CacheApdu),
            "cache-find" => plain(Self::CacheFind),
            "cache-attributes" => plain(Self::CacheAttributes),
            "keep-login" => plain(Self::KeepLogin),
            "keep-session" => plain(Self::KeepSession),
            "whole-read" => plain(Self::WholeRead),
            "tcp-nodelay" => plain(Self::TcpNodelay),
            _ => Err(FixError::Unknown(text.to_owned())),
        }
    }
}

/// A function that calls can be changed in: not a libc call, but for lookups.
fn watched(fix: &str, name: &str) -> Result<WatchedFunction, FixError> {
    let fits = |watched: &WatchedFunction| match watched.family() {
        Family::Libc(kind) => {
            fix == "memoise" && matches!(kind, Kind::LookupName | Kind::LookupNumber)
        }
        _ => fix != "memoise",
    };
    if let Some(watched) = WatchedFunction::named(name).filter(fits) {
        return Ok(watched);
    }
    let candidates = (0..FUNCTIONS.len()).map(|at| WatchedFunction(at as u16)).filter(fits);
    let closest = candidates
        .map(|watched| (strsim::jaro_winkler(watched.name(), name), watched.name()))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let near = closest.filter(|(likeness, _)| *likeness > 0.85).map(|(_, name)| name.to_owned());
    Err(FixError::Function { fix: fix.to_owned(), function: name.to_owned(), near })
}

/// Reads a delay or a range of delays: `10ms`, or `1ms..10ms`.
fn range(text: &str) -> Option<(Nanos, Nanos)> {
    let time = |text: &str| {
        let time: SignedDuration = text.parse().ok()?;
        Some(Nanos::from(Duration::try_from(time).ok()?))
    };
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let low = time(low)?;
    let high = time(high)?;
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_shows() {
        for text in [
            "no-sleep",
            "no-sleep:SCardEndTransaction",
            "no-sleep:program",
            "memoise:getpwnam_r",
            "no-busy-wait:program",
            "no-busy-wait:SCardGetStatusChange",
            "memoise:getprotobynumber",
            "cache-apdu",
            "cache-find",
            "cache-attributes",
            "keep-login",
            "keep-session",
            "whole-read",
            "tcp-nodelay",
        ] {
            assert_eq!(text.parse::<Fix>().unwrap().to_string(), text);
        }
        let delay: Fix = "delay:C_Sign=1ms..10ms".parse().unwrap();
        assert_eq!(delay.to_string().parse(), Ok(delay.clone()));
        let Fix::Delay { low, high, .. } = delay else { panic!("{delay}") };
        assert_eq!((low, high), (Nanos::from_millis(1), Nanos::from_millis(10)));
        let function = WatchedFunction::named("C_Sign").unwrap();
        assert_eq!(format!("{function:?}"), "C_Sign");
    }

    #[test]
    fn a_name_that_resembles_none_gets_no_proposal() {
        let error = "no-sleep:x".parse::<Fix>().unwrap_err();
        assert!(matches!(error, FixError::Function { near: None, .. }), "{error}");
    }

    #[test]
    fn a_fix_without_a_function_is_for_all_functions() {
        let fix = |text: &str| text.parse::<Fix>().unwrap();
        for (one, other, does) in [
            ("no-sleep", "no-sleep:C_Sign", true),
            ("no-sleep", "no-sleep", true),
            ("no-sleep", "no-sleep:program", false),
            ("no-sleep:program", "no-sleep:program", true),
            ("no-sleep:C_Sign", "no-sleep", false),
            ("no-sleep:C_Sign", "no-sleep:C_Sign", true),
            ("no-sleep:C_Sign", "no-sleep:C_Verify", false),
            ("no-sleep", "no-busy-wait", false),
            ("no-busy-wait", "no-busy-wait:C_Sign", true),
            ("no-busy-wait", "no-sleep", false),
            ("no-busy-wait", "no-busy-wait:program", false),
            ("no-busy-wait:C_Sign", "no-busy-wait", false),
            ("cache-apdu", "cache-apdu", true),
            ("cache-apdu", "whole-read", false),
        ] {
            assert_eq!(fix(one).does(&fix(other)), does, "{one} for {other}");
        }
    }

    #[test]
    fn fixes_that_change_more_than_they_are_for_say_so() {
        for (text, caution) in [
            ("no-sleep", Some("gives up earlier")),
            ("no-busy-wait", Some("time limits become shorter")),
            ("no-busy-wait:program", Some("a millisecond later")),
            ("cache-apdu", Some("not read again")),
            ("cache-find", Some("not noticed")),
            ("cache-attributes", Some("not noticed")),
            ("keep-login", Some("stays logged in")),
            ("keep-session", Some("stay open")),
            ("memoise:getpwnam", Some("a change of the database")),
            ("delay:C_Sign=1ms", None),
            ("whole-read", None),
            ("tcp-nodelay", None),
        ] {
            let said = text.parse::<Fix>().unwrap().caution();
            assert_eq!(said.is_some(), caution.is_some(), "{text}: {said:?}");
            assert!(said.unwrap_or_default().contains(caution.unwrap_or_default()), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, says) in [
            ("nosleep", "there is no fix \"nosleep\""),
            ("no-sleep:SCardEndTransactions", "did you mean SCardEndTransaction?"),
            ("memoise", "memoise needs a function"),
            ("memoise:C_Sign", "no function \"C_Sign\""),
            ("memoise:getaddrinfo", "cannot be copied"),
            ("memoise:getprotobynam", "did you mean getprotobyname?"),
            ("no-sleep:getpwnam", "no function \"getpwnam\" is watched"),
            ("memoise:nanosleep", "no function \"nanosleep\" is watched"),
            ("cache-apdu:C_Sign", "takes no function"),
            ("delay:C_Sign", "needs a time"),
            ("delay:C_Sign=10ms..1ms", "needs a time"),
            ("delay:C_Sign=soon", "needs a time"),
        ] {
            let error = text.parse::<Fix>().unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("\nhint: "), "{text}: {error}");
        }
    }
}
