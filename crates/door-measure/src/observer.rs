//! Who is told how a measurement goes on.

/// Watches a measurement from outside: rounds, and what a user has to know.
pub trait DoorObserver {
    /// A round begins: its number from one, of so many.
    fn round(&mut self, number: u64, rounds: u64);

    /// Something worth a line: the worker waits for a card, or was lost.
    fn notice(&mut self, text: &str);
}
