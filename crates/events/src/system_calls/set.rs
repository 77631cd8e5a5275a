//! Which system calls a program is stopped at.

use std::collections::BTreeSet;
use std::str::FromStr;

use thiserror::Error;

use super::table;

/// What opens, looks at, reads and closes files, connects, sends, receives and sleeps. Not `futex`
/// and `write`: some programs make millions of them, and each costs a stop.
const DEFAULT: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "read",
    "close",
    "connect",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "nanosleep",
    "clock_nanosleep",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
];

/// Names that resemble what was asked for this much are offered instead of it.
const ALIKE: f64 = 0.8;

/// A choice of system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCallSet {
    numbers: BTreeSet<u32>,
}

/// A choice that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemCallSetError {
    /// There is no such call.
    #[error("no system call is named \"{name}\"\nhint: {hint}", hint = hint(.alike))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant, the likeliest first.
        alike: Vec<&'static str>,
    },
    /// Nothing would be seen.
    #[error("no system call is chosen\nhint: name some, like \"default,+write,+fsync\"")]
    Empty,
}

impl SystemCallSet {
    /// Calls that open, look at, read and close files, connect, send, receive and sleep.
    #[must_use]
    pub fn default_set() -> Self {
        let known =
            DEFAULT.iter().map(|name| table::by_name(name).expect("these are in the table"));
        Self { numbers: known.map(|known| known.number).collect() }
    }

    /// With one more, if there is a call of that name.
    #[must_use]
    pub fn with(mut self, name: &str) -> Self {
        self.numbers.extend(table::by_name(name).map(|known| known.number));
        self
    }

    /// Whether a program is stopped at this call.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }

    /// The calls' names, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.numbers.iter().filter_map(|number| table::by_number(*number)).map(|known| known.name)
    }

    /// The calls' numbers, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().copied()
    }
}

impl FromStr for SystemCallSet {
    type Err = SystemCallSetError;

    /// Names with commas between them: `default`, a call's name, `+name` or `-name`. A text that
    /// begins with a sign changes the default.
    fn from_str(text: &str) -> Result<Self, SystemCallSetError> {
        let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty()).peekable();
        let begins_with_a_sign = words.peek().is_some_and(|word| word.starts_with(['+', '-']));
        let mut set = match begins_with_a_sign {
            true => Self::default_set(),
            false => Self { numbers: BTreeSet::new() },
        };
        for word in words {
            let (adds, name) = match word.strip_prefix('-') {
                Some(name) => (false, name),
                None => (true, word.strip_prefix('+').unwrap_or(word)),
            };
            let meant = named(name)?;
            match adds {
                true => set.numbers.extend(meant.numbers),
                false => set.numbers.retain(|number| !meant.numbers.contains(number)),
            }
        }
        if set.numbers.is_empty() { Err(SystemCallSetError::Empty) } else { Ok(set) }
    }
}

fn named(name: &str) -> Result<SystemCallSet, SystemCallSetError> {
    if name == "default" {
        return Ok(SystemCallSet::default_set());
    }
    match table::by_name(name) {
        Some(known) => Ok(SystemCallSet { numbers: BTreeSet::from([known.number]) }),
        None => Err(SystemCallSetError::Unknown { name: name.to_owned(), alike: alike(name) }),
    }
}

fn alike(wanted: &str) -> Vec<&'static str> {
    let names = table::all().iter().map(|known| known.name);
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

fn hint(alike: &[&str]) -> String {
    match alike {
        [] => "syscalls(2) lists the names; those of Linux on x86-64 are known".to_owned(),
        alike => format!("did you mean {}?", alike.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        SystemCallSet::from_str(text).unwrap().names().collect()
    }

    #[test]
    fn names_are_added_and_taken_away() {
        let default = SystemCallSet::default_set();
        assert_eq!(SystemCallSet::from_str("default"), Ok(default.clone()));
        assert_eq!(names("read"), ["read"]);
        assert_eq!(names("close, read"), ["read", "close"]);
        let more = SystemCallSet::from_str("default,+write,+fsync").unwrap();
        assert_eq!(more.names().count(), default.names().count() + 2);
        assert_eq!(SystemCallSet::from_str("+write,+fsync"), Ok(more));
        let fewer = SystemCallSet::from_str("-poll").unwrap();
        assert_eq!(fewer.names().count(), default.names().count() - 1);
        assert!(default.contains(libc::SYS_poll as u32));
        assert!(!fewer.contains(libc::SYS_poll as u32));
        let few = SystemCallSet::from_str("close,read").unwrap().with("write").with("no such call");
        let numbers =
            [libc::SYS_read, libc::SYS_write, libc::SYS_close].map(|number| number as u32);
        assert!(few.numbers().eq(numbers), "ascending");
    }

    #[test]
    fn what_is_not_a_call_is_refused_with_what_may_have_been_meant() {
        let error = SystemCallSet::from_str("default,+opennat").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("no system call is named \"opennat\""), "{text}");
        assert!(text.contains("hint: did you mean openat"), "{text}");
        assert!(SystemCallSet::from_str("+zzzz").unwrap_err().to_string().contains("syscalls(2)"));
        assert_eq!(SystemCallSet::from_str(""), Err(SystemCallSetError::Empty));
        assert_eq!(SystemCallSet::from_str("read,-read"), Err(SystemCallSetError::Empty));
    }
}
