//! The benchmark applet: the commands of `applet/COMMANDS.md`, which the Java Card applet in that
//! folder answers with the same bytes. Checks come in the order which that text lays down: class,
//! instruction, P1, P2, length of the data, values, state, contents, room.

mod buffers;
mod cipher;
mod image;
mod keys;
mod machine;
mod repeat;
pub(crate) mod work;

use tapstone_apdu::{CommandApdu, StatusWord};

use self::buffers::{BufferId, Buffers, CHUNK};
use self::keys::{KeyId, Keys};
use self::machine::{Bytecode, BytecodeMachine, MachineFault};
use crate::applet::{Applet, Reply};

/// The AID of the benchmark applet (proprietary, ISO/IEC 7816-5).
pub const BENCH_AID: [u8; 10] = *b"\xF0TAPSTONE\x01";

/// The commands by the names that profiles and suites use.
pub(crate) const COMMANDS: [(&str, u8); 14] = [
    ("VERSION", VERSION),
    ("ALLOCATE", ALLOCATE),
    ("RELEASE", RELEASE),
    ("LENGTH", LENGTH),
    ("READ", READ),
    ("WRITE", WRITE),
    ("FLUSH", FLUSH),
    ("PUT KEY PART", PUT_KEY_PART),
    ("CLEAR KEY", CLEAR_KEY),
    ("DECRYPT", DECRYPT),
    ("LOAD", LOAD),
    ("RUN", RUN),
    ("UNBIND", UNBIND),
    ("REPEAT", REPEAT),
];

const VERSION: u8 = 0x12;
const ALLOCATE: u8 = 0x20;
const RELEASE: u8 = 0x21;
const LENGTH: u8 = 0x22;
const READ: u8 = 0x23;
const WRITE: u8 = 0x24;
const FLUSH: u8 = 0x26;
const PUT_KEY_PART: u8 = 0x30;
const CLEAR_KEY: u8 = 0x31;
const DECRYPT: u8 = 0x40;
const LOAD: u8 = 0x50;
const RUN: u8 = 0x51;
const UNBIND: u8 = 0x52;
pub(crate) const REPEAT: u8 = 0x60;

/// The applet with its memory.
#[derive(Default)]
pub struct BenchApplet {
    buffers: Buffers,
    keys: Keys,
    loaded: Option<Loaded>,
}

/// A program and the buffer that it came from.
struct Loaded {
    source: BufferId,
    program: Bytecode,
    /// What it put out, once it has run.
    output: Option<Vec<u8>>,
}

impl Applet for BenchApplet {
    fn aid(&self) -> &[u8] {
        &BENCH_AID
    }

    fn select(&mut self) -> Reply {
        self.deselect();
        Reply::ok([])
    }

    /// Buffers, program and output are memory that a selection clears; keys stay.
    fn deselect(&mut self) {
        self.buffers = Buffers::default();
        self.loaded = None;
    }

    fn answer(&mut self, command: &CommandApdu) -> Reply {
        if command.cla != 0x80 {
            return Reply::refused(StatusWord::UNKNOWN_CLASS);
        }
        let answered = match command.ins {
            VERSION => no_parameters(command).map(|()| Reply::ok([1, 0])),
            ALLOCATE => self.allocate(command),
            RELEASE => self.release(command),
            LENGTH => self.length(command),
            READ => self.read(command),
            WRITE => self.write(command),
            FLUSH => no_parameters(command).map(|()| self.flush()),
            PUT_KEY_PART => self.put_key_part(command),
            CLEAR_KEY => self.clear_key(command),
            DECRYPT => self.decrypt(command),
            LOAD => self.load(command),
            RUN => self.execute_command(command),
            UNBIND => self.unbind(command),
            REPEAT => self.repeat(command),
            _ => Err(StatusWord::UNKNOWN_INSTRUCTION),
        };
        answered.unwrap_or_else(Reply::refused)
    }
}

impl BenchApplet {
    fn allocate(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let length = u16::from_be_bytes([command.p1, command.p2]);
        let id = self.buffers.allocate(usize::from(length))?;
        Ok(Reply::ok([id.number()]))
    }

    fn release(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let id = self.buffers.find(command.p1)?;
        zero(command.p2)?;
        self.buffers.release(id);
        if self.loaded.as_ref().is_some_and(|loaded| loaded.source == id) {
            self.loaded = None;
        }
        Ok(Reply::ok([]))
    }

