//! The one place that a command passes before it is sent.

use std::fmt::{self, Write};

use tapstone_apdu::{Class, CommandApdu, Expected, StatusWord};
use tapstone_names::apdu::{Application, describe};
use zeroize::Zeroizing;

use crate::context::{CardContext, Judged};
use crate::effect::{Effect, Selection};
use crate::refusal::{Refusal, Why};

const VERIFY: u8 = 0x20;
const VERIFY_TLV: u8 = 0x21;

const OPENPGP: Selection = Selection::Only(Application::OpenPgp);

/// What the user allows in this run.
#[derive(Clone, Default)]
pub struct Permissions {
    pin: Option<Zeroizing<Vec<u8>>>,
    writes: bool,
}

impl Permissions {
    /// The PIN that the user named, as the card takes it.
    #[must_use]
    pub fn with_pin(mut self, pin: &[u8]) -> Self {
        self.pin = Some(Zeroizing::new(pin.to_vec()));
        self
    }

    /// The card may be changed where the suite says so.
    #[must_use]
    pub const fn with_writes(mut self) -> Self {
        self.writes = true;
        self
    }
}

/// What whoever wrote a command says that it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Declared {
    /// Nothing: the tables alone decide.
    #[default]
    Nothing,
    /// It reads, where no table says otherwise.
    Reads,
    /// It writes something on the card.
    Writes,
}

/// A command that may be sent, once.
pub struct Cleared<'a>(&'a [u8]);

/// The header only: data may be a PIN.
impl fmt::Debug for Cleared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cleared({:02X?} [{} bytes])", self.0.get(..4), self.0.len())
    }
}

impl<'a> Cleared<'a> {
    /// The bytes to send.
    #[must_use]
    pub const fn into_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// What a retry counter counts: PINs of different applications have the same numbers.
type Reference = (Selection, u8);

/// What is known of a retry counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    /// So many tries are left.
    Left(u8),
    /// The PIN was right in this run, so the counter is where it began.
    Proven,
    /// The card said this instead.
    Untold(StatusWord),
}

/// What a command that was sent will tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    /// An empty VERIFY: how many tries are left (ISO 7816-4, 11.6.6).
    Tries(Reference),
    /// GET DATA C4 of an OpenPGP card: its three counters.
    PasswordStatus,
    /// VERIFY with the PIN: whether it was right.
    Outcome(Reference),
    /// Nothing; but it may change counters.
    Changes,
}

/// Follows what is said to a card, and judges what is to be sent next.
#[derive(Default)]
pub struct Firewall {
    permissions: Permissions,
    context: CardContext,
    counters: Vec<(Reference, Counter)>,
    /// What the PIN is for: where it was sent first.
    reference: Option<Reference>,
    telling: Option<Telling>,
    /// The PIN was tried, and this, or nothing yet, is what came back.
    tried: Option<Option<StatusWord>>,
    /// What the card told of its counters since anything was sent that may change one.
    told: Vec<(Reference, u8)>,
    /// It told less without a try: asking costs.
    asking_costs: bool,
}

impl Firewall {
    /// Of a card of which nothing is known.
    #[must_use]
    pub fn new(permissions: Permissions) -> Self {
        Self { permissions, ..Self::default() }
    }

