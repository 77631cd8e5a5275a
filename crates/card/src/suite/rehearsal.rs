//! A suite gone through before any card is asked, as with a card that answers 9000 to everything:
//! what no card is ever sent is an error in the suite's own line.

use tapstone_apdu::{CommandApdu, StatusWord};
use tapstone_firewall::{CardContext, Effect, Why};

use super::job::{DeclaredEffect, Piece, Split, Step, SuiteJob};

/// See the module's text.
#[derive(Clone)]
pub(super) struct Rehearsal<'a> {
    job: &'a SuiteJob,
    context: CardContext,
}

impl<'a> Rehearsal<'a> {
    /// Of a job whose values are known.
    pub(super) fn new(job: &'a SuiteJob) -> Self {
        Self { job, context: CardContext::default() }
    }

    /// The card is unpowered.
    pub(super) fn unpower(&mut self) {
        self.context.reset();
    }

    /// Sends a step, or says why no card is sent such a command. What only a run brings is judged
    /// in the run.
    pub(super) fn send(&mut self, step: &Step) -> Result<(), String> {
        let name = &step.name;
        if step.asks_for_pin() && !step.gives_only_the_pin() {
            return Err(format!(
                "{name}: {{pin}} is for a plain VERIFY (INS 20, P1 00), with nothing beside it: \
                 pin_bytes says how long it is"
            ));
        }
        let Some(bytes) = self.stand_in(step) else { return Ok(()) };
        match self.context.effect(&bytes) {
            // Made of what stands in for an input.
            Err(Why::Malformed(_) | Why::Envelope | Why::OpenChain) => {}
            Err(why) => return Err(format!("{name} is never sent: {why}")),
            Ok(Effect::Writes) if step.declared != DeclaredEffect::Writes => {
                return Err(format!(
                    "{name} changes the card: say under writes what, so that it is done only with \
                     --allow-writes"
                ));
            }
            Ok(Effect::Unknown) if step.declared == DeclaredEffect::Nothing => {
                return Err(format!(
                    "{name}: no standard says what it does to the card: say effect = \"read\", or \
                     what it writes"
                ));
            }
            Ok(Effect::SpendsTry) if !step.gives_only_the_pin() => {
                return Err(format!(
                    "{name} can cost a try of a PIN or a key: the only such command that is sent \
                     is a plain VERIFY with data = \"{{pin}}\""
                ));
            }
            Ok(_) => {}
        }
        self.context.sent(&bytes);
        self.context.answered(StatusWord::OK);
        Ok(())
    }

    /// The command with nothing in place of what is not known yet; `None` where that is its class
    /// or its instruction.
    fn stand_in(&self, step: &Step) -> Option<Vec<u8>> {
        let Some(Piece::Bytes(first)) = step.header.first() else { return None };
        if first.len() < 2 {
            return None;
        }
        let header: [u8; 4] = self.bytes(&step.header, 1).try_into().ok()?;
        let [cla, ins, p1, p2] = header;
        let mut data = self.bytes(&step.data, 8);
        data.truncate(0xFFFF);
        Some(CommandApdu::new(cla, ins, p1, p2).with_data(&data).encode())
    }

    fn bytes(&self, pieces: &[Piece], unknown: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Bytes(known) => bytes.extend_from_slice(known),
                Piece::Value(name) => {
                    let known = self.job.values.iter().find(|(known, _)| known == name);
                    match known.filter(|_| unknown > 1) {
                        Some((_, value)) => bytes.extend_from_slice(value),
                        None => bytes.resize(bytes.len() + unknown, 0),
                    }
                }
                Piece::Number { width, .. } => bytes.resize(bytes.len() + usize::from(*width), 0),
            }
        }
        bytes
    }
}

impl Step {
    /// VERIFY, in one command, with the PIN and nothing else.
    fn gives_only_the_pin(&self) -> bool {
        let header = match self.header.first() {
            Some(Piece::Bytes(bytes)) => bytes.get(1..3),
            _ => None,
        };
        header == Some(&[0x20, 0x00])
            && self.data == [Piece::Value("pin".to_owned())]
            && self.split == Split::None
            && self.expected.is_none()
    }
}
