//! The object with the kernel's programs, as the C compiler made it: maps are made, and programs
//! that are wanted are linked to them and loaded.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};
use thiserror::Error;

use super::btf::{KernelTypes, TypesError};
use super::maps::{Map, Maps};
use super::syscall::{self, MapShape, ProgramText};

/// Why a program is not in the kernel.
#[derive(Debug, Error)]
pub(crate) enum LoadError {
    /// The object that is part of this program is not what it should be.
    #[error("the object with the kernel's programs: {0}")]
    Object(#[from] object::Error),
    #[error("the object with the kernel's programs has no {0}")]
    Missing(String),
    #[error(transparent)]
    Types(#[from] TypesError),
    #[error("this kernel has no function {0} for programs")]
    NoFunction(String),
    #[error("the kernel makes no map {name}: {why}")]
    Map { name: String, why: io::Error },
    #[error("the kernel does not take the program {name}: {why}{log}")]
    Refused { name: &'static str, why: io::Error, log: String },
}

impl LoadError {
    /// What the kernel said, where it was asked.
    pub(crate) fn why(&self) -> Option<&io::Error> {
        match self {
            Self::Map { why, .. } | Self::Refused { why, .. } => Some(why),
            _ => None,
        }
    }
}

/// A program that the kernel has taken.
#[derive(Debug)]
pub(crate) struct Program {
    descriptor: OwnedFd,
    /// What it can be attached to.
    pub(crate) attach: u32,
}

impl Program {
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

pub(crate) struct ProgramFile<'a> {
    file: ElfFile64<'a>,
}

const INSTRUCTION: usize = 8;
/// Bytes of a map's declaration: five words.
const MAP_BYTES: usize = 20;

impl<'a> ProgramFile<'a> {
    pub(crate) fn parse(content: &'a [u8]) -> Result<Self, LoadError> {
        Ok(Self { file: ElfFile64::parse(content)? })
    }

    /// Makes the maps that the programs name; `resize` may change how many entries one has.
    pub(crate) fn maps(
        &self,
        processors: usize,
        resize: impl Fn(&str, u32) -> u32,
    ) -> Result<Maps, LoadError> {
        let missing = || LoadError::Missing("maps".to_owned());
        let section = self.file.section_by_name("maps").ok_or_else(missing)?;
        let content = section.data()?;
        let mut maps = Maps::new();
        let symbols = self.file.symbols();
        for symbol in symbols.filter(|it| it.section_index() == Some(section.index())) {
            if symbol.kind() != SymbolKind::Data {
                continue;
            }
            let name = symbol.name()?.to_owned();
            let at = symbol.address() as usize;
            let words = content.get(at..at + MAP_BYTES).ok_or_else(missing)?;
            let word = |n: usize| u32::from_le_bytes(words[4 * n..][..4].try_into().expect("four"));
            let entries = resize(&name, word(3));
            let shape = MapShape {
                kind: word(0),
                key_bytes: word(1),
                value_bytes: word(2),
                entries,
                flags: word(4),
            };
            let map = Map::new(&name, shape, processors)
                .map_err(|why| LoadError::Map { name: name.clone(), why })?;
            maps.insert(name, map);
        }
        Ok(maps)
    }

    /// Loads a program by its name.
    pub(crate) fn load(
        &self,
        name: &'static str,
        maps: &Maps,
        types: &KernelTypes,
    ) -> Result<Program, LoadError> {
        let missing = || LoadError::Missing(name.to_owned());
        let symbol = self.file.symbol_by_name(name).ok_or_else(missing)?;
        let section = self.file.section_by_index(symbol.section_index().ok_or_else(missing)?)?;
        let from = symbol.address() as usize;
        let to = from + symbol.size() as usize;
        let mut instructions = section.data()?.get(from..to).ok_or_else(missing)?.to_vec();
        for (at, relocation) in section.relocations() {
            let at = at as usize;
            let RelocationTarget::Symbol(target) = relocation.target() else { continue };
            if (from..to).contains(&at) {
                let target = self.file.symbol_by_index(target)?.name()?.to_owned();
                link(&mut instructions[at - from..], &target, maps, types)?;
            }
        }
        let (kind, attach) = kind_of(section.name()?);
        let text = ProgramText { name, kind, attach, instructions: &instructions };
        let descriptor = syscall::load_program(&text, &mut []).map_err(|why| {
            // Once more, to hear what the verifier has against it.
            let mut log = vec![0; 1 << 16];
            let _ = syscall::load_program(&text, &mut log);
            LoadError::Refused { name, why, log: last_words(&log) }
        })?;
        Ok(Program { descriptor, attach })
    }
}

/// Types of programs, and to what they attach, by the names of their sections.
fn kind_of(section: &str) -> (u32, u32) {
    const KPROBE: u32 = 2;
    const RAW_TRACEPOINT: u32 = 17;
    match section {
        "uprobe.session" => (KPROBE, syscall::UPROBE_SESSION),
        "uprobe.multi" => (KPROBE, syscall::UPROBE_MULTI),
        _ => (RAW_TRACEPOINT, 0),
    }
}

/// Puts into an instruction what its symbol stands for here: a map's descriptor, or the number of a
/// function of the kernel.
fn link(
    instruction: &mut [u8],
    target: &str,
    maps: &Maps,
    types: &KernelTypes,
) -> Result<(), LoadError> {
    /// BPF_PSEUDO_MAP_FD and BPF_PSEUDO_KFUNC_CALL: what the source register says of the number.
    const MAP_DESCRIPTOR: u8 = 1;
    const KERNEL_FUNCTION: u8 = 2;
    let (kind, number) = match maps.get(target) {
        Some(map) => (MAP_DESCRIPTOR, map.descriptor().as_raw_fd() as u32),
        None => {
            let number = types.function(target);
            let no_function = || LoadError::NoFunction(target.to_owned());
            (KERNEL_FUNCTION, number.ok_or_else(no_function)?)
        }
    };
    // Code, registers, offset (2), number (4).
    let instruction = &mut instruction[..INSTRUCTION];
    instruction[1] = instruction[1] & 0x0F | kind << 4;
    instruction[4..].copy_from_slice(&number.to_le_bytes());
    Ok(())
}

/// The end of what the verifier has written, where the reason is.
fn last_words(log: &[u8]) -> String {
    const LINES: usize = 6;
    let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..length]);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    if last.is_empty() { last } else { format!("\n{last}") }
}
