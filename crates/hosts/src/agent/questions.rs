//! Which questions were asked before: the same one is not answered twice.

use std::collections::{BTreeMap, VecDeque};

use crate::identity::Identity;

/// So many askers are remembered. A claim that is older than that fails by its nonce; any other
/// question only reads.
const REMEMBERED: usize = 256;

/// The last number of each coordinator's run.
#[derive(Debug, Default)]
pub(super) struct Questions {
    last: BTreeMap<(Identity, u64), u64>,
    order: VecDeque<(Identity, u64)>,
}

impl Questions {
    /// Whether this number is later than all that this asker gave before.
    pub(super) fn is_new(&mut self, from: Identity, run: u64, number: u64) -> bool {
        let asker = (from, run);
        let last = self.last.insert(asker, number);
        match last {
            Some(last) if last >= number => {
                self.last.insert(asker, last);
                false
            }
            Some(_) => true,
            None => {
                self.order.push_back(asker);
                if self.order.len() > REMEMBERED
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.last.remove(&oldest);
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_for_each_asker() {
        let mut questions = Questions::default();
        let [a, b] = [1, 2].map(|byte| Identity([byte; 32]));
        assert!(questions.is_new(a, 1, 0) && questions.is_new(a, 1, 3));
        assert!(!questions.is_new(a, 1, 3) && !questions.is_new(a, 1, 2));
        assert!(questions.is_new(b, 1, 2) && questions.is_new(a, 2, 0));
        (0..1000).for_each(|run| assert!(questions.is_new(b, 10 + run, 0)));
        assert_eq!(questions.last.len(), REMEMBERED);
    }
}
