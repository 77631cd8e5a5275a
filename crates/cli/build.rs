//! Facts about the build, for `tapstone --version`. No time of day: the same sources give the same
//! program.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).expect("Cargo sets it");
    println!("cargo::rustc-env=TAPSTONE_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=TAPSTONE_PROFILE={}", variable("PROFILE"));
    let rustc = said(Command::new(variable("RUSTC")).arg("--version"));
    println!("cargo::rustc-env=TAPSTONE_RUSTC={}", rustc.unwrap_or_else(|| "unknown".into()));
    println!("cargo::rerun-if-env-changed=TAPSTONE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = env::var("TAPSTONE_COMMIT").ok().or_else(commit);
    println!("cargo::rustc-env=TAPSTONE_COMMIT={}", commit.unwrap_or_else(|| "unknown".into()));
}

/// What is checked out, when these sources are a repository of their own, and not only inside
/// somebody else's.
fn commit() -> Option<String> {
    let workspace = Path::new("../..").canonicalize().ok()?;
    let git = |arguments: &[&str]| said(Command::new("git").args(arguments));
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?) != workspace {
        return None;
    }
    // The commit changes with the file of the branch, or with all branches in one file.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "packed-refs", &branch] {
        let path = git(&["rev-parse", "--git-path", name]).map(PathBuf::from);
        if let Some(path) = path.filter(|path| path.is_file()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
