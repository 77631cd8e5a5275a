//! The module that does nothing, which `NULL_MODULE_…` variables make do what a test needs.

mod log;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use self::log::Log;

/// The PIN of each of its tokens.
pub(crate) const PIN: &str = "1234";

/// Cargo puts the shared library of a dependency beside the test program.
pub(crate) fn path() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let module = program.with_file_name("libnull_module.so");
    assert!(module.exists(), "{}: built as a dev-dependency", module.display());
    module
}

/// Gives a command variables that are named without their prefix.
pub(crate) fn tell(command: &mut Command, variables: &[(&str, &str)]) {
    command.envs(variables.iter().map(|(name, value)| (format!("NULL_MODULE_{name}"), value)));
}

/// Names of the objects in a store.
pub(crate) fn objects(store: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(store) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut objects: Vec<String> = names.filter(|name| name.ends_with(".object")).collect();
    objects.sort();
    objects
}
