//! What the tests share: minted CAs and CRLs, cards that answer out of files, and a door.

mod cards;
mod mint;
mod oracle;
mod world;

use tapstone_piv::{
    AuthenticationMechanism, CardIdentity, Certificate, Denial, Dialogue, PolicyRule,
    RelyingSystem, RevocationRule, Rules, Strategy,
};
use tapstone_piv::{Time, Trust};
pub(crate) use tapstone_testing::skip;

pub(crate) use self::cards::{Files, Plastic, generated};
pub(crate) use self::mint::{Ca, Leaf, crl, spki};
pub(crate) use self::world::*;

/// The moment of the tests: 2026-11-21 12:00 UTC. Everything minted is valid around it.
pub(crate) const NOW: Time = Time(1_795_262_400);

pub(crate) const DAY: u64 = 86_400;

/// Days from now on.
pub(crate) const fn days(number: i64) -> Time {
    Time(NOW.0.saturating_add_signed(number * DAY as i64))
}

pub(crate) const PLAIN: AuthenticationMechanism = AuthenticationMechanism::PkiCak(Strategy::Plain);

/// Self-signed certificates are the anchors here. With CRLs everything needs one.
pub(crate) fn trust(certificates: &[&[u8]], crls: Option<&[Vec<u8>]>) -> Trust {
    let parsed = certificates.iter().map(|der| Certificate::parse(der).unwrap());
    let (anchors, intermediates) = parsed.partition(Certificate::is_self_signed);
    let trust = Trust::new(anchors, intermediates).unwrap();
    match crls {
        Some(crls) => trust.checking_revocation(RevocationRule::Require, crls),
        None => trust,
    }
}

/// Under any policy: what the usual ones ask is tested on its own.
pub(crate) fn rules() -> Rules {
    let age_limit = std::time::Duration::from_secs(DAY);
    Rules { age_limit, policies: PolicyRule::Any, ..Rules::default() }
}

pub(crate) fn relying_system(certificates: &[&[u8]], crls: Option<&[Vec<u8>]>) -> RelyingSystem {
    RelyingSystem::new(trust(certificates, crls), rules())
}

/// One authentication, with what the strategy wants beforehand.
pub(crate) fn dialogue(
    relying_system: &mut RelyingSystem,
    card: &mut Plastic,
    mechanism: AuthenticationMechanism,
    at: Time,
) -> Dialogue {
    relying_system.prepare(card, mechanism, at).unwrap();
    relying_system.authenticate(card, mechanism, None, at)
}

/// The decision; a card that is lost fails the test.
pub(crate) fn decision(
    relying_system: &mut RelyingSystem,
    card: &mut Plastic,
    mechanism: AuthenticationMechanism,
    at: Time,
) -> Result<CardIdentity, Denial> {
    dialogue(relying_system, card, mechanism, at).outcome.unwrap()
}

/// Refused for this reason in every strategy, twice: what a door remembers changes nothing.
#[track_caller]
pub(crate) fn refused_in_all(
    mut relying_system: impl FnMut() -> RelyingSystem,
    mut card: impl FnMut() -> Plastic,
    at: Time,
    code: &str,
) {
    for strategy in Strategy::ALL {
        let mut relying_system = relying_system();
        let mut card = card();
        for _ in 0..2 {
            let decision = decision(
                &mut relying_system,
                &mut card,
                AuthenticationMechanism::PkiCak(strategy),
                at,
            );
            let refusal = decision.expect_err(strategy.name());
            assert_eq!(refusal.code(), code, "{strategy}: {refusal}");
        }
    }
}
