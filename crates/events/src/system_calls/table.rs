//! What Linux's system calls on x86-64 are called, and what their arguments are.

use std::sync::OnceLock;

/// One system call of the kernel's table, with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCall {
    /// Its number, as `orig_rax` holds it on x86-64.
    pub number: u32,
    /// As in the kernel's table.
    pub name: &'static str,
    /// The registers beyond these hold whatever was in them, a key perhaps: they are never kept.
    pub arguments: usize,
    /// What it works on.
    pub operand: Operand,
    /// It can sleep for as long as its caller asked, or another program takes.
    pub waits: bool,
}

/// Which argument says what a call works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Nothing with a name.
    Nothing,
    /// Argument 0 points to a path.
    Path,
    /// Argument 0 is a directory's descriptor, argument 1 points to a path.
    PathAt,
    /// Argument 0 is a descriptor.
    Descriptor,
    /// Argument 0 is a socket, argument 1 points to an address of argument 2 bytes.
    Address,
    /// Argument 0 points to argument 1 `struct pollfd`.
    Polled,
}

/// All of them, in the order of their numbers.
#[must_use]
pub fn all() -> &'static [KnownCall] {
    static TABLE: OnceLock<Vec<KnownCall>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("x86_64.tsv").lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| parse(line).expect("the table is tested")).collect()
    })
}

/// The call of this number, if it is known.
#[must_use]
pub fn by_number(number: u32) -> Option<&'static KnownCall> {
    let place = all().binary_search_by_key(&number, |known| known.number).ok()?;
    Some(&all()[place])
}

/// The call of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static KnownCall> {
    all().iter().find(|known| known.name == name)
}

fn parse(line: &'static str) -> Option<KnownCall> {
    let mut columns = line.split('\t');
    Some(KnownCall {
        number: columns.next()?.parse().ok()?,
        name: columns.next()?,
        arguments: columns.next()?.parse().ok()?,
        operand: match columns.next()? {
            "-" => Operand::Nothing,
            "path" => Operand::Path,
            "at" => Operand::PathAt,
            "descriptor" => Operand::Descriptor,
            "address" => Operand::Address,
            "polled" => Operand::Polled,
            _ => return None,
        },
        waits: columns.next()? == "waits",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_in_order() {
        let lines = include_str!("x86_64.tsv").lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let known = parse(line).unwrap_or_else(|| panic!("{line:?}"));
            assert!(known.arguments <= 6, "{line:?}");
        }
        assert!(all().is_sorted_by(|a, b| a.number < b.number));
        for (name, number) in [
            ("read", libc::SYS_read),
            ("sched_yield", libc::SYS_sched_yield),
            ("openat", libc::SYS_openat),
            ("clock_nanosleep", libc::SYS_clock_nanosleep),
            ("epoll_pwait2", libc::SYS_epoll_pwait2),
            ("faccessat2", libc::SYS_faccessat2),
        ] {
            assert_eq!(by_name(name).map(|known| i64::from(known.number)), Some(number), "{name}");
            assert_eq!(by_number(number as u32).map(|known| known.name), Some(name));
        }
        assert_eq!(by_number(9_999), None);
    }
}
