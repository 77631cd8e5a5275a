//! Asks a module for all that it can be asked before anything is measured, by a table of functions
//! in this process. A run asks a module in a process of its own; this is for whoever wants to know
//! what any answers do.

use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::Pkcs11Failure;
use tapstone_worker::BoardCell;

use crate::module::{Module, Session, Template};

/// What a module has been asked for, for whoever compares it with what the module said.
#[derive(Debug, Default)]
pub struct Answers {
    /// How many slots, and mechanisms of all tokens.
    pub listed: usize,
    /// Handles that were taken for those of new objects; each was live when it was taken.
    pub made: Vec<u64>,
    /// Handles that a search gave, for a limit of [`SEARCH_LIMIT`].
    pub found: Vec<u64>,
    /// The bytes of attributes.
    pub attributes: Vec<Vec<u8>>,
    /// The calls that failed, each with its code, in their order.
    pub failures: Vec<Pkcs11Failure>,
    /// Answers that cannot be, and how many.
    pub violations: Vec<(Pkcs11Failure, u64)>,
}

/// Objects of a search, at most.
pub const SEARCH_LIMIT: usize = 100;

/// Objects that are made, one after the other.
const OBJECTS: usize = 4;

impl Answers {
    /// Asks for everything in turn; what fails is kept, and the next thing is asked for.
    #[must_use]
    pub fn of_table(functions: CK_FUNCTION_LIST_3_2, place: BoardCell) -> Self {
        let mut answers = Self::default();
        match Module::from_table(functions, place) {
            Ok(module) => answers.ask(&module),
            Err(failure) => answers.failures.push(failure),
        }
        answers
    }

    fn ask(&mut self, module: &Arc<Module>) {
        self.keep(module.library());
        let slots = self.keep(module.slots_with_mechanisms(true)).unwrap_or_default();
        self.listed = slots.iter().map(|(_, mechanisms)| 1 + mechanisms.len()).sum();
        if let Some(session) = self.keep(Session::open(module, 1, false)) {
            self.keep(session.login(None));
            for _ in 0..OBJECTS {
                let made = self.keep(session.create_labelled_object("tapstone"));
                self.made.extend(made.map(|object| object as u64));
            }
            let pair =
                session.generate_key_pair(CKM_EC_KEY_PAIR_GEN, Template::new(), Template::new());
            if let Some((public, private)) = self.keep(pair) {
                self.made.extend([public as u64, private as u64]);
            }
            let found = self.keep(session.find_objects(Template::new(), SEARCH_LIMIT));
            let found = found.unwrap_or_default();
            self.found.extend(found.iter().map(|object| *object as u64));
            for object in found.into_iter().take(OBJECTS) {
                let value = self.keep(session.attribute(object, CKA_VALUE));
                self.attributes.extend(value);
                session.flag(object, CKA_EXTRACTABLE);
            }
            self.keep(session.logout());
        }
        self.keep(module.finalize());
        self.violations = module.take_violations();
    }

    fn keep<T>(&mut self, answer: Result<T, Pkcs11Failure>) -> Option<T> {
        answer.map_err(|failure| self.failures.push(failure)).ok()
    }
}
