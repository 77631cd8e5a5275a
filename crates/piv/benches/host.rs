//! The host's own time of an authentication: all that is not the card or the way to it.
//!
//! A card of the bench answers from memory, so that a dialogue takes what the host takes; the
//! card's computations are subtracted exactly, as they are timed apart. `cargo bench -p
//! tapstone-piv` prints medians for every algorithm; run as a test it does each once.

#![allow(clippy::unwrap_used, reason = "a bench")]

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_piv::{
    AuthenticationMechanism, CardConnection, CardLost, Certificate, RelyingSystem, Rules, Strategy,
    Time, Trust,
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
    println!(
        "{:9} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "key", "plain", "no-chuid", "known", "overlap", "background"
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
        let ca = Certificate::parse(&std::fs::read(path.join("ca.der")).unwrap()).unwrap();
        let piv = PivApplet::new(CardData::open(&path).unwrap());
        let mut card =
            InProcess(tapstone_vcard::VirtualCard::new().with_default("piv", Box::new(piv)));
        let rules = Rules { age_limit: std::time::Duration::from_secs(3600), ..Rules::default() };
        let mut relying_system =
            RelyingSystem::new(Trust::new(vec![ca], Vec::new()).unwrap(), rules);
        let times =
            Strategy::ALL.map(|strategy| median(&mut relying_system, &mut card, strategy, rounds));
        let [plain, no_chuid, known, overlap, background] = times;
        let name = algorithm.to_string();
        println!("{name:9} {plain:8.0} {no_chuid:8.0} {known:8.0} {overlap:8.0} {background:10.0}");
    }
}

/// In microseconds.
fn median(
    relying_system: &mut RelyingSystem,
    card: &mut InProcess,
    strategy: Strategy,
    rounds: usize,
) -> f64 {
    let way = AuthenticationMechanism::PkiCak(strategy);
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        relying_system.prepare(card, way, Time::now()).unwrap();
        let start = Monotonic.now();
        let dialogue = relying_system.authenticate(card, way, None, Time::now());
        let whole = Monotonic.now() - start;
        assert!(dialogue.outcome.unwrap().is_ok(), "{strategy}");
        times.push((whole - dialogue.log.card()).0);
    }
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e3
}
