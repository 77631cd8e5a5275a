//! Discovery on trees made for it, and on this machine.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::process::Command;

use tapstone_testing::skip;

use super::*;

/// A machine's files, and a home in them.
struct Machine {
    tree: tempfile::TempDir,
}

impl Machine {
    /// An empty machine.
    fn new() -> Self {
        Self { tree: tempfile::tempdir().expect("a temporary directory") }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tree.path().join(path)
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a directory");
        symlink(target, path).expect("a symbolic link");
        self
    }

    fn discover(&self) -> Discovery {
        self.discover_with(&[])
    }

    fn discover_with(&self, named: &[PathBuf]) -> Discovery {
        let home = Some(self.at("home"));
        Discovery::below(&Roots { system: self.tree.path().to_owned(), home }, named)
    }

    /// The notes, without the prefix that is another each time.
    fn notes(&self, discovery: &Discovery) -> Vec<String> {
        let prefix = format!("{}/", self.tree.path().display());
        discovery.notes.iter().map(|note| note.to_string().replace(&prefix, "/")).collect()
    }
}

fn names(discovery: &Discovery) -> Vec<&str> {
    discovery.candidates.iter().map(|one| one.name.as_deref().unwrap_or("?")).collect()
}

#[test]
fn the_order_is_named_then_priority_then_name_then_well_known() {
    let machine = Machine::new();
    machine
        .write("own/mine.so", "")
        .write("usr/share/p11-kit/modules/b.module", "module: /opt/b.so")
        .write("usr/share/p11-kit/modules/a.module", "module: /opt/a.so")
        .write("usr/share/p11-kit/modules/last.module", "module: /opt/last.so\npriority: -1")
        .write("etc/pkcs11/modules/first.module", "module: /opt/first.so\npriority: 10")
        .write("opt/cloudhsm/lib/libcloudhsm_pkcs11.so", "")
        .write("usr/lib64/libykcs11.so", "");
    let found = machine.discover_with(&[machine.at("own/mine.so")]);
    assert_eq!(names(&found), ["?", "first", "a", "b", "last", "YKCS11", "AWS CloudHSM"]);
    assert_eq!(found.candidates[0].found_by, FoundBy::Named);
    let config = machine.at("etc/pkcs11/modules/first.module");
    assert_eq!(found.candidates[1].found_by, FoundBy::P11Kit { config });
    assert_eq!(found.candidates[5].found_by, FoundBy::WellKnownPath);
    assert_eq!(found.notes, []);
}

#[test]
fn a_file_that_several_names_lead_to_is_listed_once() {
    let machine = Machine::new();
    machine
        .write("usr/lib64/opensc-pkcs11.so", "")
        .link("usr/lib64/pkcs11/opensc-pkcs11.so", "../opensc-pkcs11.so")
        .link("home/card.so", "../usr/lib64/opensc-pkcs11.so")
        .write("usr/share/p11-kit/modules/opensc.module", "module: opensc-pkcs11.so");
    let found = machine.discover();
    assert_eq!(names(&found), ["opensc"]);
    assert_eq!(found.candidates[0].path, machine.at("usr/lib64/pkcs11/opensc-pkcs11.so"));
    assert_eq!(found.candidates[0].notes, ["smart cards and USB tokens, through PC/SC"]);

    let named = machine.discover_with(&[machine.at("home/card.so")]);
    assert_eq!(names(&named), ["opensc"], "p11-kit's name is kept");
    assert_eq!(named.candidates[0].found_by, FoundBy::Named);
    assert_eq!(named.candidates[0].path, machine.at("home/card.so"));
}

#[test]
fn the_user_overrides_the_administrator_who_overrides_the_package_key_by_key() {
    let machine = Machine::new();
    machine
        .write("usr/share/p11-kit/modules/m.module", "module: /p.so\npriority: 1\nmanaged: no")
        .write("usr/share/p11-kit/modules/n.module", "module: /n.so\npriority: 6")
        .write("etc/pkcs11/modules/m.module", "module: /a.so\npriority: 2")
        .write("home/.config/pkcs11/modules/m.module", "priority: 7");
    let found = machine.discover();
    assert_eq!(names(&found), ["m", "n"], "the user's priority");
    assert_eq!(found.candidates[0].path, machine.at("a.so"), "the administrator's path");
    assert_eq!(
        found.candidates[0].notes,
        ["p11-kit is told not to manage it (`managed: no`)"],
        "the package's setting"
    );
    machine.write("etc/pkcs11/pkcs11.conf", "managed: yes");
    assert_eq!(machine.discover().candidates[0].notes, [""; 0], "the global setting wins");
}

