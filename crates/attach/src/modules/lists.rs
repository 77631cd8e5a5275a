//! Lists of functions, in files and in memory.

use std::collections::BTreeSet;

use super::Files;
use super::file::ModuleFile;
use crate::process::{Mapping, Memory};

/// Functions of each version's list, the longest first (PKCS#11 3.2, 3.0, 2.40).
const LENGTHS: [(u8, u8, usize); 3] = [(3, 2, 104), (3, 0, 92), (2, 0, 68)];
const POINTER: usize = 8;
/// So much of a process's own memory is searched at most; a Java heap is no place for lists.
const MOST_SEARCHED: u64 = 256 << 20;
const AT_ONCE: usize = 1 << 20;

/// A list, as addresses in the process, in the order of [`tapstone_events::FUNCTIONS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundList {
    pub(super) at: u64,
    pub(super) functions: Vec<u64>,
}

/// All lists: those that files tell, then those in memory.
pub(super) fn find(mappings: &[Mapping], memory: &Memory, files: &mut Files<'_>) -> Vec<FoundList> {
    let mut lists = Vec::new();
    let mut seen = BTreeSet::new();
    for mapping in mappings.iter().filter(|it| it.is_executable && it.has_file()) {
        if !seen.insert(mapping.inode) {
            continue;
        }
        if let Some(file) = files.get(mapping).filter(|file| file.is_module) {
            lists.extend(of_file(file, mapping));
        }
    }
    let known: BTreeSet<u64> = lists.iter().map(|list: &FoundList| list.at).collect();
    let in_memory = of_memory(mappings, memory).into_iter();
    lists.extend(in_memory.filter(|list| !known.contains(&list.at)));
    lists
}

/// How many functions a list has by its version, which takes eight bytes with what follows it.
fn length_of(version: &[u8]) -> Option<usize> {
    let &[major, minor, 0, 0, 0, 0, 0, 0] = version else { return None };
    const HIGHEST_MINOR: u8 = 40;
    if minor > HIGHEST_MINOR {
        return None;
    }
    let fits = |&&(of, from, _): &&(u8, u8, usize)| major == of && minor >= from;
    LENGTHS.iter().find(fits).map(|(_, _, length)| *length)
}

/// Those that its relocations make.
fn of_file(file: &ModuleFile, code: &Mapping) -> Vec<FoundList> {
    // `code` is one of its parts: what is added to the file's addresses follows from where it is.
    let Some(base) = base(file, code) else { return Vec::new() };
    let pointers = &file.pointers;
    let mut lists = Vec::new();
    let mut at = 0;
    while at < pointers.len() {
        let run = run_length(&pointers[at..]);
        let version = pointers[at].0.checked_sub(POINTER as u64);
        let version = version.and_then(|place| file.at(place, POINTER));
        let length = version.and_then(length_of).filter(|length| *length <= run);
        let functions = length.map(|length| &pointers[at..at + length]);
        let is_code = |address: u64| {
            let offset = file.offset(address);
            let bytes = code.end - code.start;
            offset.is_some_and(|it| (code.offset..code.offset + bytes).contains(&it))
        };
        match functions.filter(|them| them.iter().all(|(_, function)| is_code(*function))) {
            Some(functions) => {
                lists.push(FoundList {
                    at: base.wrapping_add(functions[0].0 - POINTER as u64),
                    functions: functions.iter().map(|(_, it)| base.wrapping_add(*it)).collect(),
                });
                at += functions.len();
            }
            None => at += 1,
        }
    }
    lists
}

/// Pointers in a row, one behind the other.
fn run_length(pointers: &[(u64, u64)]) -> usize {
    const LONGEST: usize = LENGTHS[0].2;
    let follows = |pair: &&[(u64, u64)]| pair[1].0 == pair[0].0 + POINTER as u64;
    pointers.windows(2).take(LONGEST).take_while(follows).count() + 1
}

/// What the process adds to the file's addresses.
fn base(file: &ModuleFile, code: &Mapping) -> Option<u64> {
    file.address_of(code.offset).map(|address| code.start.wrapping_sub(address))
}

