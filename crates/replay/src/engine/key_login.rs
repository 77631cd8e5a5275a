//! The PIN for keys that ask for it at each operation (CKA_ALWAYS_AUTHENTICATE): given by one thread
//! after the other until the token has taken it once, and by none after it was refused, so that a
//! wrong one spends one try of each process. Until it was taken, any other answer is a refusal: not
//! every token says that it is the PIN.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use tapstone_names::pkcs11::Rv;
use tapstone_pin::Pin;

use super::calls::Called;

/// The PIN, and what the token has said of it so far.
pub(super) struct KeyLogin {
    pin: Option<Pin>,
    turn: Mutex<()>,
    is_accepted: AtomicBool,
    is_refused: AtomicBool,
}

impl KeyLogin {
    pub(super) fn new(pin: Option<&Pin>) -> Self {
        Self {
            pin: pin.cloned(),
            turn: Mutex::new(()),
            is_accepted: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// For the one call that needs it.
    pub(super) fn pin(&self) -> Option<&[u8]> {
        self.pin.as_ref().map(Pin::expose)
    }

    /// Makes a call that gives the PIN, if that may be given.
    pub(super) fn log_in(&self, call: impl FnOnce() -> Option<Called>) -> Option<Called> {
        let turn = || self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _turn = (!self.is_accepted.load(Relaxed)).then(turn);
        if self.pin.is_none() || self.is_refused.load(Relaxed) {
            return None;
        }
        let went = call()?;
        let was_accepted = self.is_accepted.fetch_or(went.result == 0, Relaxed);
        let is_refusal = went.result != 0 && !was_accepted;
        self.is_refused.fetch_or(is_refusal || Rv(went.result).is_pin(), Relaxed);
        Some(went)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use cryptoki_sys::{CKR_FUNCTION_FAILED, CKR_OK, CKR_PIN_INCORRECT};
    use tapstone_measure::units::Nanos;

    use super::*;

    /// How often a token hears the PIN, of eight threads that give it ten times each.
    fn given(pin: Option<&Pin>, code: u64) -> u64 {
        let login = KeyLogin::new(pin);
        let heard = AtomicU64::new(0);
        let answer = || {
            heard.fetch_add(1, Relaxed);
            std::thread::yield_now();
            Some(Called { begin: Nanos(0), end: Nanos(1), result: code, output: 0 })
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10).filter_map(|_| login.log_in(answer)).count());
            }
        });
        heard.into_inner()
    }

    #[test]
    fn a_refused_pin_is_given_once_and_an_accepted_one_each_time() {
        let pin = Pin::new(b"1234".to_vec());
        assert_eq!(given(Some(&pin), CKR_PIN_INCORRECT as u64), 1);
        assert_eq!(given(Some(&pin), CKR_FUNCTION_FAILED as u64), 1, "it may mean the PIN");
        assert_eq!(given(Some(&pin), CKR_OK as u64), 80);
        assert_eq!(given(None, CKR_OK as u64), 0);
    }
}
