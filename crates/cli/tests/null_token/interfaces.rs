//! Which interface of a module is used, and what it is told when it is initialised.

use std::path::Path;

use tapstone_record::Outcome as Ended;
use tapstone_testing::skip;

use crate::support::{Outcome, Tapstone};

/// A default of 3.0, and 3.2 by version, was "unsupported: CKR_FUNCTION_NOT_SUPPORTED".
#[test]
fn the_newest_interface_is_used_whichever_is_the_default() {
    for offered in ["3.0,3.2", "3.2,3.0", "3.2"] {
        let run = Tapstone::on(&[("INTERFACES", offered)]);
        let run = run.args("--op ml-kem-768.encapsulate --no-verify --seconds 0.2");
        let row = run.run().exits(0).row();
        assert_eq!(row.status.outcome, Ended::Ok, "{offered}: {:?}", row.status);
        assert!(row.completed > 10, "{offered}");
    }
}

/// A code is quoted only when the module gave it.
#[test]
fn a_function_that_no_interface_has_is_no_return_code() {
    let run = Tapstone::on(&[("INTERFACES", "3.0")]);
    let run = run.args("--op ml-kem-768.encapsulate --no-verify --seconds 0.2");
    let outcome = run.run();
    let status = outcome.row().status;
    assert_eq!(status.outcome, Ended::Unsupported);
    let said = (status.step.as_deref(), status.code.as_deref());
    assert_eq!(said, (Some("C_EncapsulateKey"), Some("NOT_IN_FUNCTION_LIST")));
}

#[test]
fn a_module_is_told_its_arguments_and_nobody_else() {
    let secret = "configdir=/nowhere password=geheim";
    let on = |arguments: &str| {
        let run = Tapstone::on(&[("ARGUMENTS", secret)]);
        run.args("--op rsa1024.sign --no-verify --seconds 0.1").args(arguments)
    };
    let refused = on("").run();
    assert!(refused.stderr.contains("C_Initialize: CKR_ARGUMENTS_BAD"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--module-args"), "{}", refused.stderr);

    let run = on("").arg("--module-args").arg(secret).run().exits(0);
    let text = run.record().to_json().unwrap();
    assert!(!text.contains("geheim") && !run.stderr.contains("geheim"), "{}", run.stderr);
    assert!(text.contains("--module-args"), "that they were given is known");

    let run = on("").env("TAPSTONE_MODULE_ARGS", secret).run().exits(0);
    assert!(!run.record().to_json().unwrap().contains("geheim"));
}

/// NSS's own token, which cannot be opened without arguments; `None` when it is not installed,
/// which has been said then.
fn softokn() -> Option<Tapstone> {
    let places =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let modules = places.iter().flat_map(|place| {
        ["libsoftokn3.so", "nss/libsoftokn3.so"].map(|name| Path::new(place).join(name))
    });
    let Some(module) = modules.into_iter().find(|module| module.exists()) else {
        skip("NSS softokn (libsoftokn3.so, Debian's libnss3)");
        return None;
    };
    let database = "configdir='' certPrefix='' keyPrefix='' secmod='' \
                    flags=readOnly,noCertDB,noModDB,forceOpen,optimizeSpace";
    let softokn = Tapstone::bare().arg("--module").arg(&module).args("--slot 1");
    Some(softokn.arg("--module-args").arg(database))
}

fn assert_all_right(outcome: &Outcome) {
    for row in &outcome.record().results {
        assert_eq!(row.status.outcome, Ended::Ok, "{row:?}");
        let verification = row.verification.unwrap_or_else(|| panic!("{}", row.operation));
        assert!(verification.checked > 0 && verification.wrong == 0, "{verification:?}");
    }
}

#[test]
fn nss_softokn_is_measured_with_its_arguments() {
    let Some(softokn) = softokn() else { return };
    let run = softokn.args("--count 500");
    let run = run.args("--op sha256.digest --op aes128-gcm.encrypt --op rsa2048.sign");
    assert_all_right(&run.run().exits(0));
}

/// So fast that fetching the results takes longer than the window did.
#[test]
fn results_of_a_fast_token_are_checked_however_many_there_are() {
    let Some(softokn) = softokn() else { return };
    let run = softokn.args("--seconds 0.3 --op sha256.digest --op aes128-gcm.encrypt");
    assert_all_right(&run.run().exits(0));
}
