//! Builds the probe, which is no ordinary crate: it has no standard library, and traps instead of
//! unwinding, which Cargo could only ask for in the whole workspace.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let sources = PathBuf::from("../probe/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rustc-check-cfg=cfg(probe)");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let environment = env::var("CARGO_CFG_TARGET_ENV").unwrap_or_default();
    if arch != "x86_64" || environment != "gnu" {
        return;
    }
    println!("cargo::rustc-cfg=probe");
    let library = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join("probe.so");
    let mut rustc = Command::new(env::var_os("RUSTC").expect("Cargo sets it"));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "tapstone_probe"]);
    rustc.args(["--target", &env::var("TARGET").expect("Cargo sets it")]);
    for option in [
        "panic=abort",
        "opt-level=3",
        // One copy of what several parts use: less to relocate at each start of a program.
        "codegen-units=1",
        "strip=debuginfo",
        "overflow-checks=off",
        "link-arg=-nostdlib",
        "link-arg=-nostartfiles",
        // Symbols are bound when it is loaded: it must never enter the linker later.
        "link-arg=-Wl,-z,now",
    ] {
        rustc.args(["-C", option]);
    }
    rustc.arg("-o").arg(&library).arg(sources.join("lib.rs"));
    let status = rustc.status().expect("rustc runs");
    assert!(status.success(), "the probe cannot be built: {rustc:?}");
}
