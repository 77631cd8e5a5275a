//! OpenSSL as a judge of the worlds that tests make: `openssl verify` with policies and CRLs, and
//! `openssl ocsp` for answers that were fetched beforehand.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use der::pem::LineEnding;
use tapstone_piv::RevocationRule;

use super::world::{ListSpec, Spec, World};
use super::{days, skip};

/// How a user principal name begins in a name of a test.
const UPN: &str = "OtherName(OtherName { type_id: ObjectIdentifier(1.3.6.1.4.1.311.20.2.3)";

/// Granted here and refused by OpenSSL: what it says, of near misses of which attacks, and the
/// sentence that decides, between quotation marks as the standard has it.
const BEYOND_OPENSSL: [(&str, &[&str], &str); 7] = [
    (
        "error 10 ",
        &["a card that expired", "a CA that expired", "an anchor that expired"],
        "RFC 5280, 4.1.2.5: \"The validity period for a certificate is the period of time from \
         notBefore through notAfter, inclusive.\" The moment is that second.",
    ),
    (
        "error 12 ",
        &["a list that expired"],
        "RFC 5280, 6.3.3 (a) (1): \"If the current time is after the value of the CRL next update \
         field\", another list is needed. The moment is that second.",
    ),
    (
        "error 23 ",
        &[
            "a delta of a later list",
            "a delta before the list",
            "a delta that expired",
            "removed and revoked",
        ],
        "RFC 5280, 5.2.4: \"An application that supports delta CRLs MUST be able to construct a \
         current complete CRL by combining a previously issued complete CRL and the most current \
         delta CRL.\" 5.3.1: removeFromCRL \"indicates that a certificate is to be removed from a \
         CRL\". OpenSSL looks at deltas only where the certificate or the list says where they are \
         (freshestCRL), which these do not; 5.2.6: \"The contents of this CRL extension are only \
         used to locate delta CRLs\".",
    ),
    (
        "error 8 ",
        &[
            "revoked by one list of two",
            "revoked by a stranger too",
            "a list by a key without a path",
            "a list by a revoked key",
            "a list about its own signer",
        ],
        "RFC 5280, 6.3.3 (f): \"Obtain and validate the certification path for the issuer of the \
         complete CRL.\" That one has another key and a path of its own; OpenSSL tries the \
         issuer's key in the card's path alone, where no key identifier says which.",
    ),
    (
        "error 36 ",
        &["an entry with a date that is not known"],
        "RFC 5280, 5.3: \"If a CRL contains a critical CRL entry extension that the application \
         cannot process, then the application MUST NOT use that CRL\". OpenSSL does not process \
         invalidityDate (5.3.2); here it is known, and says nothing about the status.",
    ),
    (
        "error 51 ",
        &[
            "a user of another domain",
            "a user of another name",
            "a user of an excluded domain",
            UPN,
        ],
        "RFC 5280, 4.2.1.10: \"the application MUST either process the constraint or reject the \
         certificate\". OpenSSL rejects user principal names; here they are processed.",
    ),
    (
        "error 47 ",
        &["a URI with another's name in front"],
        "RFC 5280, 4.2.1.10: \"For URIs, the constraint applies to the host part of the name.\" In \
         front of the @ is no host (RFC 3986, 3.2).",
    ),
];

/// That a CRL is missing, to come, or has expired: with `prefer` that is told, and no reason.
const NOTHING_IS_KNOWN: [&str; 4] = ["error 3 ", "error 11 ", "error 12 ", "error 44 "];

/// Fails the test where OpenSSL refuses what was granted, unless a sentence of a standard decides.
#[track_caller]
pub(crate) fn openssl_agrees(name: &str, world: &World) {
    static IS_HERE: OnceLock<bool> = OnceLock::new();
    let is_here = IS_HERE.get_or_init(|| match Command::new("openssl").arg("version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("openssl");
            false
        }
        output => output.unwrap().status.success(),
    });
    if !is_here {
        return;
    }
    let Some(said) = refusal(world) else { return };
    let decides = |(error, names, _): &(&str, &[&str], &str)| {
        said.contains(error) && names.iter().any(|of| name.starts_with(of))
    };
    assert!(BEYOND_OPENSSL.iter().any(decides), "near miss of {name}: OpenSSL says {said}");
}

/// What OpenSSL says against it.
fn refusal(world: &World) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let der = |specs: &[Spec]| specs.iter().map(Spec::der).collect::<Vec<_>>();
    write(folder, "anchors.pem", "CERTIFICATE", &der(&world.anchors));
    write(folder, "cas.pem", "CERTIFICATE", &der(&world.cas));
    write(folder, "leaf.pem", "CERTIFICATE", &[world.leaf.der()]);
    let mut lists: Vec<Vec<u8>> = world.lists.iter().map(ListSpec::der).collect();
    lists.extend(world.raw_lists.iter().cloned());
    write(folder, "lists.pem", "X509 CRL", &lists);
    let has_answers = !world.answers.is_empty() || world.source.is_some();
    let with_lists = world.rule != RevocationRule::Off && !has_answers;
    let said = verified(folder, world, with_lists)?;
    let is_unknown = NOTHING_IS_KNOWN.iter().any(|error| said.contains(error));
    (!(world.rule == RevocationRule::Prefer && is_unknown)).then_some(said)
}

fn write(folder: &Path, name: &str, kind: &str, all: &[Vec<u8>]) {
    let pem = |der: &Vec<u8>| der::pem::encode_string(kind, LineEnding::LF, der).unwrap();
    std::fs::write(folder.join(name), all.iter().map(pem).collect::<String>()).unwrap();
}

/// `openssl verify`; what it says when it refuses.
fn verified(folder: &Path, world: &World, with_lists: bool) -> Option<String> {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(["verify", "-no-CApath", "-no-CAstore", "-policy_check"]);
    command.args(["-attime", &world.at.0.to_string(), "-CAfile", "anchors.pem"]);
    if !world.cas.is_empty() {
        command.args(["-untrusted", "cas.pem"]);
    }
    let any = [super::world::oid("2.5.29.32.0")];
    let initial: Vec<_> = match &world.policies.initial {
        Some(initial) => initial.iter().copied().collect(),
        None => any.to_vec(),
    };
    for policy in initial {
        command.args(["-policy", &policy.to_string()]);
    }
    let flags = [
        (world.policies.explicit, "-explicit_policy"),
        (world.policies.inhibit_mapping, "-inhibit_map"),
        (world.policies.inhibit_any, "-inhibit_any"),
        (with_lists, "-crl_check_all"),
        (with_lists, "-extended_crl"),
        (with_lists, "-use_deltas"),
    ];
    command.args(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag));
    if with_lists {
        command.args(["-CRLfile", "lists.pem"]);
    }
    let output = command.arg("leaf.pem").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

/// It does refuse.
#[test]
fn openssl_refuses_what_it_should() {
    if Command::new("openssl").arg("version").output().is_err() {
        return;
    }
    assert_eq!(refusal(&World::listed()), None);
    let mut world = World::listed();
    world.lists[1].revoked.push((super::world::CARD_SERIAL, Vec::new()));
    assert!(refusal(&world).unwrap().contains("certificate revoked"));
    let mut world = World::new();
    world.leaf.until = days(-1);
    assert!(refusal(&world).unwrap().contains("expired"));
}
