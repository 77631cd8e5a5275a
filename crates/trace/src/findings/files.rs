//! System calls on files as detectors take them: what, which file, and who wanted it.

use tapstone_measure::units::Nanos;
use tapstone_record as record;

use crate::probe;

/// A system call on a file.
#[derive(Clone, Copy, Debug)]
pub struct FileCall<'a> {
    /// An index into [`Timeline::threads`](crate::timeline::Timeline::threads).
    pub thread: usize,
    /// Its beginning.
    pub start: Nanos,
    /// Its end.
    pub end: Nanos,
    /// Its name as in syscalls(2).
    pub call: &'a str,
    /// The file, also where the call was given a descriptor.
    pub path: &'a [u8],
    /// Who made it.
    pub origin: Origin<'a>,
}

/// Where a system call came from: the function nearest to the program, and its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin<'a> {
    /// The last function of a library, seen from the inside.
    pub function: &'a str,
    /// That library.
    pub module: &'a str,
    /// The function of the program that called it; the program's file when it has no name; empty
    /// on a thread that the library began.
    pub caller: &'a str,
}

impl<'a> Origin<'a> {
    /// From a stack: file and function, the innermost first. `None` when no library is in it that
    /// has names, as in a program that makes the call itself.
    #[must_use]
    pub fn of(stack: &[(&'a str, Option<&'a str>)], program: &str) -> Option<Self> {
        // The probe stands between a caller and what it calls.
        let stack: Vec<_> =
            stack.iter().copied().filter(|(file, _)| *file != probe::FILE).collect();
        let libraries = match stack.iter().position(|(file, _)| *file == program) {
            Some(end) => &stack[..end],
            // The thread began in the library that makes system calls: that is nobody's caller.
            None => {
                let (first, _) = stack.first()?;
                let end = stack.iter().rposition(|(file, _)| file != first)?;
                &stack[..=end]
            }
        };
        let named = |&(module, function): &(&'a str, Option<&'a str>)| Some((module, function?));
        let (module, function) = libraries.iter().rev().find_map(named)?;
        let caller = stack.get(libraries.len()).filter(|(file, _)| *file == program);
        let caller = caller.map_or("", |(file, function)| function.unwrap_or(file));
        Some(Self { function, module, caller })
    }

    /// As it stands in a record.
    #[must_use]
    pub fn record(&self) -> record::Origin {
        record::Origin {
            function: self.function.to_owned(),
            module: self.module.to_owned(),
            caller: (!self.caller.is_empty()).then(|| self.caller.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_nearest_to_the_program_is_named() {
        let stack = [
            ("libc.so.6", Some("openat64")),
            ("libc.so.6", None),
            ("libc.so.6", Some("getprotobynumber")),
            ("probe.so", Some("tapstone_call")),
            ("filter", Some("filter_packet")),
            ("filter", Some("main")),
            ("libc.so.6", Some("__libc_start_main")),
        ];
        let origin = Origin::of(&stack, "filter").unwrap();
        let named = ("getprotobynumber", "libc.so.6", "filter_packet");
        assert_eq!((origin.function, origin.module, origin.caller), named);
    }

    #[test]
    fn a_program_without_names_is_called_by_its_file() {
        let stack = [("libc.so.6", Some("open64")), ("libx.so", Some("x_load")), ("prog", None)];
        let origin = Origin::of(&stack, "prog").unwrap();
        assert_eq!((origin.function, origin.caller), ("x_load", "prog"));
    }

    #[test]
    fn a_thread_of_a_library_has_no_caller() {
        let stack = [
            ("libc.so.6", Some("open64")),
            ("libx.so", Some("x_load")),
            ("libc.so.6", Some("start_thread")),
        ];
        let origin = Origin::of(&stack, "prog").unwrap();
        assert_eq!((origin.function, origin.caller), ("x_load", ""));
    }

    #[test]
    fn a_program_that_needs_no_library_has_no_origin() {
        assert_eq!(Origin::of(&[("prog", Some("main"))], "prog"), None);
        assert_eq!(Origin::of(&[("libc.so.6", Some("clone3"))], "prog"), None);
        assert_eq!(Origin::of(&[], "prog"), None);
    }
}