/// Those that have the shape of one, in memory that the process can write to or could once.
fn of_memory(mappings: &[Mapping], memory: &Memory) -> Vec<FoundList> {
    let code: Vec<&Mapping> = mappings.iter().filter(|it| it.is_executable).collect();
    let mut left = MOST_SEARCHED;
    let mut lists = Vec::new();
    // A module's data first: small, and where lists are. Large areas last.
    let mut searched: Vec<&Mapping> = mappings.iter().filter(|it| may_hold_lists(it)).collect();
    searched.sort_by_key(|it| it.end - it.start);
    let mut buffer = vec![0; AT_ONCE];
    for mapping in searched {
        let bytes = mapping.end - mapping.start;
        if bytes > left {
            break;
        }
        left -= bytes;
        search(mapping, memory, &code, &mut buffer, &mut lists);
    }
    lists
}

fn may_hold_lists(mapping: &Mapping) -> bool {
    let is_special = mapping.name.starts_with('[') && mapping.name != "[heap]";
    mapping.is_readable && !mapping.is_executable && !is_special
        // What can only be read and has no relocations holds no addresses.
        && (mapping.is_writable || mapping.has_file())
}

fn search(
    mapping: &Mapping,
    memory: &Memory,
    code: &[&Mapping],
    buffer: &mut [u8],
    lists: &mut Vec<FoundList>,
) {
    const LONGEST: usize = (LENGTHS[0].2 + 1) * POINTER;
    let mut at = mapping.start;
    while at < mapping.end {
        let wanted = ((mapping.end - at) as usize).min(buffer.len());
        let there = memory.read(at, &mut buffer[..wanted]);
        let content = &buffer[..there];
        lists.extend(content.chunks_exact(POINTER).enumerate().filter_map(|(place, version)| {
            let length = length_of(version)?;
            let from = (place + 1) * POINTER;
            let functions = content.get(from..from + length * POINTER)?;
            let list = FoundList { at: at + (place * POINTER) as u64, functions: words(functions) };
            is_list(&list, code).then_some(list)
        }));
        if there < wanted || there <= LONGEST {
            break;
        }
        // What begins near the end is seen whole by the next.
        at += if at + there as u64 == mapping.end { there } else { there - LONGEST } as u64;
    }
}

fn words(content: &[u8]) -> Vec<u64> {
    let words = content.chunks_exact(POINTER);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect()
}

/// All in the code of one file, or in one area that was made at run time.
fn is_list(list: &FoundList, code: &[&Mapping]) -> bool {
    let of = |address: u64| code.iter().find(|it| it.holds(address)).copied();
    let Some(first) = list.functions.first().and_then(|address| of(*address)) else { return false };
    list.functions.iter().all(|address| {
        of(*address).is_some_and(|it| match first.has_file() {
            true => it.inode == first.inode,
            false => !it.has_file(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_tells_a_lists_length() {
        let of = |major, minor| length_of(&[major, minor, 0, 0, 0, 0, 0, 0]);
        assert_eq!([of(2, 1), of(2, 20), of(2, 40)], [Some(68); 3]);
        assert_eq!([of(3, 0), of(3, 1), of(3, 2)], [Some(92), Some(92), Some(104)]);
        assert_eq!([of(0, 0), of(1, 0), of(2, 41), of(4, 0)], [None; 4]);
        assert_eq!(length_of(&[2, 40, 1, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_list_lies_in_one_files_code() {
        let code = |start, inode, name: &str| Mapping {
            start,
            end: start + 0x1000,
            is_readable: true,
            is_writable: false,
            is_executable: true,
            offset: 0,
            inode,
            name: name.to_owned(),
        };
        let all = [code(0x1000, 7, "/m.so"), code(0x3000, 8, "/n.so"), code(0x5000, 0, "")];
        let all: Vec<&Mapping> = all.iter().collect();
        let list = |functions: &[u64]| FoundList { at: 0, functions: functions.to_vec() };
        assert!(is_list(&list(&[0x1000, 0x1FFF]), &all));
        assert!(!is_list(&list(&[0x1000, 0x3000]), &all));
        assert!(!is_list(&list(&[0x1000, 0x2000]), &all));
        assert!(is_list(&list(&[0x5000, 0x5FFF]), &all), "closures");
    }
}
