//! A suite in the worker: a transaction is held, commands are made ready before the clock is read,
//! and sent between its two readings.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use tapstone_apdu::{Class, CommandApdu, StatusWord};
use tapstone_firewall::{Firewall, Permissions, Refusal};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::order::TurnOrder;
use tapstone_names::pcsc::{PcscCode, PcscFailure, PcscFunction};

use super::job::{JobCase, Piece, Step, SuiteJob};
use super::port::CardPort;
use super::render::{RenderedCommand, Rendering};
use crate::protocol::{self, Exchange, Fault};
use crate::scard::{Disposition, LONGEST_RESPONSE};
use crate::worker::rounds::Work;

/// An operation sends at most so many commands, GET RESPONSE included; more is a card that never
/// comes to an end.
const MOST_EXCHANGES: usize = 2000;

/// pcscd looks for cards about twice a second.
const NOTICE: Duration = Duration::from_secs(2);

/// See the module's text.
pub(crate) struct SuiteRun<P> {
    job: SuiteJob,
    port: P,
    firewall: Firewall,
    /// The card was given a PIN, and keeps it as long as it has power.
    pin_was_given: bool,
    saved: HashMap<String, Vec<u8>>,
    ready: Vec<RenderedCommand>,
    exchanges: Vec<Exchange>,
    output: Vec<u8>,
    response: Box<[u8]>,
    lanes: Vec<u16>,
    unsupported: Vec<(u16, Fault)>,
    lane: usize,
    turns: Turns,
    /// Headers of commands with a PIN whose retry counter has been looked at.
    looked: Vec<Vec<Piece>>,
}

/// In which order the round under way goes through the lanes.
struct Turns {
    order: TurnOrder,
    /// Places in the list of lanes that the card can do.
    places: Vec<usize>,
    begun: Option<Instant>,
}

impl Turns {
    const fn from_seed(seed: u64) -> Self {
        Self { order: TurnOrder::from_seed(seed), places: Vec::new(), begun: None }
    }

    /// Waits a little, if there are several lanes: one alone follows itself at once, as it would
    /// without rounds. Then draws the order of the next round.
    fn begin_round(&mut self, lanes: usize) {
        if let Some(begun) = self.begun.filter(|_| lanes > 1) {
            thread::sleep(self.order.next_pause(begun.elapsed()));
        }
        self.places = self.order.next_order(lanes);
        self.begun = Some(Instant::now());
    }
}

/// What a command brought: all of its data, over any number of GET RESPONSE.
struct CommandData {
    data: Vec<u8>,
    status: StatusWord,
}

