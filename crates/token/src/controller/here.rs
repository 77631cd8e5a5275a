//! Workers on this machine: started, made to load the module, and logged in to their token once.

use std::time::Duration;

use cryptoki_sys::{
    CKF_PROTECTED_AUTHENTICATION_PATH, CKF_TOKEN_INITIALIZED, CKF_USER_PIN_COUNT_LOW,
    CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED,
};

use super::error::TokenMeasureError;
use super::{Site, TokenController, TokenOptions, talk, targets};
use crate::module::{LibraryInfo, MechanismInfo, SlotInfo, TokenInfo};
use crate::protocol::{Enter, Login, Order, Report, Trouble};

/// How long a token with a PIN pad of its own waits for a person.
const PIN_PAD: Duration = Duration::from_secs(300);

impl TokenController {
    /// Loads the module in a first process, finds the tokens, and logs in to each once.
    pub(super) fn open_here(&mut self) -> Result<(), TokenMeasureError> {
        let first = self.spawn()?;
        self.library = self.load(first)?;
        let slots = self.slots(first)?;
        let TokenOptions { module, tokens, .. } = self.here();
        self.targets = targets::choose(module, tokens, slots)?;
        self.enter(first, 0)?;
        (1..self.targets.len()).try_for_each(|token| self.join_here(token))
    }

    /// One more process for a token. The token's flags are read again before it logs in.
    pub(super) fn join_here(&mut self, token: usize) -> Result<(), TokenMeasureError> {
        let number = self.spawn()?;
        self.load(number)?;
        let id = self.targets[token].slot.id;
        let slots = self.slots(number)?;
        let now = slots.into_iter().find(|slot| slot.id == id).and_then(|slot| slot.token);
        if let Some(now) = now {
            self.targets[token].token.flags = now.flags;
        }
        self.enter(number, token)
    }

    pub(super) fn spawn(&mut self) -> Result<usize, TokenMeasureError> {
        let command = self.here().worker.clone();
        self.workers.start(&command).map_err(TokenMeasureError::Spawn)
    }

    pub(super) fn load(&mut self, number: usize) -> Result<LibraryInfo, TokenMeasureError> {
        let module = self.here().module.clone();
        let board = self.workers.board(number).unwrap_or_default();
        let arguments = self.here().module_arguments.clone();
        let order = Order::Load { module: module.clone(), arguments, board };
        let loaded = self.ask_here(number, &order, |report| match report {
            Report::Loaded(loaded) => Some(loaded),
            _ => None,
        })?;
        loaded.map_err(|error| TokenMeasureError::Load { module, error })
    }

    fn slots(&mut self, number: usize) -> Result<Vec<SlotInfo>, TokenMeasureError> {
        let with_mechanisms = self.slots_and_mechanisms(number, false)?;
        Ok(with_mechanisms.into_iter().map(|(slot, _)| slot).collect())
    }

    pub(super) fn slots_and_mechanisms(
        &mut self,
        number: usize,
        mechanisms: bool,
    ) -> Result<Vec<(SlotInfo, Vec<MechanismInfo>)>, TokenMeasureError> {
        let order = Order::Slots { mechanisms };
        let slots = self.ask_here(number, &order, |report| match report {
            Report::Slots(slots) => Some(slots),
            _ => None,
        })?;
        let what = self.here().module.display().to_string();
        slots.map_err(|failure| TokenMeasureError::Call { what, failure })
    }

    /// What a token says that it can do, by its place among the targets.
    ///
    /// # Errors
    /// The module does not tell, or the worker is lost.
    pub fn mechanisms(&mut self, token: usize) -> Result<Vec<MechanismInfo>, TokenMeasureError> {
        let numbers = self.ensure(token + 1, 1)?;
        let slot = self.targets[token].slot.id;
        let slots = self.slots_and_mechanisms(numbers[token][0], true)?;
        let its_own = slots.into_iter().find(|(known, _)| known.id == slot);
        Ok(its_own.map(|(_, mechanisms)| mechanisms).unwrap_or_default())
    }

    /// Opens the token's first session and logs in: one try, and none when the flags forbid it.
    fn enter(&mut self, number: usize, token: usize) -> Result<(), TokenMeasureError> {
        let target = &self.targets[token];
        if !target.token.has(CKF_TOKEN_INITIALIZED) {
            return Err(TokenMeasureError::Uninitialised { slot: target.slot.id });
        }
        let login = self.login_for(&target.token);
        allow_login(&target.token, &login, self.here().accept_low_count)?;
        let usual = self.workers.timeouts();
        let patient = match login {
            Login::ProtectedPath => {
                (self.here().announce)(&format!(
                    "enter the PIN of {} on the token's own pad",
                    self.describe(token)
                ));
                talk::timeouts(PIN_PAD.max(usual.call))
            }
            _ => usual,
        };
        let enter = Enter { slot: target.slot.id, login };
        let order = Order::Enter(enter);
        self.workers.set_timeouts(patient);
        let entered = self.ask_here(number, &order, |report| match report {
            Report::Entered(entered) => Some(entered),
            _ => None,
        });
        self.workers.set_timeouts(usual);
        match entered? {
            Ok(_) => {
                self.entered.insert(number, token);
                Ok(())
            }
            Err(Trouble::Call { failure, .. }) => {
                Err(TokenMeasureError::Call { what: self.describe(token), failure })
            }
            Err(other) => Err(TokenMeasureError::Keys { trouble: other }),
        }
    }

    /// A token with a PIN pad of its own asks for the PIN itself, unless the user gave one.
    pub(super) fn login_for(&self, token: &TokenInfo) -> Login {
        let pad = token.has(CKF_PROTECTED_AUTHENTICATION_PATH);
        match &self.here().login {
            Login::None if pad => Login::ProtectedPath,
            login => login.clone(),
        }
    }

    /// Says something to the user of this machine.
    pub(super) fn announce(&self, text: &str) {
        (self.here().announce)(text);
    }

    /// Who asks for this has no hosts.
    fn here(&self) -> &TokenOptions {
        match &self.site {
            Site::Here(options) => options,
            Site::Hosts(_) => {
                unreachable!("workers are started here only where there are no hosts")
            }
        }
    }
}

/// Whether the token's flags leave room for a try of the PIN.
fn allow_login(
    token: &TokenInfo,
    login: &Login,
    accept_low_count: bool,
) -> Result<(), TokenMeasureError> {
    if *login == Login::None {
        return Ok(());
    }
    let risk =
        |why, hint| Err(TokenMeasureError::PinAtRisk { label: token.label.clone(), why, hint });
    if token.has(CKF_USER_PIN_LOCKED) {
        return risk("the PIN is locked", "only the security officer can unlock it");
    }
    if token.has(CKF_USER_PIN_FINAL_TRY) {
        return risk(
            "one wrong PIN more would lock it",
            "log in once with the vendor's own tool, which resets the counter",
        );
    }
    if token.has(CKF_USER_PIN_COUNT_LOW) && !accept_low_count {
        return risk(
            "a wrong PIN was given since the last login",
            "if you are sure of the PIN, say --accept-low-count",
        );
    }
    Ok(())
}