#[test]
fn user_config_decides_whose_files_count() {
    let machine = Machine::new();
    machine
        .write("etc/pkcs11/modules/system.module", "module: /s.so")
        .write("home/.config/pkcs11/modules/user.module", "module: /u.so");
    for (system, user, expected) in [
        ("", "", &["system", "user"][..]),
        ("user-config: none", "user-config: only", &["system"]),
        ("user-config: only", "", &["user"]),
        ("user-config: only", "user-config: merge", &["system", "user"]),
        ("", "user-config: none", &["system"]),
        ("", "user-config: override", &["user"]),
    ] {
        machine.write("etc/pkcs11/pkcs11.conf", system);
        machine.write("home/.config/pkcs11/pkcs11.conf", user);
        assert_eq!(names(&machine.discover()), expected, "{system:?}, {user:?}");
    }
    machine.write("etc/pkcs11/pkcs11.conf", "\nuser-config: maybe");
    machine.write("home/.config/pkcs11/pkcs11.conf", "");
    let found = machine.discover();
    assert_eq!(names(&found), ["system", "user"]);
    assert_eq!(
        machine.notes(&found),
        [r#"/etc/pkcs11/pkcs11.conf:2: "maybe" is none of `none`, `merge` and `only`: ignored"#]
    );
}

#[test]
fn without_a_home_only_the_system_counts() {
    let machine = Machine::new();
    machine.write("etc/pkcs11/modules/system.module", "module: /s.so");
    let roots = Roots { system: machine.tree.path().to_owned(), home: None };
    assert_eq!(names(&Discovery::below(&roots, &[])), ["system"]);
}

#[test]
fn relative_paths_are_in_p11_kits_directory_and_what_is_not_there_is_missing() {
    let machine = Machine::new();
    let multiarch = format!("usr/lib/{}-linux-gnu/pkcs11", std::env::consts::ARCH);
    machine
        .write(&format!("{multiarch}/here.so"), "")
        .write("usr/lib/pkcs11/other.so", "")
        .write("etc/pkcs11/modules/a.module", "module: here.so")
        .write("etc/pkcs11/modules/b.module", "module: other.so")
        .write("etc/pkcs11/modules/c.module", "module: gone.so");
    let found = machine.discover_with(&[machine.at("typo.so")]);
    let of = |index: usize| (found.candidates[index].path.clone(), found.candidates[index].state);
    assert_eq!(of(0), (machine.at("typo.so"), State::Missing));
    assert_eq!(of(1), (machine.at(&multiarch).join("here.so"), State::Ready));
    assert_eq!(of(2), (machine.at("usr/lib/pkcs11/other.so"), State::Ready));
    assert_eq!(of(3), (machine.at(&multiarch).join("gone.so"), State::Missing));
}

#[test]
fn lists_of_programs_enable_and_disable() {
    let machine = Machine::new();
    for file in ["a", "b", "c", "d", "e"] {
        machine.write(&format!("opt/{file}.so"), "");
    }
    let module = |name: &str, list: &str| {
        let text = format!("module: /opt/{name}.so\n{list}");
        machine.write(&format!("etc/pkcs11/modules/{name}.module"), &text);
    };
    module("a", "disable-in: firefox, tapstone");
    module("b", "disable-in: p11-kit-proxy, tapstone-old");
    module("c", "enable-in: ssh");
    module("d", "enable-in: ssh tapstone");
    module("e", "enable-in: tapstone\ndisable-in: tapstone");
    let found = machine.discover();
    let states: Vec<_> = found.candidates.iter().map(|candidate| candidate.state).collect();
    use State::{Disabled, Ready};
    assert_eq!(states, [Disabled, Ready, Disabled, Ready, Ready]);
    let reason = found.candidates[2].notes[0].replace(&*machine.at("").to_string_lossy(), "/");
    assert_eq!(
        reason,
        "p11-kit is told to keep it from tapstone by `enable-in: ssh` (/etc/pkcs11/modules/c.module:2)"
    );
    assert_eq!(
        machine.notes(&found),
        [
            "/etc/pkcs11/modules/e.module:3: `disable-in` is ignored, because there is `enable-in` too"
        ]
    );
    let named = machine.discover_with(&[machine.at("opt/c.so")]);
    assert_eq!(named.candidates[0].state, Ready, "naming it overrules the list");
}

#[test]
fn what_cannot_be_loaded_or_read_is_said_with_file_and_line() {
    let machine = Machine::new();
    machine
        .write("etc/pkcs11/modules/far.module", "# far\nremote: |ssh far p11-kit remote /m.so")
        .write("etc/pkcs11/modules/none.module", "modul: /m.so")
        .write("usr/share/p11-kit/modules/off.module", "module: /off.so")
        .write("home/.config/pkcs11/modules/off.module", "module:")
        .write("etc/pkcs11/modules/old.module.bak", "module: /old.so")
        .write(
            "etc/pkcs11/modules/odd.module",
            "module /odd.so\nmodule: /odd.so\npriority: high\nmanaged: maybe",
        );
    fs::write(machine.at("etc/pkcs11/modules/raw.module"), b"module: \xFF").expect("a file");
    let found = machine.discover();
    assert_eq!(names(&found), ["odd"], "the rest of a file with a mistake counts");
    assert_eq!(
        machine.notes(&found),
        [
            "/etc/pkcs11/modules/odd.module:1: no colon between a name and a value: the line is ignored",
            "/etc/pkcs11/modules/old.module.bak: not read: not called `*.module`",
            "/etc/pkcs11/modules/raw.module: stream did not contain valid UTF-8",
            "/etc/pkcs11/modules/far.module:2: `far` runs in another process (|ssh far p11-kit remote /m.so), \
             not in a file to load: p11-kit-proxy.so has it",
            "/etc/pkcs11/modules/none.module: no `module:` line, so there is nothing to load",
            r#"/etc/pkcs11/modules/odd.module:4: "maybe" is neither `yes` nor `no`: ignored"#,
            r#"/etc/pkcs11/modules/odd.module:3: priority "high" is not an integer: 0 is meant"#,
            "/home/.config/pkcs11/modules/off.module:1: `module:` is blank: `off` is switched off",
            "/etc/pkcs11/modules/raw.module: no `module:` line, so there is nothing to load",
        ]
    );
}

#[test]
fn p11_kits_own_modules_are_listed_with_what_they_are() {
    let machine = Machine::new();
    let trust = "module: p11-kit-trust.so\npriority: 1\ndisable-in: p11-kit-proxy";
    machine
        .write("usr/lib64/libp11-kit.so.0.3.0", "")
        .link("usr/lib64/p11-kit-proxy.so", "libp11-kit.so.0.3.0")
        .write("usr/lib64/pkcs11/p11-kit-client.so", "")
        .write("usr/lib64/pkcs11/p11-kit-trust.so", "")
        .write("usr/share/p11-kit/modules/p11-kit-trust.module", trust);
    let found = machine.discover();
    assert_eq!(names(&found), ["p11-kit-trust", "p11-kit proxy", "p11-kit client"]);
    let notes: Vec<_> = found.candidates.iter().flat_map(|candidate| &candidate.notes).collect();
    assert_eq!(
        notes,
        [
            "the certificates that the system trusts: no keys to measure",
            "all p11-kit modules behind one: measures the proxy too",
            "the module behind a `p11-kit server`: measures the transport too",
        ]
    );
    assert!(found.candidates.iter().all(|candidate| candidate.state == State::Ready));
}

#[test]
fn finds_what_p11_kit_lists_on_this_machine() {
    let output = match Command::new("p11-kit").arg("list-modules").output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => panic!("`p11-kit list-modules`: {output:?}"),
        Err(error) if error.kind() == ErrorKind::NotFound => return skip("p11-kit"),
        Err(error) => panic!("p11-kit: {error}"),
    };
    let text = String::from_utf8_lossy(&output);
    // Before 0.25 `NAME: PATH` heads a module, since then `module: NAME`.
    let listed: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with([' ', '\t']))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, rest)| if name == "module" { rest } else { name })
        .collect();
    assert!(!listed.is_empty(), "p11-kit lists no module:\n{text}");
    let found = modules(&[]);
    let mut ours: Vec<_> = found
        .candidates
        .iter()
        .filter(|candidate| matches!(candidate.found_by, FoundBy::P11Kit { .. }))
        .filter_map(|candidate| candidate.name.as_deref())
        .collect();
    // p11-kit leaves out what it cannot load, and what its configuration keeps from p11-kit(8).
    ours.retain(|name| listed.contains(name));
    assert_eq!(ours, listed, "found: {:#?}", found.candidates);
}
