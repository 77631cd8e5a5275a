//! An environment in which a program behaves the same on every machine.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::LazyLock;

/// What a program may know of the machine: where programs, libraries and temporary files are, and
/// where a test run collects its coverage.
const KEPT: [&str; 5] = ["PATH", "LD_LIBRARY_PATH", "TMPDIR", "JAVA_HOME", "LLVM_PROFILE_FILE"];

/// Gives a command an environment that is the same on every machine, whatever the user or the
/// system has set up: a home of its own without any p11-kit module, SoftHSM2 without a token, the
/// locale C.UTF-8, the time zone UTC. Variables that are set on the command afterwards stay.
///
/// p11-kit itself reads no user configuration as root: a program that loads its proxy as root sees
/// the system's modules too, and has to choose its token by label.
///
/// # Panics
/// The home cannot be written beside the test program.
pub fn private_environment(command: &mut Command) -> &mut Command {
    let kept = KEPT.into_iter().filter_map(|name| Some((name, env::var_os(name)?)));
    // A shell that knows no working directory looks nothing up: with one, it looks where that is.
    let set = [("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("PWD", "/")];
    command.env_clear().envs(kept).envs(set);
    let places = [
        ("HOME", ""),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_CACHE_HOME", ".cache"),
        ("XDG_STATE_HOME", ".local/state"),
        ("SOFTHSM2_CONF", "softhsm2.conf"),
    ];
    command.envs(places.map(|(name, place)| (name, HOME.join(place))))
}

/// Beside the test program, the same for all of them.
static HOME: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = env::current_exe().expect("a test program has a path");
    let home = program.with_file_name("private-home");
    furnish(&home).unwrap_or_else(|error| panic!("{}: {error}", home.display()));
    home
});

fn furnish(home: &Path) -> io::Result<()> {
    let tokens = home.join("tokens");
    let p11_kit = home.join(".config/pkcs11");
    for folder in [&tokens, &p11_kit.join("modules"), &home.join(".cache")] {
        fs::create_dir_all(folder)?;
    }
    let softhsm = format!("directories.tokendir = {}\nlog.level = ERROR\n", tokens.display());
    write_whole(&home.join("softhsm2.conf"), &softhsm)?;
    write_whole(&p11_kit.join("pkcs11.conf"), "user-config: only\n")
}

/// Other test programs write the same at the same time: nobody reads half of it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension(format!("{}", process::id()));
    fs::write(&part, text)?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_machine_is_in_it_but_places() {
        let mut command = Command::new("env");
        // Of the test itself, which Cargo tells its package.
        assert!(env::var_os("CARGO_PKG_NAME").is_some());
        private_environment(command.env("TAPSTONE_PIN", "1")).env("AFTER", "stays");
        let output = command.output().expect("env is everywhere");
        let text = String::from_utf8(output.stdout).expect("text");
        let names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
        for name in &names {
            let set = ["AFTER", "HOME", "LC_ALL", "PWD", "SOFTHSM2_CONF", "TZ"].contains(name);
            assert!(set || KEPT.contains(name) || name.starts_with("XDG_"), "{name}");
        }
        assert!(names.contains(&"AFTER") && names.contains(&"HOME"), "{names:?}");
        let home = HOME.display().to_string();
        assert!(text.contains(&format!("HOME={home}")), "{text}");
    }
}
