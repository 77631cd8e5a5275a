//! Builds the probe, which is no ordinary crate: it has no standard library, and traps instead of
//! unwinding, which Cargo could only ask for in the whole workspace.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../probe/src");
    println!("cargo::rerun-if-changed=../probe-core/src");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo::rustc-check-cfg=cfg(probe)");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let environment = env::var("CARGO_CFG_TARGET_ENV").unwrap_or_default();
    if arch != "x86_64" || environment != "gnu" {
        return;
    }
    println!("cargo::rustc-cfg=probe");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let core = out.join("libtapstone_probe_core.rlib");
    let core_name = "tapstone_probe_core";
    compile(rustc("rlib", core_name).arg("-o").arg(&core).arg("../probe-core/src/lib.rs"));
    let mut probe = rustc("cdylib", "tapstone_probe");
    for option in [
        // What a watched call needs of both crates is compiled as one: without that it costs some
        // 5 ns more.
        "lto=fat",
        "strip=debuginfo",
        "link-arg=-nostdlib",
        "link-arg=-nostartfiles",
        // Symbols are bound when it is loaded: it must never enter the linker later.
        "link-arg=-Wl,-z,now",
    ] {
        probe.args(["-C", option]);
    }
    probe.arg("--extern").arg(format!("{core_name}={}", core.display()));
    compile(probe.arg("-o").arg(out.join("probe.so")).arg("../probe/src/lib.rs"));
}

/// The compiler, with the options that the probe and its core have in common.
fn rustc(kind: &str, name: &str) -> Command {
    let mut rustc = Command::new(env::var_os("RUSTC").expect("Cargo sets it"));
    rustc.args(["--edition", "2024", "--crate-type", kind, "--crate-name", name]);
    rustc.args(["--target", &env::var("TARGET").expect("Cargo sets it")]);
    for option in [
        "panic=abort",
        "opt-level=3",
        // One copy of what several parts use: less to relocate at each start of a program.
        "codegen-units=1",
        "overflow-checks=off",
    ] {
        rustc.args(["-C", option]);
    }
    // What the whole build is asked for, such as paths that do not name this machine. Cargo has
    // put the unit separator between the flags.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    rustc
}

fn compile(rustc: &mut Command) {
    let status = rustc.status().expect("rustc runs");
    assert!(status.success(), "the probe cannot be built: {rustc:?}");
}
