//! The host's own time of an authentication: all that is not the card or the way to it.
//!
//! A card of the bench answers from memory, so that a dialogue takes what the host takes; the
//! card's computations are subtracted exactly, as they are timed apart. `cargo bench -p
//! tapstone-piv` prints medians for every algorithm, without revocation and with an OCSP answer that is kept;
//! `cold` is the first authentication of a door. Run as a test it does each once.

#![allow(clippy::unwrap_used, reason = "a bench")]

use std::path::Path;
use std::process::Command;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_piv::{
    AuthenticationMechanism, CardConnection, CardLost, Certificate, RelyingSystem, RevocationRule,
    Rules, Strategy, Time, Trust,
};
use tapstone_vcard::piv::{CardData, PivAlgorithm, PivApplet, Recipe};

/// The virtual card, in this process.
struct InProcess(tapstone_vcard::VirtualCard);

impl CardConnection for InProcess {
    fn transmit(&mut self, command: &[u8], response: &mut Vec<u8>) -> Result<(), CardLost> {
        response.extend(self.0.transmit(command).expect("never mute").response);
        Ok(())
    }
}

fn main() {
    let rounds = if std::env::args().any(|argument| argument == "--bench") { 200 } else { 1 };
    println!("host time of an authentication, median of {rounds}, in microseconds");
    print!("{:9} {:15} {:>8}", "key", "revocation", "cold");
    println!(
        "{:>9} {:>8} {:>8} {:>8} {:>10}",
        "plain", "no-chuid", "known", "overlap", "background"
    );
    for algorithm in
        [PivAlgorithm::Rsa2048, PivAlgorithm::Rsa3072, PivAlgorithm::P256, PivAlgorithm::P384]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card");
        let curve = PivAlgorithm::P256;
        let recipe = Recipe {
            authentication: curve,
            signature: curve,
            card: algorithm,
            ..Recipe::default()
        };
        CardData::open_or_generate(&path, &recipe).unwrap();
        let piv = PivApplet::new(CardData::open(&path).unwrap());
        let mut card =
            InProcess(tapstone_vcard::VirtualCard::new().with_default("piv", Box::new(piv)));
        row(&algorithm.to_string(), "off", &mut card, &|| trust(&path, None), rounds);
        let Some(answer) = ocsp_answer(&path) else {
            println!("{algorithm}: without OpenSSL there is no OCSP answer");
            continue;
        };
        row(
            &algorithm.to_string(),
            "OCSP, cached",
            &mut card,
            &|| trust(&path, Some(&answer)),
            rounds,
        );
    }
}

fn row(
    key: &str,
    revocation: &str,
    card: &mut InProcess,
    trust: &dyn Fn() -> Trust,
    rounds: usize,
) {
    let new = || {
        let rules = Rules { age_limit: std::time::Duration::from_secs(3600), ..Rules::default() };
        RelyingSystem::new(trust(), rules)
    };
    let mut cold: Vec<u64> = (0..rounds).map(|_| once(&mut new(), card, Strategy::Plain)).collect();
    let mut door = new();
    let times = Strategy::ALL.map(|strategy| {
        let mut times: Vec<u64> = (0..rounds).map(|_| once(&mut door, card, strategy)).collect();
        median(&mut times)
    });
    let [plain, no_chuid, known, overlap, background] = times;
    let cold = median(&mut cold);
    println!(
        "{key:9} {revocation:15} {cold:8.0} {plain:8.0} {no_chuid:8.0} {known:8.0} {overlap:8.0} \
         {background:10.0}"
    );
}

/// A door that has seen nobody yet; what it says of revocation is an answer that it has.
fn trust(card: &Path, answer: Option<&Vec<u8>>) -> Trust {
    let ca = Certificate::parse(&std::fs::read(card.join("ca.der")).unwrap()).unwrap();
    let trust = Trust::new(vec![ca], Vec::new()).unwrap();
    match answer {
        None => trust,
        Some(answer) => trust
            .checking_revocation(RevocationRule::Require, &[])
            .with_ocsp_answers(std::slice::from_ref(answer)),
    }
}

/// OpenSSL's answer about the card, in the name of its CA.
fn ocsp_answer(card: &Path) -> Option<Vec<u8>> {
    let openssl = |arguments: &str| {
        let words = arguments.split_whitespace();
        Command::new("openssl").current_dir(card).args(words).output().ok()
    };
    openssl("x509 -inform DER -in ca.der -out ca.pem")?;
    openssl("x509 -inform DER -in card_authentication_9e.der -out card.pem")?;
    let serial = openssl("x509 -in card.pem -noout -serial")?.stdout;
    let serial = String::from_utf8(serial).ok()?;
    let line = serial.trim().replace("serial=", "V\t401231000000Z\t\t") + "\tunknown\t/CN=card\n";
    std::fs::write(card.join("index"), line).ok()?;
    openssl(
        "ocsp -index index -rsigner ca.pem -rkey ca.p8 -CA ca.pem -CAfile ca.pem -issuer ca.pem \
         -cert card.pem -ndays 2 -respout answer.der",
    )?;
    std::fs::read(card.join("answer.der")).ok()
}

/// One authentication without the card's own time, in nanoseconds.
fn once(door: &mut RelyingSystem, card: &mut InProcess, strategy: Strategy) -> u64 {
    let way = AuthenticationMechanism::PkiCak(strategy);
    door.prepare(card, way, Time::now()).unwrap();
    let start = Monotonic.now();
    let dialogue = door.authenticate(card, way, None, Time::now());
    let whole = Monotonic.now() - start;
    assert!(dialogue.outcome.unwrap().is_ok(), "{strategy}");
    (whole - dialogue.log.card()).0
}

/// In microseconds.
fn median(times: &mut [u64]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e3
}
