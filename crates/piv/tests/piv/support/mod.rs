//! What the tests share: minted CAs and CRLs, cards that answer out of files, and a door.

mod cards;
mod mint;

use tapstone_piv::{Certificate, Desk, Dialogue, Identity, Mechanism, Refusal, Rules, Strategy};
use tapstone_piv::{Time, Trust};
pub(crate) use tapstone_testing::skip;

pub(crate) use self::cards::{Files, Plastic, generated};
pub(crate) use self::mint::{Ca, Leaf, crl, spki};

/// The moment of the tests: 2026-11-21 12:00 UTC. Everything minted is valid around it.
pub(crate) const NOW: Time = Time(1_795_262_400);

pub(crate) const DAY: u64 = 86_400;

/// Days from now on.
pub(crate) const fn days(number: i64) -> Time {
    Time(NOW.0.saturating_add_signed(number * DAY as i64))
}

pub(crate) const PLAIN: Mechanism = Mechanism::PkiCak(Strategy::Plain);

pub(crate) fn trust(certificates: &[&[u8]], crls: Option<&[Vec<u8>]>) -> Trust {
    let parsed = certificates.iter().map(|der| Certificate::parse(der).unwrap());
    Trust::new(parsed.collect(), crls).unwrap()
}

pub(crate) fn rules() -> Rules {
    Rules { age_limit: std::time::Duration::from_secs(DAY), ..Rules::default() }
}

pub(crate) fn desk(certificates: &[&[u8]], crls: Option<&[Vec<u8>]>) -> Desk {
    Desk::new(trust(certificates, crls), rules())
}

/// One authentication, with what the strategy wants beforehand.
pub(crate) fn dialogue(
    desk: &mut Desk,
    card: &mut Plastic,
    mechanism: Mechanism,
    at: Time,
) -> Dialogue {
    desk.prepare(card, mechanism, at).unwrap();
    desk.authenticate(card, mechanism, None, at)
}

/// The decision; a card that is lost fails the test.
pub(crate) fn decision(
    desk: &mut Desk,
    card: &mut Plastic,
    mechanism: Mechanism,
    at: Time,
) -> Result<Identity, Refusal> {
    dialogue(desk, card, mechanism, at).outcome.unwrap()
}

/// Refused for this reason in every strategy, twice: what a door remembers changes nothing.
#[track_caller]
pub(crate) fn refused_in_all(
    mut desk: impl FnMut() -> Desk,
    mut card: impl FnMut() -> Plastic,
    at: Time,
    code: &str,
) {
    for strategy in Strategy::ALL {
        let (mut desk, mut card) = (desk(), card());
        for _ in 0..2 {
            let decision = decision(&mut desk, &mut card, Mechanism::PkiCak(strategy), at);
            let refusal = decision.expect_err(strategy.name());
            assert_eq!(refusal.code(), code, "{strategy}: {refusal}");
        }
    }
}
