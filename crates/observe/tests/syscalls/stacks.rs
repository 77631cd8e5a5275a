//! Stacks name the functions that made a call.

use std::fs;
use std::path::Path;
use std::process::Command as Plain;

use tapstone_command::command::Command;
use tapstone_command::run::Exit;
use tapstone_events::system_calls::{Observed, SystemCall};

use crate::support::{calls, compile, file_of_its_own, fixture, name, observed, of_fixture};

/// The functions of a call's stack that have a name, the innermost first.
fn functions(seen: &Observed, call: &SystemCall) -> Vec<String> {
    let frames = seen.stacks.frames(call.stack);
    let named = frames.filter_map(|frame| {
        let function = frame.function.as_ref()?;
        Some(format!("{} {function}", frame.module))
    });
    named.collect()
}

/// Whether the second comes after the first, with nothing of the same file between them.
fn calls_follow(functions: &[String], callee: &str, caller: &str) -> bool {
    functions.windows(2).any(|pair| pair[0].ends_with(callee) && pair[1].ends_with(caller))
}

#[test]
fn a_lookup_and_its_caller_come_out_by_name() {
    const PACKETS: usize = 50;
    let command = of_fixture(&["protocols", &PACKETS.to_string()]);
    let (seen, outcome) = observed(&command, "openat,read,close");
    assert_eq!(outcome.exit, Exit::Code(0), "{outcome:?}");
    for call in ["openat", "read", "close"] {
        let of_lookups = calls(&seen, call).filter(|call| {
            name(&seen, call).as_deref() == Some("/etc/protocols")
                && calls_follow(&functions(&seen, call), " getprotobynumber", " look_up_protocol")
        });
        let of_lookups: Vec<SystemCall> = of_lookups.collect();
        assert_eq!(of_lookups.len() % PACKETS, 0, "{call}: {}", of_lookups.len());
        assert!(of_lookups.len() >= PACKETS, "{call}: {}", of_lookups.len());
        let mut stacks: Vec<_> = of_lookups.iter().map(|call| call.stack).collect();
        stacks.sort_unstable();
        stacks.dedup();
        assert!(stacks.len() < 10, "{call}: equal stacks are one: {}", stacks.len());
    }
}

#[test]
fn a_stack_leads_to_the_beginning_of_its_thread() {
    let (_directory, path) = file_of_its_own();
    let (seen, _) = observed(&of_fixture(&["opens", "1", &path]), "openat");
    let call = calls(&seen, "openat").find(|call| name(&seen, call).as_deref() == Some(&path));
    let found = functions(&seen, &call.unwrap());
    // `opens` may have become a part of `main`.
    let place = found.iter().position(|function| function == "fixture open_many").unwrap();
    assert!(found[0].starts_with("libc.so.6 "), "{found:?}");
    assert!(place < 4, "{found:?}");
    assert_eq!(found.last().unwrap(), "fixture _start", "{found:?}");
    let (seen, _) = observed(&of_fixture(&["threads", "1", "1", &path]), "openat");
    let call = calls(&seen, "openat").find(|call| name(&seen, call).as_deref() == Some(&path));
    let found = functions(&seen, &call.unwrap());
    assert!(calls_follow(&found, " open_many", " thread_opens"), "{found:?}");
    assert!(!found.contains(&"fixture main".to_owned()), "{found:?}");
}

#[test]
fn programs_linked_in_other_ways_have_names_too() {
    let (_directory, path) = file_of_its_own();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/syscalls/fixture.c");
    for (program, flags) in [
        ("fixture-static", &["-O2", "-pthread", "-static"][..]),
        ("fixture-fixed", &["-O2", "-pthread", "-no-pie", "-fno-pie"][..]),
        // Code and what is only read are in one segment.
        ("fixture-dense", &["-O2", "-pthread", "-Wl,-z,noseparate-code"][..]),
    ] {
        let program = compile(&source, program, flags);
        let words = [program.as_os_str().to_owned(), "opens".into(), "3".into(), (&path).into()];
        let (seen, outcome) = observed(&Command::from_words(words).unwrap(), "openat");
        assert_eq!(outcome.exit, Exit::Code(0));
        let opens =
            calls(&seen, "openat").filter(|call| name(&seen, call).as_deref() == Some(&path));
        let opens: Vec<Vec<String>> = opens.map(|call| functions(&seen, &call)).collect();
        assert_eq!(opens.len(), 3);
        for found in opens {
            assert!(found.iter().any(|function| function.ends_with(" open_many")), "{found:?}");
            assert!(found.last().unwrap().ends_with(" _start"), "{found:?}");
        }
    }
}

