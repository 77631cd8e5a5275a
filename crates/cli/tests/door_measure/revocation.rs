//! Revocation and issuers that are fetched, with OpenSSL as CA and responder.

use std::net::TcpListener;

use crate::authority::{Authority, FileServer, Status};
use crate::people::{Holder, measure, row};
use crate::support::{Outcome, Pcscd, Tapstone};

/// Every way of PKI-CAK was refused for this reason.
#[track_caller]
fn all_refused(outcome: &Outcome, code: &str) {
    for strategy in ["", " [known-card]", " [overlap]", " [background-validation]"] {
        let row = row(&outcome.record(), &format!("door.pki-cak{strategy}"));
        assert_eq!(row.status.code.as_deref(), Some(&*format!("refused: {code}")), "{strategy}");
    }
}

fn live(holder: &Holder, address: &str) -> Tapstone {
    holder.measure().args("--rounds 2 --ocsp-live").arg(address)
}

#[test]
fn a_card_is_granted_or_refused_as_its_ca_says() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let Some(authority) = Authority::of(&holder) else { return };
    let _card = holder.insert_fast(&pcscd);
    by_lists(&holder, &authority);
    by_answers(&holder, &authority);
    by_responders(&holder, &authority);
    by_nobody(&holder, &authority);
}

fn by_lists(holder: &Holder, authority: &Authority) {
    let with = |status| holder.measure().args("--rounds 2 --crl").arg(authority.list(status)).run();
    let record = with(Status::Good).exits(0).record();
    assert!(!record.warnings.iter().any(|text| text.contains("revo")), "{:?}", record.warnings);
    all_refused(&with(Status::Revoked).exits(1), "revoked");
    // In a folder, beside something that says nothing.
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(authority.list(Status::Good), folder.path().join("list.crl")).unwrap();
    std::fs::write(folder.path().join("broken.crl"), "nothing").unwrap();
    let outcome = holder.measure().args("--rounds 1 --crl").arg(folder.path()).run().exits(0);
    assert!(outcome.stderr.contains("warning: a CRL that cannot be used"), "{}", outcome.stderr);
}

fn by_answers(holder: &Holder, authority: &Authority) {
    let with = |status| holder.measure().args("--rounds 2 --ocsp").arg(authority.answer(status));
    with(Status::Good).run().exits(0);
    with(Status::Good).args("--ocsp-max-age 1h --require-nonce").run().exits(0);
    all_refused(&with(Status::Revoked).run().exits(1), "revoked");
}

fn by_responders(holder: &Holder, authority: &Authority) {
    // It answers once: all ways and rounds together ask once.
    let responder = authority.responder(Status::Good, 1);
    let run = live(holder, &responder.address).args("--require-nonce").run().exits(0);
    assert!(!run.record().warnings.iter().any(|text| text.contains("revo")));
    drop(responder);
    let responder = authority.responder(Status::Revoked, 100);
    all_refused(&live(holder, &responder.address).run().exits(1), "revoked");
    drop(responder);
    for rule in ["require", "prefer"] {
        let responder = authority.responder(Status::NobodyKnows, 100);
        let run = live(holder, &responder.address).args("--revocation").arg(rule).run().exits(1);
        all_refused(&run, "ocsp-unknown");
    }
}

/// A responder that never answers, and the rules for that.
fn by_nobody(holder: &Holder, authority: &Authority) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/", listener.local_addr().unwrap());
    let run =
        |rule: &str| live(holder, &silent).args("--ocsp-timeout 200ms --revocation").arg(rule);
    all_refused(&run("require").run().exits(1), "ocsp");
    let outcome = run("prefer").run().exits(0);
    let unknown = "granted without knowing whether it was revoked: the OCSP answer about";
    assert!(outcome.stderr.contains(unknown), "{}", outcome.stderr);
    assert!(outcome.record().warnings.iter().any(|text| text.starts_with(unknown)));
    let record = run("off").run().exits(0).record();
    assert!(record.warnings.iter().any(|text| text.starts_with("revocation was not checked")));
    // A list does where no responder answers.
    run("require").arg("--crl").arg(authority.list(Status::Good)).run().exits(0);
    let said = holder.measure().args("--revocation require").run().refusal();
    assert!(said.contains("there is nothing to ask"), "{said}");
}

#[test]
fn a_ca_that_is_missing_is_fetched_with_aia_alone() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let Some(authority) = Authority::of(&holder) else { return };
    let server = FileServer::new();
    let root = authority.below_a_root(&holder, &server.address);
    server.serve(&authority.path("between.der"));
    let _card = holder.insert_fast(&pcscd);
    // The CA was a root, and is certified here without a policy.
    let run = || measure(&root).args("--rounds 2 --policy any");
    all_refused(&run().run().exits(1), "untrusted");
    assert_eq!(server.served(), 0, "nothing is fetched that was not asked for");
    let outcome = run().args("--aia").run().exits(0);
    assert_eq!(server.served(), 1, "once for all ways and rounds");
    let told = format!("came from {}", server.address);
    assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
    assert!(outcome.record().warnings.iter().any(|text| text.ends_with(&told)));
}
