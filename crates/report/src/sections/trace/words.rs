//! What to change, and what became of a program's behaviour, in words.

use tapstone_record::{Behaviour, FindingKind};

/// What to change where no trial can show what that would bring.
pub(super) const fn remedy(kind: &FindingKind) -> &'static str {
    match kind {
        FindingKind::Sleep => "wait for what the sleep is there for, and only as long as it takes",
        FindingKind::BusyWait => "wait for the event with a time limit instead of asking for it",
        FindingKind::PollQuantum => {
            "wait for the event itself, or look for it at shorter intervals"
        }
        FindingKind::RepeatedLookup => "keep the answer, or look it up only when it is needed",
        FindingKind::RepeatedSearch => "search once, and keep the handles",
        FindingKind::RepeatedRead => "read once, and keep the answer",
        FindingKind::LengthProbe => "pass a buffer that is large enough at once",
        FindingKind::MultiPart => "pass a message that is there as a whole in one call",
        FindingKind::KeyChurn => "make the key once, and keep its handle",
        FindingKind::RepeatedCommand => "keep the response as long as nothing can have changed it",
        FindingKind::DelayedAck => "send each command in one write, or set TCP_NODELAY",
        FindingKind::Serialised => {
            "give each thread a session of its own, and hold no lock during a call"
        }
        FindingKind::SessionChurn => "open it once, and keep it",
        FindingKind::Other(_) => "a newer version of Tapstone may know what to try",
    }
}

pub(super) const fn behaviour(behaviour: Behaviour) -> &'static str {
    match behaviour {
        Behaviour::Same => "same",
        Behaviour::Differs => "DIFFERS",
        Behaviour::NotComparable => "not comparable",
    }
}
