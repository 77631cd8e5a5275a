//! `tapstone targets`: finds SoftHSM2, and whatever else is there does not hide it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Hsm, Tapstone};

/// The null module: Cargo puts the shared library of a dependency beside the test program.
fn null_module() -> PathBuf {
    let module = std::env::current_exe().unwrap().with_file_name("libnull_module.so");
    assert!(module.exists(), "{}: built as a dev-dependency", module.display());
    module
}

/// A home whose p11-kit configuration names these modules, and none of the system's.
fn with_modules(hsm: &Hsm, modules: &[(&str, &Path)]) -> Tapstone {
    let home = hsm.path("home");
    let folder = home.join(".config/pkcs11/modules");
    fs::create_dir_all(&folder).unwrap();
    fs::write(home.join(".config/pkcs11/pkcs11.conf"), "user-config: only\n").unwrap();
    for (name, module) in modules {
        let line = format!("module: {}\n", module.display());
        fs::write(folder.join(format!("{name}.module")), line).unwrap();
    }
    hsm.bare("targets").env("HOME", home)
}

fn listed(run: Tapstone, exit: i32) -> Vec<Value> {
    let outcome = run.args("--format json").without_record().run().exits(exit);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// The token with the label `hsm` in a module's entry.
fn token(module: &Value) -> &Value {
    let slots = module["slots"].as_array().unwrap();
    slots.iter().find(|slot| slot["token"]["label"] == "hsm").unwrap()
}

#[test]
fn p11_kit_leads_to_the_module_and_its_token() {
    let Some(hsm) = Hsm::new() else { return };
    let modules = listed(with_modules(&hsm, &[("of-the-test", hsm.module())]), 0);
    let found = modules.iter().find(|module| module["name"] == "of-the-test").unwrap();
    assert_eq!(found["path"], hsm.module().to_str().unwrap());
    let config = hsm.path("home/.config/pkcs11/modules/of-the-test.module");
    assert_eq!(found["found_by"], config.to_str().unwrap());
    assert_eq!(found["error"], Value::Null);
    assert_eq!(found["library"]["manufacturer"], "SoftHSM");

    let slot = token(found);
    assert_eq!(slot["token"]["manufacturer"], "SoftHSM project");
    let flags = slot["flags"].as_array().unwrap();
    for flag in ["CKF_LOGIN_REQUIRED", "CKF_TOKEN_INITIALIZED", "CKF_USER_PIN_INITIALIZED"] {
        assert!(flags.iter().any(|other| other == flag), "{flag} in {flags:?}");
    }
}

#[test]
fn mechanisms_come_with_their_key_sizes() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.bare("targets").arg("--module").arg(hsm.module());
    let modules = listed(run, 0);
    assert_eq!(modules.len(), 1, "only the one that was named");
    assert_eq!(modules[0]["found_by"], "--module");
    let mechanisms = token(&modules[0])["mechanisms"].as_array().unwrap();
    let rsa = mechanisms.iter().find(|mechanism| mechanism["name"] == "CKM_RSA_PKCS").unwrap();
    assert!(rsa["min_key_size"].as_u64().unwrap() <= 1024, "{rsa}");
    assert!(rsa["max_key_size"].as_u64().unwrap() >= 4096, "{rsa}");
    assert_eq!(rsa["hardware"], false);
}

#[test]
fn people_read_the_same() {
    let Some(hsm) = Hsm::new() else { return };
    let run = || hsm.bare("targets").arg("--module").arg(hsm.module());
    let short = run().without_record().run().exits(0);
    assert_eq!(short.stderr, "");
    for words in ["token \"hsm\": SoftHSM project", "CKF_TOKEN_INITIALIZED", " mechanisms\n"] {
        assert!(short.stdout.contains(words), "{words} in\n{}", short.stdout);
    }
    assert!(!short.stdout.contains("CKM_"), "{}", short.stdout);
    let long = run().arg("--mechanisms").without_record().run().exits(0);
    assert!(long.stdout.contains("CKM_RSA_PKCS_PSS "), "{}", long.stdout);
}

#[test]
fn a_module_that_hangs_hides_no_other() {
    let Some(hsm) = Hsm::new() else { return };
    let null = null_module();
    let names = [("a-hangs", null.as_path()), ("b-works", hsm.module())];
    let run = with_modules(&hsm, &names).env("NULL_MODULE_HANG", "C_GetSlotList");
    let modules = listed(run.args("--timeout 1s"), 0);
    let by_name = |name| modules.iter().find(|module| module["name"] == name).unwrap();
    let error = by_name("a-hangs")["error"].as_str().unwrap();
    assert!(error.contains("no answer within 1s during C_GetSlotList"), "{error}");
    assert!(error.contains("hint: --timeout"), "{error}");
    assert_eq!(token(by_name("b-works"))["token"]["label"], "hsm");
}

#[test]
fn a_module_that_crashes_or_is_missing_hides_no_other_but_was_asked_for() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.bare("targets").env("NULL_MODULE_CRASH", "C_Initialize");
    let run = run.arg("--module").arg(null_module()).arg("--module").arg(hsm.path("no.so"));
    let modules = listed(run.arg("--module").arg(hsm.module()), 2);
    let errors: Vec<&str> =
        modules.iter().map(|module| module["error"].as_str().unwrap_or_default()).collect();
    assert!(errors[0].contains("SIGSEGV") && errors[0].contains("C_Initialize"), "{}", errors[0]);
    assert_eq!(errors[1..], ["no such file", ""]);
    token(&modules[2]);
}

/// U+202E turns the rest of the line around: `LOCKED` would stand where the label says otherwise.
#[test]
fn a_label_that_turns_the_text_around_is_made_harmless() {
    let Some(hsm) = Hsm::new() else { return };
    let made = Command::new("softhsm2-util")
        .env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"))
        .args(["--init-token", "--free", "--so-pin", "1234567", "--pin", "123456"])
        .args(["--label", "A\u{202e}DEKCOL"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let run = with_modules(&hsm, &[("of-the-test", hsm.module())]);
    let shown = run.without_record().run().exits(0).stdout;
    assert!(shown.contains("token \"A\u{fffd}DEKCOL\""), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
}
