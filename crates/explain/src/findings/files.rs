//! System calls on files as detectors take them: what, which file, and who wanted it.

use tapstone_measure::units::Nanos;
use tapstone_record as record;

use tapstone_events::PROBE_FILE;

/// A system call on a file.
#[derive(Clone, Copy, Debug)]
pub struct FileCall<'a> {
    /// An index into [`Timeline::threads`](crate::timeline::Timeline::threads).
    pub thread: usize,
    /// When the call began, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When the call returned, on CLOCK_MONOTONIC.
    pub end: Nanos,
    /// Its name as in syscalls(2).
    pub call: &'a str,
    /// The file, also where the call was given a descriptor.
    pub path: &'a [u8],
    /// The code that made the call, by its stack.
    pub origin: CallOrigin<'a>,
}

/// Where a system call came from: the function nearest to the program, and its caller. Where the
/// program has left the stack to a library (its `main` ends in a call of that, as Python's does),
/// all it does would come from what starts programs: then it is the innermost function outside of
/// the system's libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallOrigin<'a> {
    /// The last function of a library, seen from the inside.
    pub function: &'a str,
    /// The file name of that library.
    pub module: &'a str,
    /// The function of the program that called it; the program's file when it has no name; empty
    /// on a thread that the library began.
    pub caller: &'a str,
}

impl<'a> CallOrigin<'a> {
    /// From a stack: file and function, the innermost first. `None` when no library is in it that
    /// has names, as in a program that makes the call itself.
    #[must_use]
    pub fn of_stack(stack: &[(&'a str, Option<&'a str>)], program: &str) -> Option<Self> {
        // The probe stands between a caller and what it calls.
        let stack: Vec<_> = stack.iter().copied().filter(|(file, _)| *file != PROBE_FILE).collect();
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
        let caller = stack.get(libraries.len()).filter(|(file, _)| *file == program);
        if caller.is_some() && libraries.last().is_some_and(starts_programs) {
            let mut others = libraries.iter().filter(|(file, _)| !is_of_the_system(file));
            let (module, function) = others.find_map(named)?;
            return Some(Self { function, module, caller: caller?.0 });
        }
        let (module, function) = libraries.iter().rev().find_map(named)?;
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

/// What calls `main`: libc's `__libc_start_main`, and on top of it since glibc 2.34 a function
/// without a name. Its own caller is the program's `_start`, so nothing of the program lies inside.
fn starts_programs((file, function): &(&str, Option<&str>)) -> bool {
    *file == LIBC && function.is_some_and(|function| function.starts_with("__libc_start_"))
}

fn is_of_the_system(file: &str) -> bool {
    file == LIBC || file.starts_with("ld-linux")
}

const LIBC: &str = "libc.so.6";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_nearest_to_the_program_is_named() {
        let stack = [
            ("libc.so.6", Some("openat64")),
            ("libc.so.6", None),
            ("libc.so.6", Some("getprotobynumber")),
            (PROBE_FILE, Some("tapstone_call")),
            ("filter", Some("filter_packet")),
            ("filter", Some("main")),
            ("libc.so.6", Some("__libc_start_main")),
        ];
        let origin = CallOrigin::of_stack(&stack, "filter").unwrap();
        let named = ("getprotobynumber", "libc.so.6", "filter_packet");
        assert_eq!((origin.function, origin.module, origin.caller), named);
    }

    #[test]
    fn a_program_without_names_is_called_by_its_file() {
        let stack = [("libc.so.6", Some("open64")), ("libx.so", Some("x_load")), ("prog", None)];
        let origin = CallOrigin::of_stack(&stack, "prog").unwrap();
        assert_eq!((origin.function, origin.caller), ("x_load", "prog"));
    }

    #[test]
    fn a_program_that_left_the_stack_to_a_library_is_not_all_one_place() {
        let start = [
            ("libpython3.11.so.1.0", Some("Py_BytesMain")),
            ("libc.so.6", None),
            ("libc.so.6", Some("__libc_start_main")),
            ("python3.11", Some("_start")),
        ];
        let origin = |inner: &[_]| CallOrigin::of_stack(&[inner, &start].concat(), "python3.11");
        let open = [("libc.so.6", Some("open64")), ("libpython3.11.so.1.0", Some("_Py_open"))];
        let named = ("_Py_open", "libpython3.11.so.1.0", "python3.11");
        let opened = origin(&open).unwrap();
        assert_eq!((opened.function, opened.module, opened.caller), named);
        // The dynamic linker looks for what that library asked it for.
        let load = [
            ("ld-linux-x86-64.so.2", None),
            ("libc.so.6", Some("dlopen")),
            ("libpython3.11.so.1.0", Some("_PyImport_LoadDynamicModule")),
        ];
        assert_eq!(origin(&load).unwrap().function, "_PyImport_LoadDynamicModule");
        // What libc does before or after `main` nobody asked for.
        let exit = [("libc.so.6", Some("write")), ("libc.so.6", Some("exit")), start[2], start[3]];
        assert_eq!(CallOrigin::of_stack(&exit, "python3.11"), None);
    }

    #[test]
    fn a_thread_of_a_library_has_no_caller() {
        let stack = [
            ("libc.so.6", Some("open64")),
            ("libx.so", Some("x_load")),
            ("libc.so.6", Some("start_thread")),
        ];
        let origin = CallOrigin::of_stack(&stack, "prog").unwrap();
        assert_eq!((origin.function, origin.caller), ("x_load", ""));
    }

    #[test]
    fn a_program_that_needs_no_library_has_no_origin() {
        assert_eq!(CallOrigin::of_stack(&[("prog", Some("main"))], "prog"), None);
        assert_eq!(CallOrigin::of_stack(&[("libc.so.6", Some("clone3"))], "prog"), None);
        assert_eq!(CallOrigin::of_stack(&[], "prog"), None);
    }
}