impl<P: CardPort> SuiteRun<P> {
    /// Begins a transaction and does what has to be done once.
    pub(crate) fn new(
        job: &SuiteJob,
        mut port: P,
        closed: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Fault> {
        port.begin()?;
        let mut run = Self {
            saved: job.values.iter().cloned().collect(),
            firewall: Firewall::new(permissions(job)),
            job: job.clone(),
            port,
            pin_was_given: false,
            ready: Vec::new(),
            exchanges: Vec::with_capacity(MOST_EXCHANGES),
            output: Vec::with_capacity(LONGEST_RESPONSE),
            response: vec![0; LONGEST_RESPONSE].into_boxed_slice(),
            lanes: Vec::new(),
            unsupported: Vec::new(),
            lane: 0,
            turns: Turns::from_seed(job.seed),
            looked: Vec::new(),
        };
        let prepared = run.prepare_card(closed).and_then(|()| run.try_lanes(closed));
        match prepared {
            Ok(()) => Ok(run),
            Err(fault) => match run.clean_up() {
                Ok(()) => Err(fault),
                Err(left) => Err(Fault::Refused {
                    why: format!(
                        "{fault}; and cleaning up failed, so something may be left: {left}"
                    ),
                }),
            },
        }
    }

    fn prepare_card(&mut self, closed: &mut dyn FnMut() -> bool) -> Result<(), Fault> {
        let steps = self.job.prepare.clone();
        for step in &steps {
            go_on(closed)?;
            self.send(step, None)?;
        }
        Ok(())
    }

    /// Looks at the retry counter of a PIN before the first command that gives it to the card.
    fn look_before(&mut self, step: &Step) -> Result<(), Fault> {
        if !step.asks_for_pin() || self.looked.contains(&step.header) {
            return Ok(());
        }
        self.looked.push(step.header.clone());
        self.look_at_tries(step)
    }

    /// What the card says goes to the firewall, which decides when the PIN comes.
    fn look_at_tries(&mut self, step: &Step) -> Result<(), Fault> {
        let asking = Step { data: Vec::new(), ..step.clone() };
        for mut ready in self.commands(&asking, 0, &JobCase::default(), None)? {
            self.patch(&mut ready)?;
            let Some(header) = ready.bytes.first_chunk::<4>() else { continue };
            let asks = self.firewall.asks_for_counter(*header);
            self.exchange(&asks.encode(), &asking, 0)?;
        }
        self.exchanges.clear();
        Ok(())
    }

    /// One operation of every lane: what the card cannot do is known before anything is timed.
    fn try_lanes(&mut self, closed: &mut dyn FnMut() -> bool) -> Result<(), Fault> {
        for lane in 0..self.job.lanes.len() {
            go_on(closed)?;
            self.lane = lane;
            let tried = self.ready_lane(0).and_then(|()| self.perform());
            let undone = self.undo(tried.is_err());
            match tried {
                Ok(()) => self.lanes.push(lane as u16),
                Err(fault) if fault.is_final() => return Err(fault),
                Err(fault) => self.unsupported.push((lane as u16, fault)),
            }
            undone?;
        }
        if let ([], [(_, fault), ..]) = (&self.lanes[..], &self.unsupported[..]) {
            return Err(fault.clone());
        }
        Ok(())
    }

    /// Sends a step outside the timed section.
    fn send(&mut self, step: &Step, input: Option<&[u8]>) -> Result<CommandData, Fault> {
        self.look_before(step)?;
        let lane = JobCase::default();
        let mut last = CommandData { data: Vec::new(), status: StatusWord::OK };
        let mut data = Vec::new();
        for mut ready in self.commands(step, 0, &lane, input)? {
            self.patch(&mut ready)?;
            last = self.exchange(&ready.bytes, step, 0)?;
            data.extend_from_slice(&last.data);
        }
        check(step, last.status)?;
        self.exchanges.clear();
        if let Some(name) = &step.save {
            self.saved.insert(name.clone(), data);
        }
        Ok(last)
    }

    /// Makes the commands of the current lane's operation, and does what comes before it.
    fn ready_lane(&mut self, round: u64) -> Result<(), Fault> {
        let lane = self.job.lanes[self.lane].clone();
        let input = lane.inputs[(round % lane.inputs.len() as u64) as usize].clone();
        self.exchanges.clear();
        self.output.clear();
        for step in &lane.before {
            self.send(step, Some(&input))?;
        }
        self.ready.clear();
        for (number, step) in lane.measure.iter().enumerate() {
            self.look_before(step)?;
            let number = number as u16 + lane.steps_before();
            let ready = self.commands(step, number, &lane, Some(&input))?;
            self.ready.extend(ready);
        }
        self.exchanges.clear();
        if lane.cold && self.port.is_connected() {
            self.port.end()?;
            let gone = self.port.disconnect(Disposition::Unpower);
            // Before anything else can fail: what comes then is sent to whatever is there.
            self.firewall.reset();
            gone?;
        }
        Ok(())
    }

    fn commands(
        &self,
        step: &Step,
        number: u16,
        lane: &JobCase,
        input: Option<&[u8]>,
    ) -> Result<Vec<RenderedCommand>, Fault> {
        let rendering = Rendering {
            saved: &self.saved,
            pin: self.job.pin.as_ref(),
            protocol: self.port.protocol(),
            lane,
            input,
        };
        rendering.commands(step, number)
    }

    /// Puts in what earlier commands brought. Each such value is one byte.
    fn patch(&self, ready: &mut RenderedCommand) -> Result<(), Fault> {
        for (at, name) in &ready.patches {
            let value = self.saved.get(name).and_then(|value| value.first());
            ready.bytes[*at] = *value.ok_or_else(|| missing(name))?;
        }
        Ok(())
    }

    /// A command and whatever it takes to get all of its answer.
    fn exchange(&mut self, command: &[u8], step: &Step, number: u16) -> Result<CommandData, Fault> {
        let mut data = Vec::new();
        let mut status = self.transmit(command, (step, number, false), &mut data)?;
        // The card wants this very Le (ISO 7816-4, 5.6).
        let again = status.exact_length().filter(|_| data.is_empty()).and_then(|length| {
            CommandApdu::parse(command).ok().and_then(|(command, _)| command.again_with(length))
        });
        if let Some(again) = again {
            status = self.transmit(&again.encode(), (step, number, false), &mut data)?;
        }
        let class = Class(command.first().copied().unwrap_or_default());
        while let Some(length) = status.bytes_to_fetch() {
            let fetch = CommandApdu::get_response(class, length).encode();
            status = self.transmit(&fetch, (step, number, true), &mut data)?;
        }
        Ok(CommandData { data, status })
    }

    #[inline]
    fn transmit(
        &mut self,
        command: &[u8],
        (step, number, fetched): (&Step, u16, bool),
        data: &mut Vec<u8>,
    ) -> Result<StatusWord, Fault> {
        if self.exchanges.len() == MOST_EXCHANGES {
            let why = format!("no end of the answer after {MOST_EXCHANGES} commands");
            return Err(Fault::Garbage { step: step.name.clone(), why });
        }
        let cleared = self.firewall.clear(command, step.declared.into()).map_err(refused)?;
        self.pin_was_given |= step.asks_for_pin();
        let start = Monotonic.now();
        let response = self.port.transmit(cleared, &mut self.response);
        let time = Monotonic.now() - start;
        let response = response.map_err(|failure| at(failure, step))?;
        let sent = command.len() as u32;
        let received = response.len() as u32;
        self.exchanges.push(Exchange { step: number, time, sent, received, fetched });
        match response.split_last_chunk::<2>() {
            Some((more, status)) => {
                let status = StatusWord(u16::from_be_bytes(*status));
                self.firewall.answered(status, more);
                data.extend_from_slice(more);
                Ok(status)
            }
            None => Err(self.no_response(received, step)),
        }
    }

    /// Some drivers answer for a card that was pulled out, with no byte at all; the service notices
    /// a little later.
    fn no_response(&self, received: u32, step: &Step) -> Fault {
        let until = Instant::now() + NOTICE;
        while received == 0 && Instant::now() < until {
            if self.port.is_empty() {
                let call = PcscFunction::Transmit;
                return at(PcscFailure { call, code: PcscCode::REMOVED_CARD }, step);
            }
            thread::sleep(NOTICE / 20);
        }
        Fault::Garbage {
            step: step.name.clone(),
            why: format!(
                "no response APDU: {received} of the 2 bytes of a status word came\n\
                 hint: the card or the reader's driver is at fault: try another reader"
            ),
        }
    }

    /// Connects to an unpowered card and takes it for itself: the first steps of a cold operation.
    /// Another program may come in between, and is then in the time of the second.
    fn connect(&mut self) -> Result<(), Fault> {
        self.firewall.reset();
        let start = Monotonic.now();
        self.port.connect()?;
        let connected = Monotonic.now();
        self.port.begin()?;
        let begun = Monotonic.now();
        for (step, time) in [(0, connected - start), (1, begun - connected)] {
            self.exchanges.push(Exchange { step, time, sent: 0, received: 0, fetched: false });
        }
        Ok(())
    }

    /// One step of the operation: its command, or as many as it takes to read all chunks.
    fn take(&mut self, ready: &mut RenderedCommand, step: &Step) -> Result<(), Fault> {
        self.patch(ready)?;
        // The number of a chunk is one byte.
        for chunk in 0..=u8::MAX {
            if let (Some(at), Some(_)) = (ready.chunk_at, step.read) {
                ready.bytes[at] = chunk;
            }
            let answer = self.exchange(&ready.bytes, step, ready.step)?;
            check(step, answer.status)?;
            if step.output {
                self.output.extend_from_slice(&answer.data);
            }
            let whole = step.read.is_none_or(|full| answer.data.len() < usize::from(full));
            if let Some(name) = &step.save {
                match self.saved.get_mut(name) {
                    Some(value) => {
                        value.clear();
                        value.extend_from_slice(&answer.data);
                    }
                    None => drop(self.saved.insert(name.clone(), answer.data)),
                }
            }
            if whole {
                break;
            }
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Fault> {
        if !self.port.is_connected() && !self.job.clean_up.is_empty() {
            self.connect()?;
        }
        let steps = self.job.clean_up.clone();
        let mut outcome = Ok(());
        for step in &steps {
            // One that fails does not keep the others from being tried.
            outcome = outcome.and(self.send(step, None).map(|_| ()));
        }
        if self.port.is_connected() {
            let ended = self.port.end().and_then(|()| {
                // With the PIN that it was given it would do for others what it does for its owner.
                let reset = self.pin_was_given;
                self.port.disconnect(if reset { Disposition::Reset } else { Disposition::Leave })
            });
            let ended = ended.or_else(|failure| match failure.code {
                // It ended with the card.
                PcscCode::REMOVED_CARD => Ok(()),
                _ => Err(failure),
            });
            outcome = outcome.and(ended.map_err(Into::into));
        }
        outcome
    }
}

impl<P: CardPort> Work for SuiteRun<P> {
    fn lanes(&self) -> u64 {
        self.lanes.len() as u64
    }

    fn lane(&self, number: u64) -> u16 {
        let place = number.checked_rem(self.lanes()).unwrap_or_default();
        let turn = self.turns.places.get(place as usize).copied().unwrap_or_default();
        self.lanes.get(turn).copied().unwrap_or_default()
    }

    fn prepare(&mut self, number: u64) -> Result<(), Fault> {
        if number.is_multiple_of(self.lanes()) {
            self.turns.begin_round(self.lanes.len());
        }
        self.lane = usize::from(self.lane(number));
        self.ready_lane(number / self.lanes())
    }

    fn perform(&mut self) -> Result<(), Fault> {
        let before = self.job.lanes[self.lane].steps_before();
        if self.job.lanes[self.lane].cold {
            self.connect()?;
        }
        let mut ready = std::mem::take(&mut self.ready);
        let steps = std::mem::take(&mut self.job.lanes[self.lane].measure);
        let outcome = ready.iter_mut().try_for_each(|ready| {
            let step = &steps[usize::from(ready.step - before)];
            self.take(ready, step)
        });
        self.job.lanes[self.lane].measure = steps;
        self.ready = ready;
        outcome
    }

    fn undo(&mut self, _failed: bool) -> Result<(), Fault> {
        let exchanges = std::mem::take(&mut self.exchanges);
        if !self.port.is_connected() {
            self.connect()?;
        }
        let after = self.job.lanes[self.lane].after.clone();
        for step in &after {
            self.send(step, None)?;
        }
        self.exchanges = exchanges;
        Ok(())
    }

    fn seen(&mut self) -> (Vec<Exchange>, Vec<u8>) {
        (self.exchanges.clone(), self.output.clone())
    }

    fn prepared(&mut self) -> protocol::Ready {
        let given = |name: &String| self.job.values.iter().any(|(value, _)| value == name);
        let saved = self.saved.iter().filter(|(name, _)| !given(name));
        protocol::Ready {
            warm_up: Vec::new(),
            saved: saved.map(|(name, value)| (name.clone(), value.clone())).collect(),
            unsupported: self.unsupported.clone(),
            lanes: self.lanes.len() as u16,
        }
    }

    fn end(mut self) -> Result<(), Fault> {
        self.clean_up()
    }
}

impl Step {
    /// It gives the card a PIN.
    pub(crate) fn asks_for_pin(&self) -> bool {
        self.data.iter().any(|piece| matches!(piece, Piece::Value(name) if name == "pin"))
    }
}

fn permissions(job: &SuiteJob) -> Permissions {
    let permissions = Permissions::default();
    let permissions = if job.allow_writes { permissions.with_writes() } else { permissions };
    match &job.pin {
        Some(pin) => permissions.with_pin(pin.expose()),
        None => permissions,
    }
}

fn refused(refusal: Refusal) -> Fault {
    Fault::Refused { why: refusal.to_string() }
}

/// The user may have had enough.
fn go_on(closed: &mut dyn FnMut() -> bool) -> Result<(), Fault> {
    if closed() { Err(Fault::Interrupted) } else { Ok(()) }
}

fn check(step: &Step, status: StatusWord) -> Result<(), Fault> {
    // Whatever a suite expects: cards say in many ways that a PIN was wrong.
    if step.asks_for_pin() && status != StatusWord::OK {
        return Err(Fault::Pin { step: step.name.clone(), status: status.into() });
    }
    if step.expect.is_empty() || step.expect.contains(&status.0) {
        return Ok(());
    }
    Err(Fault::Status { step: step.name.clone(), status: status.into() })
}

fn at(failure: PcscFailure, step: &Step) -> Fault {
    Fault::Call { failure, step: Some(step.name.clone()) }
}

fn missing(name: &str) -> Fault {
    Fault::Garbage { step: name.to_owned(), why: "nothing has been saved under this name".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_goes_through_all_lanes_in_an_order_of_its_own() {
        let rounds = |seed| {
            let mut turns = Turns::from_seed(seed);
            let mut rounds = Vec::new();
            for _ in 0..20 {
                turns.begin_round(4);
                rounds.push(turns.places.clone());
            }
            rounds
        };
        let drawn = rounds(1);
        for round in &drawn {
            let mut places = round.clone();
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3]);
        }
        let mut different = drawn.clone();
        different.sort_unstable();
        different.dedup();
        // Forwards and backwards in turn would be two; twenty of 24 orders repeat some.
        assert!(different.len() > 8, "{drawn:?}");
        assert_eq!(drawn, rounds(1));
        assert_ne!(drawn, rounds(2));
    }
}
