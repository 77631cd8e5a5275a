//! Keys that runs made on a token and did not remove: found by label and id, told apart by what this
//! machine has noted of its own runs, and removed when their run is dead.

use cryptoki_sys::CKF_LOGIN_REQUIRED;
use tapstone_key_journal::{DeadJournal, KnownKeys, TokenName, known_keys, users_folder};

use super::TokenController;
use super::error::TokenMeasureError;
use crate::protocol::{KeyOwner, Leftover, Login, Order, OwnKey, Report, Task};

impl TokenController {
    /// The keys of runs on the tokens, with who they belong to. With `remove` those of dead runs are
    /// destroyed, and no others.
    ///
    /// # Errors
    /// A token cannot be searched.
    pub fn leftovers(&mut self, remove: bool) -> Result<Vec<Leftover>, TokenMeasureError> {
        let mut all = Vec::new();
        for token in 0..self.targets.len() {
            let known = self.known_keys_with_warnings(token);
            let mut left = self.sweep(token, false, None)?;
            for key in &mut left {
                key.owner = owner_of(key, &known);
            }
            if remove {
                let removed = self.reclaim(token, known.dead)?;
                for key in &mut left {
                    let same = |it: &&Leftover| (&it.class, &it.id) == (&key.class, &key.id);
                    key.removed = removed.iter().find(same).is_some_and(|it| it.removed);
                }
            }
            all.extend(left);
        }
        Ok(all)
    }

    /// Removes what dead runs of this machine left on the tokens, with this run's login; returns it.
    /// Without a login that the token wants, its keys cannot be seen, and stay.
    ///
    /// # Errors
    /// A token cannot be searched.
    pub fn remove_keys_of_dead_runs(&mut self) -> Result<Vec<Leftover>, TokenMeasureError> {
        let mut all = Vec::new();
        for token in 0..self.targets.len() {
            let target = &self.targets[token].token;
            if self.login_for(target) == Login::None && target.has(CKF_LOGIN_REQUIRED) {
                continue;
            }
            let dead = self.known_keys_with_warnings(token).dead;
            all.extend(self.reclaim(token, dead)?);
        }
        Ok(all)
    }

    /// Keys on a token by their marks; with `run` only those of that run.
    pub(super) fn sweep(
        &mut self,
        token: usize,
        remove: bool,
        run: Option<String>,
    ) -> Result<Vec<Leftover>, TokenMeasureError> {
        let Some(&number) = self.processes_of(token).first() else { return Ok(Vec::new()) };
        let left = self.ask(number, Task::Leftovers { remove, run }, |report| match report {
            Report::Leftovers(left) => Some(left),
            _ => None,
        })?;
        left.map_err(|failure| TokenMeasureError::Call { what: self.describe(token), failure })
    }

    /// Nothing is left of this run's dead workers on a token of this machine.
    pub(super) fn forget_keys_of_dead_workers(&self, token: usize) {
        let is_ours = |key: &OwnKey| key.label == self.run;
        for journal in self.known_keys(token).dead {
            if journal.keys.iter().all(is_ours) {
                journal.clear();
            }
        }
    }

    /// Destroys the keys of dead runs; forgets those of which nothing is left.
    fn reclaim(
        &mut self,
        token: usize,
        dead: Vec<DeadJournal>,
    ) -> Result<Vec<Leftover>, TokenMeasureError> {
        let Some(&number) = self.processes_of(token).first() else { return Ok(Vec::new()) };
        let keys: Vec<OwnKey> = dead.iter().flat_map(|journal| journal.keys.clone()).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let reclaimed = self.ask_here(number, &Order::Reclaim { keys }, |report| match report {
            Report::Leftovers(left) => Some(left),
            _ => None,
        })?;
        let mut left = reclaimed
            .map_err(|failure| TokenMeasureError::Call { what: self.describe(token), failure })?;
        for key in &mut left {
            key.owner = KeyOwner::DeadRun;
        }
        if left.iter().all(|key| key.removed) {
            dead.into_iter().for_each(DeadJournal::clear);
        }
        Ok(left)
    }

    /// What this machine knows of the keys on a token.
    fn known_keys(&self, token: usize) -> KnownKeys {
        let target = &self.targets[token].token;
        let name = TokenName { serial: target.serial.clone(), label: target.label.clone() };
        let known = users_folder().map(|folder| known_keys(&folder, &name));
        known.unwrap_or_default()
    }

    fn known_keys_with_warnings(&self, token: usize) -> KnownKeys {
        let known = self.known_keys(token);
        for warning in &known.warnings {
            self.announce(&format!("warning: notes of keys are not read: {warning}"));
        }
        known
    }
}

fn owner_of(key: &Leftover, known: &KnownKeys) -> KeyOwner {
    let is_this = |noted: &OwnKey| (&noted.label, &noted.id) == (&key.label, &key.id);
    if known.alive.iter().any(is_this) {
        return KeyOwner::LiveRun;
    }
    match known.dead.iter().any(|journal| journal.keys.iter().any(is_this)) {
        true => KeyOwner::DeadRun,
        false => KeyOwner::Unknown,
    }
}
