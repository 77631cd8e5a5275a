//! NIST's Public Key Interoperability Test Suite: what somebody else made, judged as its document
//! says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use tapstone_piv::{Certificate, Oid, PathDemands, PolicyInputs, RevocationRule, Time, Trust};

use crate::support::skip;

/// What is right and refused all the same. PKITS' section, and why.
const REFUSED: [(&str, &str); 3] = [
    ("40104_valid_dsa_signatures_test4", "DSA is no algorithm of SP 800-78-5"),
    ("40105_valid_dsa_parameter_inheritance_test5", "DSA is no algorithm of SP 800-78-5"),
    ("40203_valid_pre2000_utc_notbefore_date_test3", "a UTCTime before 1970 does not parse"),
];

#[derive(Deserialize)]
struct Case {
    id: String,
    at: String,
    anchor: String,
    leaf: String,
    intermediates: Vec<String>,
    crls: Vec<String>,
    valid: bool,
    policies: Option<Vec<String>>,
    #[serde(default)]
    explicit: bool,
    #[serde(default)]
    inhibit_map: bool,
    #[serde(default)]
    inhibit_any: bool,
}

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TAPSTONE_TEST_PKITS").map(PathBuf::from);
    if folder.is_none() {
        skip("the environment variable TAPSTONE_TEST_PKITS (folder with NIST's PKITS)");
    }
    folder
}

fn cases(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `2014-05-13T16:53:20Z`.
fn time(text: &str) -> Time {
    let moment = der::DateTime::from_str(text).unwrap();
    Time(moment.unix_duration().as_secs())
}

/// Refused with a reason, or granted. What does not parse is refused.
fn decide(folder: &Path, case: &Case, rule: RevocationRule) -> Result<(), String> {
    let read = |kind: &str, name: &str| std::fs::read(folder.join(kind).join(name)).unwrap();
    let parse = |name: &String| {
        Certificate::parse(&read("certs", name)).map_err(|error| format!("{name}: {error}"))
    };
    let leaf = Arc::new(parse(&case.leaf)?);
    let intermediates: Vec<Certificate> =
        case.intermediates.iter().filter_map(|name| parse(name).ok()).collect();
    let crls: Vec<Vec<u8>> = case.crls.iter().map(|name| read("crls", name)).collect();
    let trust = Trust::new(vec![parse(&case.anchor)?], intermediates).unwrap();
    let trust = trust.checking_revocation(rule, &crls);
    let initial = case.policies.as_ref();
    let oids = |all: &Vec<String>| all.iter().map(|text| Oid::from_str(text).unwrap()).collect();
    let policies = PolicyInputs {
        initial: initial.map(oids),
        explicit: case.explicit,
        inhibit_mapping: case.inhibit_map,
        inhibit_any: case.inhibit_any,
    };
    let demands = PathDemands { purpose: None, policies };
    let path = trust.validate(&leaf, &demands, time(&case.at));
    path.map(|_| ()).map_err(|refusal| format!("{}: {refusal}", refusal.code()))
}

/// Those that are judged otherwise than NIST does, with what was said.
fn wrong(folder: &Path, file: &str, rule: RevocationRule) -> BTreeMap<String, String> {
    let mut wrong = BTreeMap::new();
    for case in cases(&folder.join(file)) {
        let decided = decide(folder, &case, rule);
        if decided.is_ok() != case.valid {
            let said = decided.err().unwrap_or_else(|| "granted".to_owned());
            wrong.insert(case.id, said);
        }
    }
    wrong
}

#[test]
fn all_cases_but_three_named_ones_are_judged_as_nist_does() {
    let Some(folder) = folder() else { return };
    assert_eq!(cases(&folder.join("cases.jsonl")).len(), 172);
    let wrong = wrong(&folder, "cases.jsonl", RevocationRule::Require);
    let named: BTreeSet<&str> = wrong.keys().map(String::as_str).collect();
    assert_eq!(named, REFUSED.iter().map(|(id, _)| *id).collect(), "{wrong:#?}");
    assert!(wrong.values().all(|said| said != "granted"), "{wrong:#?}");
}

#[test]
fn all_policy_sub_cases_are_judged_as_nist_does() {
    let Some(folder) = folder() else { return };
    assert_eq!(cases(&folder.join("policy-cases.jsonl")).len(), 86);
    let wrong = wrong(&folder, "policy-cases.jsonl", RevocationRule::Off);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is granted here and not by OpenSSL. PKITS 4.14.30: a signer of an indirect CRL whose own
/// certificate names that CRL. OpenSSL does not follow a CRL into itself; RFC 5280, 6.3.3 (f) asks
/// for a path to the signer, and 4.2.1.13 lets the CA write into the certificate whose list it is
/// on. NIST's document calls it valid.
const GRANTED_BEYOND_OPENSSL: [&str; 1] = ["41430_valid_crlissuer_test30"];

/// `openssl verify` with policies and CRLs; `None` when it is not installed.
fn granted_by_openssl(folder: &Path, case: &Case, anchor: &Path, crls: bool) -> Option<bool> {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(["verify", "-no-CApath", "-no-CAstore", "-policy_check"]);
    command.args(["-attime", &time(&case.at).0.to_string(), "-CAfile"]).arg(anchor);
    let any = vec!["2.5.29.32.0".to_owned()];
    for policy in case.policies.as_ref().unwrap_or(&any) {
        command.args(["-policy", policy]);
    }
    let flags = [
        (case.explicit, "-explicit_policy"),
        (case.inhibit_map, "-inhibit_map"),
        (case.inhibit_any, "-inhibit_any"),
        (crls, "-crl_check_all"),
        (crls, "-extended_crl"),
        (crls, "-use_deltas"),
    ];
    command.args(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag));
    for name in &case.intermediates {
        command.args(["-untrusted", &format!("certs/{name}")]);
    }
    for name in &case.crls {
        command.args(["-CRLfile", &format!("crls/{name}")]);
    }
    match command.arg(format!("certs/{}", case.leaf)).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip("openssl");
            None
        }
        output => Some(output.unwrap().status.success()),
    }
}

#[test]
fn nothing_is_granted_that_openssl_refuses_but_one_named_case() {
    let Some(folder) = folder() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let anchor = scratch.path().join("anchor.pem");
    let sets =
        [("cases.jsonl", RevocationRule::Require), ("policy-cases.jsonl", RevocationRule::Off)];
    for (file, rule) in sets {
        let mut granted = 0;
        let mut beyond = Vec::new();
        for case in cases(&folder.join(file)) {
            let der = std::fs::read(folder.join("certs").join(&case.anchor)).unwrap();
            let pem = der::pem::encode_string("CERTIFICATE", der::pem::LineEnding::LF, &der);
            std::fs::write(&anchor, pem.unwrap()).unwrap();
            let theirs = granted_by_openssl(&folder, &case, &anchor, rule != RevocationRule::Off);
            let Some(theirs) = theirs else { return };
            granted += usize::from(theirs);
            if decide(&folder, &case, rule).is_ok() && !theirs {
                beyond.push(case.id);
            }
        }
        assert!(granted > 40, "it judges: {granted}");
        let named = if rule == RevocationRule::Off { &[][..] } else { &GRANTED_BEYOND_OPENSSL };
        assert_eq!(beyond, named, "{file}");
    }
}
