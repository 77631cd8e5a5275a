//! What a shell and its user ask a program for: completions, and which build it is.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tapstone_testing::{private_environment, skip};
use tempfile::TempDir;

fn tapstone(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tapstone")).args(arguments).output().unwrap()
}

fn printed(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_completes_verbs_and_options() {
    if Command::new("bash").arg("--version").output().is_err() {
        return skip("bash");
    }
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("tapstone");
    fs::write(&script, printed(tapstone(&["completions", "bash"]))).unwrap();
    let complete = |words: &[&str]| {
        let last = words.last().unwrap();
        let before = words[words.len() - 2];
        let line = words.join(" ");
        let ask = format!(
            "source '{}'; COMP_WORDS=({line} ''); COMP_CWORD={}; COMP_LINE='{line}'; \
             _tapstone tapstone '{last}' {before}; echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.len() - 1
        );
        printed(Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap())
    };
    assert_eq!(complete(&["tapstone", "comp"]).trim(), "compare completions");
    assert_eq!(complete(&["tapstone", "compare", "--base"]).trim(), "--baseline");
    assert_eq!(complete(&["tapstone", "door", "what"]).trim(), "what-if");
    // Processes of Tapstone's own are not for people.
    assert_eq!(complete(&["tapstone", "wor"]).trim(), "");
}

#[test]
fn other_shells_read_their_scripts() {
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let script = printed(tapstone(&["completions", shell]));
        assert!(script.contains("what-if"), "{shell}");
        if Command::new(shell).arg("--version").output().is_err() {
            skip(shell);
            continue;
        }
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("script");
        fs::write(&file, script).unwrap();
        let read = Command::new(shell).arg(check).arg(&file).output().unwrap();
        assert!(read.status.success(), "{shell}: {read:?}");
    }
    assert_eq!(tapstone(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn a_build_says_what_it_is() {
    let short = printed(tapstone(&["-V"]));
    assert_eq!(short, format!("tapstone {}\n", env!("CARGO_PKG_VERSION")));
    let long = printed(tapstone(&["--version"]));
    let facts: Vec<&str> = long.lines().collect();
    assert_eq!(facts[0], short.trim_end());
    let names: Vec<&str> =
        facts[1..].iter().map(|fact| fact.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["commit", "target", "profile", "rustc", "record"]);
    assert!(facts.iter().all(|fact| fact.split_whitespace().count() > 1), "{long}");
    let git = |arguments: &[&str]| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new("git").current_dir(here).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) if std::env::var_os("TAPSTONE_COMMIT").is_none() => {
            assert_eq!(facts[1], format!("commit   {}", commit.trim()));
        }
        _ => skip("a checkout with git, for the commit"),
    }
}

/// What keeps a release able to start on old systems; here it reads this build, which is none.
#[test]
fn versions_of_the_c_library_are_held_against_a_floor() {
    if Command::new("readelf").arg("--version").output().is_err() {
        return skip("readelf");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/needed-versions");
    let needed = |file: &str, floor: &str| Command::new(&script).args([file, floor]).output();
    let program = env!("CARGO_BIN_EXE_tapstone");
    let all = printed(needed(program, "99.0").unwrap());
    // dlopen moved into the C library with 2.34; whichever it is, memcpy's version stays.
    assert!(all.contains("GLIBC_2.14: ") && all.contains("memcpy"), "{all}");
    let above = needed(program, "2.13").unwrap();
    assert_eq!(above.status.code(), Some(1), "{above:?}");
    let named = String::from_utf8(above.stdout).unwrap();
    assert!(named.contains("GLIBC_2.14  above GLIBC_2.13: "), "{named}");
    assert!(!named.contains("GLIBC_2.2.5  above"), "{named}");
    assert_eq!(needed("Cargo.toml", "2.28").unwrap().status.code(), Some(2));
    assert_eq!(needed(program, "2.x").unwrap().status.code(), Some(2));
    let folder = TempDir::new().unwrap();
    let cut_off = folder.path().join("program");
    fs::write(&cut_off, &fs::read(program).unwrap()[..100_000]).unwrap();
    let refused = needed(cut_off.to_str().unwrap(), "2.28").unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

/// Before they build anything, or enter a root.
#[test]
fn scripts_of_packages_say_what_is_wrong() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // No clone, and with a space in its name.
    let folder = TempDir::with_prefix("no clone").unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").args(["scripts", "Cargo.toml"].map(|name| sources.join(name)));
    assert!(copy.arg(folder.path()).status().unwrap().success());
    for (script, arguments, arch, hint) in [
        ("dist", &[][..], "amd64", "hint: ARCH=x86_64 or ARCH=aarch64"),
        ("dist", &[], "x86_64", "hint: TAPSTONE_COMMIT=NAME SOURCE_DATE_EPOCH=SECONDS"),
        ("dist-test", &["rpm", "sarge"], "x86_64", "hint: some of bullseye bookworm"),
    ] {
        let mut command = Command::new(folder.path().join("scripts").join(script));
        private_environment(&mut command);
        let said = command.args(arguments).env("ARCH", arch).output().unwrap();
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        let said = String::from_utf8(said.stderr).unwrap();
        assert!(said.starts_with("error: ") && said.contains(hint), "{script}: {said}");
    }
    assert!(!folder.path().join("target").exists());
}