    /// Lets a command pass, or says by which rule it may not. [`Firewall::answered`] belongs to
    /// each that was sent.
    ///
    /// # Errors
    /// The rule that keeps it back. Nothing is to be sent then.
    pub fn clear<'a>(
        &mut self,
        command: &'a [u8],
        declared: Declared,
    ) -> Result<Cleared<'a>, Refusal> {
        self.context.settle();
        match self.judge(command, declared) {
            Ok(telling) => {
                if let Some(Telling::Outcome(reference)) = telling {
                    self.reference = Some(reference);
                    self.tried = Some(None);
                }
                if let Some(Telling::Outcome(_) | Telling::Changes) = telling {
                    self.told.clear();
                }
                self.telling = telling;
                self.context.sent(command);
                Ok(Cleared(command))
            }
            Err(why) => Err(Refusal { command: self.name(command), why }),
        }
    }

    fn judge(&self, bytes: &[u8], declared: Declared) -> Result<Option<Telling>, Why> {
        let judged = self.context.judge(bytes)?;
        let writes_are_declared = declared == Declared::Writes;
        if is_empty_verify(&judged) {
            self.may_ask(&judged, declared)?;
        }
        match judged.effect {
            Effect::Reads => Ok(self.telling(&judged)),
            Effect::Writes if !writes_are_declared => Err(Why::NotDeclared),
            Effect::Unknown if declared == Declared::Nothing => Err(Why::Unknown),
            Effect::Writes | Effect::Unknown if writes_are_declared && !self.permissions.writes => {
                Err(Why::NotAllowed)
            }
            Effect::Writes | Effect::Unknown if writes_are_declared => Ok(Some(Telling::Changes)),
            Effect::Writes | Effect::Unknown => Ok(None),
            Effect::SpendsTry => self.try_of(&judged).map(|it| Some(Telling::Outcome(it))),
        }
    }

    /// PIV and OpenPGP cards answer an empty VERIFY with the counter. Of others some count it as a
    /// wrong PIN, so that somebody has to want it: with a PIN that was named, or in the suite.
    fn may_ask(&self, judged: &Judged, declared: Declared) -> Result<(), Why> {
        if self.asking_costs {
            return Err(Why::AskingCosts);
        }
        let asked = match self.telling(judged) {
            Some(Telling::Tries((Selection::Only(_), _))) => true,
            Some(Telling::Tries(reference)) => {
                let is_last = |told: &(Reference, u8)| told.1 == 1 && may_be_one(told.0, reference);
                if self.told.iter().any(is_last) {
                    return Err(Why::AskingMayBlock);
                }
                let is_for_another = self.reference.is_some_and(|first| first != reference);
                self.permissions.pin.is_some() && !is_for_another
            }
            _ => false,
        };
        if asked || declared != Declared::Nothing { Ok(()) } else { Err(Why::Asking) }
    }

    /// The card has told a counter. With nothing in between that may change it, it is what it was.
    fn compare(&mut self, reference: Reference, left: u8) {
        let known = self.told.iter().filter(|(of, _)| may_be_one(*of, reference));
        self.asking_costs |= known.map(|(_, before)| *before).max().is_some_and(|it| left < it);
        self.told.retain(|(of, _)| *of != reference);
        self.told.push((reference, left));
    }

    /// What the answer to a command that reads will tell of a counter.
    fn telling(&self, judged: &Judged) -> Option<Telling> {
        let Judged { command, plain, .. } = judged;
        let class = Class(command.cla);
        if !plain || class.is_proprietary() {
            return None;
        }
        match (command.ins, command.p1, command.p2) {
            (VERIFY, 0, _) => Some(Telling::Tries(self.reference_of(command))),
            (0xCA, 0x00, 0xC4) if self.context.selection(class) == OPENPGP => {
                Some(Telling::PasswordStatus)
            }
            _ => None,
        }
    }

    /// The reference whose try a command may spend.
    fn try_of(&self, judged: &Judged) -> Result<Reference, Why> {
        let Judged { command, plain, .. } = judged;
        let is_verify = !Class(command.cla).is_proprietary()
            && (command.ins, command.p1) == (VERIFY, 0)
            && command.expected.is_none();
        if !is_verify || !plain {
            return Err(Why::OtherTry);
        }
        let Some(pin) = &self.permissions.pin else { return Err(Why::NoPin) };
        if let Some(status) = self.tried {
            return Err(Why::Tried(status));
        }
        if **pin != command.data {
            return Err(Why::NotThePin);
        }
        let reference = self.reference_of(command);
        // PIV's other references are fingerprints, and the key that unblocks (SP 800-73-5 part 2,
        // 3.2.1).
        let of_piv = reference.0 == Selection::Only(Application::Piv);
        if of_piv && !matches!(command.p2, 0x00 | 0x80)
            || self.reference.is_some_and(|first| first != reference)
        {
            return Err(Why::OtherReference(command.p2));
        }
        match self.counter(reference) {
            Some(Counter::Proven | Counter::Left(2..)) => Ok(reference),
            Some(Counter::Left(1)) => Err(Why::LastTry),
            Some(Counter::Left(0)) => Err(Why::Blocked),
            Some(Counter::Untold(status)) => Err(Why::Counter(Some(status))),
            None => Err(Why::Counter(None)),
        }
    }

    fn reference_of(&self, command: &CommandApdu) -> Reference {
        let selection = self.context.selection(Class(command.cla));
        let number = match (selection, command.p2) {
            // PW1 has two numbers and one counter (OpenPGP card 3.4, 7.2.2).
            (OPENPGP, 0x82) => 0x81,
            (_, number) => number,
        };
        (selection, number)
    }

    fn counter(&self, reference: Reference) -> Option<Counter> {
        let known = self.counters.iter().find(|(of, _)| *of == reference);
        known.map(|(_, counter)| *counter)
    }

    fn learn(&mut self, reference: Reference, counter: Counter) {
        self.counters.retain(|(of, _)| *of != reference);
        self.counters.push((reference, counter));
    }

    /// The command that asks for the counter of a PIN before this header's VERIFY gives it.
    #[must_use]
    pub fn asks_for_counter(&self, header: [u8; 4]) -> CommandApdu {
        let [cla, _, _, reference] = header;
        let class = Class(cla);
        match self.context.selection(class) {
            OPENPGP => {
                CommandApdu::new(class.plain().0, 0xCA, 0x00, 0xC4).expecting(Expected::SHORT)
            }
            _ => CommandApdu::new(class.plain().0, VERIFY, 0x00, reference),
        }
    }

    /// What came back to the command that was cleared last.
    pub fn answered(&mut self, status: StatusWord, data: &[u8]) {
        self.context.answered(status);
        match self.telling.take() {
            Some(Telling::Tries(reference)) => {
                if let Some(left) = status.tries() {
                    self.compare(reference, left);
                }
                let counter = match (status.tries(), self.counter(reference)) {
                    (Some(left), _) => Counter::Left(left),
                    // It says that the PIN counts as given, which this run did.
                    (None, Some(Counter::Proven)) if status == StatusWord::OK => Counter::Proven,
                    (None, _) => Counter::Untold(status),
                };
                self.learn(reference, counter);
            }
            Some(Telling::PasswordStatus) => {
                let counters = data.get(4..7).filter(|_| status == StatusWord::OK);
                for (place, number) in [(0, 0x81), (2, 0x83)] {
                    let reference = (OPENPGP, number);
                    match counters {
                        Some(tries) => self.learn(reference, Counter::Left(tries[place])),
                        None => self.learn(reference, Counter::Untold(status)),
                    }
                }
            }
            Some(Telling::Outcome(reference)) => match status {
                StatusWord::OK => {
                    self.tried = None;
                    self.learn(reference, Counter::Proven);
                }
                status => self.tried = Some(Some(status)),
            },
            Some(Telling::Changes) | None => {}
        }
    }

    /// The card was reset or powered. What was read of its counters stays: that no other card was
    /// put in meanwhile is for whoever holds the connection.
    pub fn reset(&mut self) {
        self.context.reset();
        self.telling = None;
    }

    /// Name and header, for whoever wrote the command.
    fn name(&self, command: &[u8]) -> String {
        let class = Class(command.first().copied().unwrap_or_default());
        let mut text = describe(command, self.context.selected(class)).name.to_owned();
        let mut gap = " (";
        for byte in command.iter().take(4) {
            let _ = write!(text, "{gap}{byte:02X}");
            gap = " ";
        }
        if gap == " " {
            text.push(')');
        }
        text
    }
}

/// VERIFY without data, for whatever the card makes of it.
fn is_empty_verify(judged: &Judged) -> bool {
    let command = &judged.command;
    let is_verify = matches!(command.ins, VERIFY | VERIFY_TLV);
    is_verify && judged.effect == Effect::Reads && !Class(command.cla).is_proprietary()
}

/// Where nobody knows what is selected, two references of one number may be one.
fn may_be_one(one: Reference, other: Reference) -> bool {
    let are_unknown = matches!((one.0, other.0), (Selection::Unknown(_), Selection::Unknown(_)));
    one == other || are_unknown && one.1 == other.1
}
