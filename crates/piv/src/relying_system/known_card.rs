//! The way of a card that is known: its key was registered by a full reading that was granted.

use tapstone_measure::clock::{Clock, Monotonic};

use super::{CHUID_START, KEY_9E, RelyingSystem, beside_the_card, challenge};
use crate::channel::{CardChannel, DialogueEnd};
use crate::chuid::{CardIdentity, Chuid};
use crate::denial::Denial;
use crate::log::DialogueStep;
use crate::object;
use crate::strategy::Strategy;
use crate::time::Time;
use crate::trust::CertificationPath;

impl RelyingSystem {
    /// The register first, and everything when that does not do.
    pub(super) fn known_card(
        &mut self,
        channel: &mut CardChannel<'_>,
        strategy: Strategy,
        at: Time,
        fell_back: &mut bool,
    ) -> Result<CardIdentity, DialogueEnd> {
        if !self.known.is_empty() {
            channel.select()?;
            if let Some(identity) = self.recognised(channel, strategy, at)? {
                return Ok(identity);
            }
        }
        *fell_back = true;
        let full = self.full(channel, Strategy::KnownCard, at, &mut false)?;
        self.known.register(&full.identity, full.path);
        Ok(full.identity)
    }

    /// Whether this is a registered card that proves to have the registered key.
    fn recognised(
        &mut self,
        channel: &mut CardChannel<'_>,
        strategy: Strategy,
        at: Time,
    ) -> Result<Option<CardIdentity>, DialogueEnd> {
        let start = channel.step(DialogueStep::ReadChuid, |channel| {
            let start = channel.get_data(object::CHUID, CHUID_START)?;
            Ok::<_, DialogueEnd>(Chuid::parse_start(&start)?)
        })?;
        start.in_time(at)?;
        let Some((identity, path)) = self.known.registered(&start) else { return Ok(None) };
        if strategy.rechecks_meanwhile() {
            return self.recognised_meanwhile(channel, &path, identity, at);
        }
        let rechecked = channel.step(DialogueStep::Validate, |_| self.trust.recheck(&path, at));
        let Ok(unchecked) = rechecked else {
            self.known.forget(&identity);
            return Ok(None);
        };
        match challenge(channel, path.certificate(), KEY_9E) {
            Ok(()) => {
                channel.log.unchecked = unchecked;
                Ok(Some(identity))
            }
            Err(DialogueEnd::Lost(lost)) => Err(lost.into()),
            // Another key, or another kind of key: the full reading says what it is.
            Err(DialogueEnd::Refused(_)) => Ok(None),
        }
    }

    /// The card signs while its stored path is looked at again. Only both together recognise it.
    fn recognised_meanwhile(
        &mut self,
        channel: &mut CardChannel<'_>,
        path: &CertificationPath,
        identity: CardIdentity,
        at: Time,
    ) -> Result<Option<CardIdentity>, DialogueEnd> {
        let trust = &self.trust;
        let (rechecked, signed) = std::thread::scope(|scope| {
            let recheck = beside_the_card(scope, || {
                let start = Monotonic.now();
                (trust.recheck(path, at), Monotonic.now() - start)
            })?;
            let signed = challenge(channel, path.certificate(), KEY_9E);
            Ok::<_, Denial>((recheck.join(), signed))
        })?;
        // Only a bug panics there, and then nobody may enter.
        let (rechecked, time) = rechecked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        channel.took(DialogueStep::Validate, time);
        let Ok(unchecked) = rechecked else {
            self.known.forget(&identity);
            return Ok(None);
        };
        match signed {
            Ok(()) => {
                channel.log.unchecked = unchecked;
                Ok(Some(identity))
            }
            Err(DialogueEnd::Lost(lost)) => Err(lost.into()),
            Err(DialogueEnd::Refused(_)) => Ok(None),
        }
    }
}
