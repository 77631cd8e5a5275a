//! Modules that are loaded and closed again and again: every call is seen under the right name, and
//! what the probe needs for them is not used up.

use std::fs;

use crate::program::{counts, spans};
use crate::{fixtures, trouble, trouble_with};

#[test]
fn a_module_that_is_loaded_a_thousand_times_is_seen_each_time() {
    let Some(program) = trouble("reload", 1_000) else { return };
    let record = program.unchanged().exits(0).whole();
    let counts = counts(&record, "stand-in.so");
    for function in ["C_GetFunctionList", "C_Initialize", "C_Digest"] {
        assert_eq!(counts[function], 1_000, "{function}");
    }
}

/// Where one module was is the other one next: its calls must not go where the first one's went.
#[test]
fn two_modules_in_turns_are_kept_apart() {
    let Some((one, other)) = fixtures::built("stand-in").zip(fixtures::built("stand-in-other"))
    else {
        return;
    };
    let both = [one.as_os_str(), other.as_os_str()].join(std::ffi::OsStr::new(","));
    let Some(program) = trouble_with(both, "reload", 1_000) else { return };
    let record = program.unchanged().exits(0).whole();
    for module in ["stand-in.so", "stand-in-other.so"] {
        let counts = counts(&record, module);
        for function in ["C_GetFunctionList", "C_Initialize", "C_Digest"] {
            assert_eq!(counts[function], 500, "{function} of {module}");
        }
    }
}

/// More modules than the probe has stubs and numbers for, one after the other.
#[test]
fn modules_of_many_names_are_all_seen() {
    const COUNT: usize = 2_500;
    let Some(module) = fixtures::built("stand-in") else { return };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    fs::copy(module, &copy).unwrap();
    for number in 0..COUNT {
        fs::hard_link(&copy, folder.path().join(format!("{number}.so"))).unwrap();
    }
    let mut path = folder.path().as_os_str().to_owned();
    path.push("/");
    let Some(program) = trouble_with(path, "reload", COUNT) else { return };
    let seen = program.seen();
    assert_eq!((seen.timeline.dropped, &seen.warnings), (0, &Vec::new()));
    let digests = spans(&seen, "C_Digest");
    assert_eq!(digests.len(), COUNT);
    for (number, (_, span)) in digests.iter().enumerate() {
        assert_eq!(seen.timeline.call(span.call).module, format!("{number}.so"));
    }
}
