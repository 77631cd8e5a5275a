//! Steps as commands, ready to be sent: everything is filled in before the clock is read, but for
//! what other commands of the same operation bring.

use std::collections::HashMap;

use tapstone_apdu::{CommandApdu, Expected, Form};

use super::job::{JobCase, Piece, Secret, Split, Step};
use crate::protocol::Fault;
use crate::scard::CardProtocol;

/// Data of one command in a chain (ISO 7816-4, 5.3.3): all that a short command holds.
const CHAIN: usize = 255;

/// Data of one command (ISO 7816-4, 5.1).
const LONGEST: usize = 65_535;

/// A command that is ready to be sent.
pub(super) struct RenderedCommand {
    pub(super) bytes: Vec<u8>,
    pub(super) step: u16,
    /// Where bytes go that another command of the operation brings.
    pub(super) patches: Vec<(usize, String)>,
    /// Where the number of the chunk is.
    pub(super) chunk_at: Option<usize>,
}

/// What a step's text is filled in with.
pub(super) struct Rendering<'a> {
    pub(super) saved: &'a HashMap<String, Vec<u8>>,
    pub(super) pin: Option<&'a Secret>,
    pub(super) protocol: CardProtocol,
    pub(super) lane: &'a JobCase,
    pub(super) input: Option<&'a [u8]>,
}

impl Rendering<'_> {
    /// The commands of a step, all but what other commands of the operation bring.
    pub(super) fn commands(&self, step: &Step, number: u16) -> Result<Vec<RenderedCommand>, Fault> {
        let data = self.bytes(&step.data, step)?;
        if step.split == Split::None && data.len() > LONGEST {
            let why = format!("{} bytes of data, and a command holds {LONGEST}", data.len());
            return Err(Fault::Garbage { step: step.name.clone(), why });
        }
        let size = match step.split {
            Split::None => data.len().max(1),
            Split::Chunks(size) => usize::from(size).max(1),
            Split::Chain => CHAIN,
        };
        let parts: Vec<&[u8]> =
            if data.is_empty() { vec![&[]] } else { data.chunks(size).collect() };
        let last = parts.len() - 1;
        let ready = |(chunk, part): (usize, &[u8])| {
            let (mut header, patches, chunk_at) = self.header(step, chunk as u32)?;
            let more = step.split == Split::Chain && chunk < last;
            if more {
                header[0] |= 0x10;
            }
            let [cla, ins, p1, p2] = header;
            let mut command = CommandApdu::new(cla, ins, p1, p2).with_data(part);
            // T=0 has no command with data and Le: GET RESPONSE brings the answer (ISO 7816-3,
            // 12.2.5).
            let both = !part.is_empty() && self.protocol.name() == Some("T=0") && !step.extended;
            let expected = step.expected.and_then(Expected::bytes);
            if let Some(expected) = expected.filter(|_| !more && !both) {
                command = command.expecting(expected);
            }
            let form = if step.extended { Form::Extended } else { Form::Short };
            Ok(RenderedCommand { bytes: command.encode_as(form), step: number, patches, chunk_at })
        };
        parts.into_iter().enumerate().map(ready).collect()
    }

    fn number(&self, name: &str, chunk: u32) -> Option<u32> {
        Some(match name {
            "chunk" => chunk,
            "length" => self.input?.len() as u32,
            "set_ups" => u32::from(self.lane.set_ups),
            "operations" => u32::from(self.lane.operations),
            other => match other.strip_suffix(".length") {
                Some(value) => self.value(value)?.len() as u32,
                None => return None,
            },
        })
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        match name {
            "input" => self.input,
            "pin" => self.pin.map(Secret::expose),
            other => self.saved.get(other).map(Vec::as_slice),
        }
    }

    fn bytes(&self, pieces: &[Piece], step: &Step) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::Value(name) => {
                    bytes.extend_from_slice(self.value(name).ok_or_else(|| missing_in(name, step))?)
                }
                Piece::Number { name, width } => {
                    let number = self.number(name, 0).ok_or_else(|| missing_in(name, step))?;
                    bytes.extend_from_slice(&number.to_be_bytes()[4 - usize::from(*width)..]);
                }
            }
        }
        Ok(bytes)
    }

    /// Four bytes, where in the command something is put in later, and where the chunk's number is.
    #[expect(clippy::type_complexity, reason = "three parts of one thing, used once")]
    fn header(
        &self,
        step: &Step,
        chunk: u32,
    ) -> Result<([u8; 4], Vec<(usize, String)>, Option<usize>), Fault> {
        let mut bytes = Vec::with_capacity(4);
        let mut patches = Vec::new();
        let mut chunk_at = None;
        for piece in &step.header {
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::Value(name) => {
                    patches.push((bytes.len(), name.clone()));
                    bytes.push(0);
                }
                Piece::Number { name, width } => {
                    if name == "chunk" {
                        chunk_at = Some(bytes.len() + usize::from(*width) - 1);
                    }
                    let number = self.number(name, chunk).ok_or_else(|| missing_in(name, step))?;
                    bytes.extend_from_slice(&number.to_be_bytes()[4 - usize::from(*width)..]);
                }
            }
        }
        let header = bytes.try_into().map_err(|bytes: Vec<u8>| Fault::Garbage {
            step: step.name.clone(),
            why: format!("a header has 4 bytes, not {}", bytes.len()),
        })?;
        Ok((header, patches, chunk_at))
    }
}

fn missing_in(name: &str, step: &Step) -> Fault {
    let why = format!("{{{name}}} is not there: is it the input, a value, or saved by a step?");
    Fault::Garbage { step: step.name.clone(), why }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