/// By Rust's own linker, code begins in the middle of a page of the file.
#[test]
fn a_program_in_rust_has_names() {
    let program = std::env::current_exe().unwrap();
    let words = [program.into_os_string(), "--list".into()];
    let (seen, outcome) = observed(&Command::from_words(words).unwrap(), "write");
    assert_eq!(outcome.exit, Exit::Code(0));
    let found = functions(&seen, &calls(&seen, "write").next().unwrap());
    assert!(found.last().unwrap().ends_with(" _start"), "{found:?}");
    assert!(found.iter().any(|function| function.ends_with(" main")), "{found:?}");
}

#[test]
fn a_stripped_program_has_addresses_and_no_wrong_names() {
    let (directory, path) = file_of_its_own();
    let stripped = directory.path().join("stripped");
    fs::copy(fixture(), &stripped).unwrap();
    let strip = Plain::new("strip").arg(&stripped).status().unwrap();
    assert!(strip.success());
    let words = [stripped.as_os_str().to_owned(), "opens".into(), "1".into(), (&path).into()];
    let (seen, _) = observed(&Command::from_words(words).unwrap(), "openat");
    let call = calls(&seen, "openat").find(|call| name(&seen, call).as_deref() == Some(&path));
    let frames: Vec<_> = seen.stacks.frames(call.unwrap().stack).collect();
    let own: Vec<_> = frames.iter().filter(|frame| &*frame.module == "stripped").collect();
    assert!(own.len() >= 3, "open_many, main and _start: {frames:?}");
    assert!(own.iter().all(|frame| frame.function.is_none()), "{own:?}");
    let symbols = Plain::new("nm").arg(fixture()).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let open_many = symbols.lines().find(|line| line.ends_with(" open_many")).unwrap();
    let open_many = u64::from_str_radix(open_many.split(' ').next().unwrap(), 16).unwrap();
    let offset = own[0].offset;
    assert!((open_many..open_many + 200).contains(&offset), "{offset:#x}, {open_many:#x}");
}

#[test]
fn libraries_that_come_and_go_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("library.c");
    let mut libraries = Vec::new();
    for library in ["one", "two"] {
        let text = "#include <unistd.h>\n#include <time.h>\n\
             int FUNCTION(void) { struct timespec t = {0, 1}; return nanosleep(&t, 0) + 1; }";
        fs::write(&source, text.replace("FUNCTION", &format!("nap_of_{library}"))).unwrap();
        let name = format!("libnap-{library}.so");
        let flags = ["-O2", "-shared", "-fPIC"];
        libraries.push(compile(&source, &name, &flags));
    }
    let text = "#include <dlfcn.h>\n#include <stdio.h>\n\
         int main(int count, char **values) {\n\
         int sum = 0;\n\
         for (int i = 1; i + 1 < count; i += 2) {\n\
         void *library = dlopen(values[i], RTLD_NOW);\n\
         sum += ((int (*)(void))dlsym(library, values[i + 1]))();\n\
         dlclose(library);\n\
         } return sum == 4 ? 0 : 1; }";
    fs::write(&source, text).unwrap();
    let program = compile(&source, "opens-libraries", &["-O2"]);
    let mut words = vec![program.as_os_str().to_owned()];
    for (library, function) in [(0, "nap_of_one"), (1, "nap_of_two")].repeat(2) {
        words.extend([libraries[library].as_os_str().to_owned(), function.into()]);
    }
    let (seen, outcome) = observed(&Command::from_words(words).unwrap(), "clock_nanosleep");
    assert_eq!(outcome.exit, Exit::Code(0));
    let found: Vec<String> = calls(&seen, "clock_nanosleep")
        .map(|call| functions(&seen, &call))
        .map(|found| found.into_iter().find(|function| function.contains(" nap_of_")).unwrap())
        .collect();
    let [one, two] = ["libnap-one.so nap_of_one", "libnap-two.so nap_of_two"];
    assert_eq!(found, [one, two, one, two]);
}
