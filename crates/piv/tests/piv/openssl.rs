//! OpenSSL as another judge of the same certificates and CRLs.

use std::io::ErrorKind;
use std::process::Command;

use tapstone_piv::Time;

use crate::icam::{files, folder};
use crate::support::{
    Ca, Files, Leaf, NOW, PLAIN, Plastic, crl, days, decision, relying_system, skip,
};

/// `openssl verify`: whether it agrees; `None` when it is not installed.
fn verify(trusted: &[Vec<u8>], crls: &[Vec<u8>], leaf: &[u8], at: Time) -> Option<bool> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let pem = |kind: &str, all: &[Vec<u8>], name: &str| {
        let mut text = String::new();
        for der in all {
            std::fs::write(path("one"), der).unwrap();
            let output = Command::new("openssl")
                .args([kind, "-inform", "DER", "-in", &path("one")])
                .output()
                .unwrap();
            text.push_str(&String::from_utf8(output.stdout).unwrap());
        }
        std::fs::write(path(name), text).unwrap();
    };
    match Command::new("openssl").arg("version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("openssl");
            return None;
        }
        _ => {}
    }
    pem("x509", trusted, "trusted.pem");
    pem("x509", &[leaf.to_vec()], "leaf.pem");
    let mut command = Command::new("openssl");
    command.args(["verify", "-CAfile", &path("trusted.pem"), "-attime", &at.0.to_string()]);
    if !crls.is_empty() {
        pem("crl", crls, "crls.pem");
        command.args(["-crl_check_all", "-CRLfile", &path("crls.pem")]);
    }
    let output = command.arg(path("leaf.pem")).output().unwrap();
    Some(output.status.success())
}

#[test]
fn agrees_about_minted_certificates() {
    let root = Ca::root("root");
    let between = root.ca("between", Some(0));
    let below = between.ca("below", None);
    let trusted = [root.der(), between.der(), below.der()];
    let lists = |serials: &[u8], until| {
        let list = |ca: &Ca, serials: &[u8]| crl(ca, serials, days(-2), until);
        vec![list(&root, &[]), list(&between, serials), list(&below, &[])]
    };
    let leaf = Leaf::of_card;
    let cases: [(&Ca, Leaf, Vec<Vec<u8>>, bool); 7] = [
        (&between, leaf(), vec![], true),
        (&between, leaf(), lists(&[9], days(1)), true),
        (&between, leaf(), lists(&[7], days(1)), false),
        (&between, leaf(), lists(&[9], days(-1)), false),
        (&between, Leaf { until: days(-1), ..leaf() }, vec![], false),
        (&between, Leaf { from: days(1), ..leaf() }, vec![], false),
        (&below, leaf(), vec![], false),
    ];
    for (number, (ca, leaf, crls, good)) in cases.into_iter().enumerate() {
        let files = Files::with(ca, &leaf);
        let der = files.get("card_authentication_9e.der");
        let Some(theirs) = verify(&trusted, &crls, &der, NOW) else { return };
        let certificates: Vec<&[u8]> = trusted.iter().map(Vec::as_slice).collect();
        let with = (!crls.is_empty()).then_some(&crls[..]);
        let ours =
            decision(&mut relying_system(&certificates, with), &mut files.card(), PLAIN, NOW);
        assert_eq!((ours.is_ok(), theirs), (good, good), "case {number}: {ours:?}");
    }
}

#[test]
fn agrees_about_the_icam_cards() {
    let Some(folder) = folder() else { return };
    let trusted = files(&folder.join("trust"));
    let certificates: Vec<&[u8]> = trusted.iter().map(Vec::as_slice).collect();
    let cards = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let cards: Vec<_> = cards.filter(|path| path.join("chuid.bin").is_file()).collect();
    assert_eq!(cards.len(), 9);
    for card in cards {
        let der = std::fs::read(card.join("card_authentication_9e.der")).unwrap();
        let Some(theirs) = verify(&trusted, &[], &der, NOW) else { return };
        let way = tapstone_piv::AuthenticationMechanism::PkiCak(tapstone_piv::Strategy::NoChuid);
        let ours =
            decision(&mut relying_system(&certificates, None), &mut Plastic::of(&card), way, NOW);
        assert_eq!(ours.is_ok(), theirs, "{card:?}: {ours:?}");
    }
}