    fn length(&self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let id = self.buffers.find(command.p1)?;
        zero(command.p2)?;
        Ok(Reply::ok((self.buffers.bytes(id).len() as u16).to_be_bytes()))
    }

    fn read(&self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let bytes = self.buffers.bytes(self.buffers.find(command.p1)?);
        let start = CHUNK * usize::from(command.p2);
        let rest = bytes.get(start..).ok_or(StatusWord::WRONG_DATA)?;
        Ok(Reply::ok(&rest[..rest.len().min(CHUNK)]))
    }

    fn write(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let id = self.buffers.find(command.p1)?;
        if command.data.is_empty() || command.data.len() > CHUNK {
            return Err(StatusWord::WRONG_LENGTH);
        }
        let start = CHUNK * usize::from(command.p2);
        let place = self.buffers.bytes_mut(id).get_mut(start..start + command.data.len());
        place.ok_or(StatusWord::WRONG_DATA)?.copy_from_slice(&command.data);
        Ok(Reply::ok([]))
    }

    fn flush(&mut self) -> Reply {
        self.buffers.release_all();
        self.loaded = None;
        Reply::ok([])
    }

    fn put_key_part(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let key = KeyId::find(command.p1)?;
        self.keys.put_key(key, command.p2, &command.data)?;
        Ok(Reply::ok([]).after(work::EEPROM_BYTE, command.data.len() as u32))
    }

    fn clear_key(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let key = KeyId::find(command.p1)?;
        zero(command.p2)?;
        self.keys.clear(key);
        Ok(Reply::ok([]))
    }

    fn decrypt(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let input = self.buffers.find(command.p1)?;
        let key = KeyId::find_decrypting(command.p2)?;
        let opened = self.keys.decrypt(key, self.buffers.bytes(input))?;
        let length = self.buffers.bytes(input).len();
        let id = self.buffers.allocate(length)?;
        self.buffers.replace(id, &opened.plain)?;
        let reply = Reply::ok([id.number()]).after(work::DECRYPT_BYTE, length as u32);
        Ok(opened.charge(reply))
    }

    /// A LOAD that fails leaves no program loaded, whatever the reason.
    fn load(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        self.loaded = None;
        let source = self.buffers.find(command.p1)?;
        let key = match command.p2 {
            0 => None,
            id => Some(KeyId::find_decrypting(id)?),
        };
        let (program, work) = image::open(self.buffers.bytes(source), &mut self.keys, key)?;
        self.loaded = Some(Loaded { source, program, output: None });
        Ok(Reply { work, ..Reply::ok([1]) })
    }

    fn execute_command(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        no_parameters(command)?;
        let Some(Loaded { program, output: output @ None, .. }) = &mut self.loaded else {
            return Err(StatusWord::CONDITIONS_NOT_SATISFIED);
        };
        let mut machine = BytecodeMachine::new(program);
        let ended = machine.execute();
        let steps = u32::from(machine.steps());
        let bytes = machine.output().len() as u32;
        let reply = match ended {
            Ok(()) => {
                *output = Some(machine.into_output());
                Reply::ok((steps as u16).to_be_bytes())
            }
            Err(MachineFault) => Reply::refused(StatusWord::WRONG_DATA),
        };
        Ok(reply.after(work::VM_INSTRUCTION, steps).after(work::VM_OUTPUT_BYTE, bytes))
    }

    fn unbind(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        no_parameters(command)?;
        let Some(Loaded { source, output: Some(output), .. }) = &self.loaded else {
            return Err(StatusWord::CONDITIONS_NOT_SATISFIED);
        };
        let id = *source;
        let bytes = output.len() as u32;
        self.buffers.replace(id, output)?;
        self.loaded = None;
        Ok(Reply::ok([id.number()]).after(work::RAM_BYTE, bytes))
    }
}

fn zero(parameter: u8) -> Result<(), StatusWord> {
    if parameter == 0 { Ok(()) } else { Err(StatusWord::WRONG_PARAMETERS) }
}

fn no_parameters(command: &CommandApdu) -> Result<(), StatusWord> {
    zero(command.p1)?;
    zero(command.p2)
}
