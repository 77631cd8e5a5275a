//! Why a program could not be watched, in words, and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// What keeps the probe out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blind {
    /// It has no dynamic linker.
    Static(PathBuf),
    /// The dynamic linker drops the probe for the sake of whoever's rights it has.
    Setuid(PathBuf),
    /// It is not for x86-64.
    OtherMachine(PathBuf),
    /// Its dynamic linker is not glibc's.
    OtherLinker(PathBuf, PathBuf),
    /// It has too little address space.
    Limited(PathBuf),
    /// Its C library is too old.
    Outdated(PathBuf),
    /// The probe runs in it, and found no room in the file of events to say so.
    NoRoom(PathBuf),
    /// All seems well, but the probe did not run: the program, and the folder of the probe's files.
    Unknown(PathBuf, PathBuf),
}

impl Blind {
    /// The same where system calls are observed already: that is no advice then.
    #[must_use]
    pub fn beside_system_calls(&self) -> String {
        format!("{}\nhint: {}", self.why(), self.advice())
    }

    fn why(&self) -> String {
        match self {
            Self::Static(path) => format!(
                "{} is linked statically: there is no dynamic linker that could show its calls",
                path.display()
            ),
            Self::Setuid(path) => format!(
                "{} has the setuid or setgid bit: the dynamic linker lets nobody watch it",
                path.display()
            ),
            Self::OtherMachine(path) => format!(
                "{} is not a program for x86-64: the probe cannot be loaded into it, nor into what it \
                 starts",
                path.display()
            ),
            Self::OtherLinker(path, linker) => format!(
                "{} uses the dynamic linker {}, which does not know auditors",
                path.display(),
                linker.display()
            ),
            Self::Limited(path) => format!(
                "{} may use too little address space (RLIMIT_AS, ulimit -v) for the probe beside it",
                path.display()
            ),
            Self::Outdated(path) => format!(
                "the glibc of {} does not ask auditors about all symbols: it is older than 2.35",
                path.display()
            ),
            Self::NoRoom(path) => format!(
                "{} began when the file of events had no room left: what it did is not here",
                path.display()
            ),
            Self::Unknown(path, folder) => format!(
                "the probe did not run in {}: a sandbox may keep it from files of {}, or it runs \
                 as another user",
                path.display(),
                folder.display()
            ),
        }
    }

    fn advice(&self) -> String {
        let advice = match self {
            Self::Static(_) => "for calls of libraries, build it dynamically",
            Self::Setuid(path) => {
                let path = path.display();
                return format!(
                    "trace a copy without that bit: cp {path} /tmp/copy && tapstone trace -- \
                     /tmp/copy …"
                );
            }
            Self::OtherMachine(_) => "trace a build of it for x86-64",
            Self::OtherLinker(..) => "trace a build of it for glibc 2.35 or later",
            Self::Limited(_) => "ulimit -v unlimited, or at least 40000",
            Self::Outdated(_) => "trace on a newer system",
            Self::NoRoom(_) => "--events-size makes room for more",
            Self::Unknown(..) => "trace it outside, as the user that it runs as",
        };
        advice.to_owned()
    }

    /// Whether `--syscalls` would show more.
    const fn has_system_calls(&self) -> bool {
        matches!(self, Self::Static(_) | Self::Outdated(_) | Self::Unknown(..))
    }
}

impl fmt::Display for Blind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.beside_system_calls())?;
        if self.has_system_calls() {
            f.write_str("; tapstone trace --syscalls needs no probe")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--syscalls` needs no probe; it is no advice where ptrace(2) does not go either.
    #[test]
    fn each_reason_says_what_to_do() {
        let program = || PathBuf::from("/opt/p");
        let other = || PathBuf::from("/lib/l");
        for (blind, why, advice, syscalls) in [
            (Blind::Static(program()), "is linked statically", "build it dynamically", true),
            (Blind::Setuid(program()), "setuid", "cp /opt/p /tmp/copy", false),
            (Blind::OtherMachine(program()), "not a program for x86-64", "a build", false),
            (Blind::OtherLinker(program(), other()), "linker /lib/l", "glibc 2.35", false),
            (Blind::Limited(program()), "address space", "ulimit -v unlimited", false),
            (Blind::Outdated(program()), "older than 2.35", "on a newer system", true),
            (Blind::NoRoom(program()), "no room left", "--events-size", false),
            (Blind::Unknown(program(), other()), "files of /lib/l", "trace it outside", true),
        ] {
            let text = blind.to_string();
            let (said, hint) = text.split_once("\nhint: ").unwrap();
            assert!(said.contains("/opt/p") && said.contains(why), "{text}");
            assert!(hint.contains(advice), "{text}");
            assert_eq!(hint.ends_with("; tapstone trace --syscalls needs no probe"), syscalls);
            assert!(!blind.beside_system_calls().contains("--syscalls"), "{text}");
        }
    }
}
