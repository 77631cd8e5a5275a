//! What code lies where in a process, and how its stacks are undone.
//!
//! Libraries are noted as the program maps them, by the file that it maps: afterwards a short
//! program is gone, and its mappings with it. /proc/PID/maps is read for what the kernel maps at
//! exec, and again when a stack leads to an address that is not known.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder};
use libc::pid_t;

use super::images::Images;
use super::memory;
use super::stacks::{CodeAddress, Collector};
use crate::code::file_name;

/// A stretch of code in a process.
struct Mapping {
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    image: u32,
    /// From the address that it is linked for to where it is, once the file was read.
    bias: Option<u64>,
}

/// The code of one process.
pub(super) struct Space {
    /// The mappings, by their first address.
    mappings: BTreeMap<u64, Mapping>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    /// Rules of this process alone: the cache tells modules apart by a number of 16 bits, which
    /// many processes together would run through.
    cache: CacheX86_64,
    /// Addresses on stacks that have come up before; those of calls, not of what follows them.
    places: HashMap<u64, u32>,
    /// Pages that are no code, so that a stack that cannot be undone is not looked up twice.
    no_code: HashSet<u64>,
}

/// A program that makes up addresses must not fill the memory.
const MOST_PLACES: usize = 1 << 20;

impl Space {
    /// A process of which nothing is known yet.
    pub(super) fn new() -> Self {
        Self {
            mappings: BTreeMap::new(),
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            places: HashMap::new(),
            no_code: HashSet::new(),
        }
    }

    /// A thread has mapped a descriptor's file from `offset` on, as code.
    pub(super) fn mapped(
        &mut self,
        images: &mut Images,
        thread: pid_t,
        range: Range<u64>,
        descriptor: u64,
        offset: u64,
    ) {
        // The descriptor may be closed by another thread already: then /proc/PID/maps will tell.
        if let Some(image) = images.of_path(&format!("/proc/{thread}/fd/{descriptor}")) {
            self.insert(range, offset, image);
        }
    }

    /// Steps from a frame to its caller: the registers become the caller's.
    pub(super) fn caller(
        &mut self,
        address: FrameAddress,
        registers: &mut UnwindRegsX86_64,
        stack: &mut memory::Stack<'_>,
    ) -> Option<FrameAddress> {
        let word = &mut |address| stack.word(address);
        let caller = self.unwinder.unwind_frame(address, registers, &mut self.cache, word);
        FrameAddress::from_return_address(caller.ok()??)
    }

    /// The place of an address. The unwinder knows its file from then on.
    pub(super) fn place(
        &mut self,
        images: &mut Images,
        collector: &mut Collector,
        thread: pid_t,
        address: FrameAddress,
    ) -> Option<u32> {
        let at = address.address_for_lookup();
        if let Some(place) = self.places.get(&at) {
            return Some(*place);
        }
        let start = match self.mapping_at(at) {
            Some(start) => start,
            None => {
                self.read_maps_for(images, thread, at);
                self.mapping_at(at)?
            }
        };
        let mapping = self.mappings.get_mut(&start).expect("it was just found");
        let range = start..mapping.end;
        let bias = *mapping.bias.get_or_insert_with(|| {
            let (bias, module) = module(images, mapping.image, mapping.offset, range);
            self.unwinder.add_module(module);
            bias
        });
        let image = mapping.image;
        // Addresses in code that was made at run time say nothing, and there is no end of them.
        let place = match images.layout(image) {
            None => collector.place(CodeAddress { image, address: 0, returned_to: false }),
            Some(_) => collector.place(CodeAddress {
                image,
                address: address.address().wrapping_sub(bias),
                returned_to: address.is_return_address(),
            }),
        };
        if self.places.len() < MOST_PLACES {
            self.places.insert(at, place);
        }
        Some(place)
    }

    /// The start of the mapping that an address is in.
    fn mapping_at(&self, address: u64) -> Option<u64> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some(*start)
    }

    /// Something has been mapped that was not seen, or the address is no code.
    fn read_maps_for(&mut self, images: &mut Images, thread: pid_t, address: u64) {
        const PAGE_BYTES: u64 = 4096;
        const MOST_PAGES: usize = 4096;
        // A new mapping empties the list.
        if self.no_code.len() >= MOST_PAGES || !self.no_code.insert(address / PAGE_BYTES) {
            return;
        }
        let Ok(maps) = fs::read(format!("/proc/{thread}/maps")) else { return };
        let maps = String::from_utf8_lossy(&maps);
        let program =
            fs::metadata(format!("/proc/{thread}/exe")).map_or(0, |program| program.ino());
        for (range, offset, inode, name) in maps.lines().filter_map(code_in) {
            let known = self.mappings.get(&range.start);
            if known.is_some_and(|known| known.end == range.end && known.offset == offset) {
                continue;
            }
            let image = match name {
                "[vdso]" => images.of_vdso(thread, &range),
                "" => images.of_name("[anonymous]"),
                name => image_of(images, thread, name, inode == program),
            };
            self.insert(range, offset, image);
        }
    }

    /// What was there before is not there any more.
    fn insert(&mut self, range: Range<u64>, offset: u64, image: u32) {
        let over = self.mappings.range(..range.end).rev();
        let over = over.take_while(|(_, mapping)| mapping.end > range.start);
        for start in over.map(|(start, _)| *start).collect::<Vec<_>>() {
            self.mappings.remove(&start);
            self.unwinder.remove_module(start);
            self.places.clear();
        }
        self.no_code.clear();
        self.mappings.insert(range.start, Mapping { end: range.end, offset, image, bias: None });
    }
}

/// How far from where it is linked for a file lies, and what the unwinder wants to know of it.
fn module(
    images: &mut Images,
    image: u32,
    offset: u64,
    range: Range<u64>,
) -> (u64, Module<Arc<[u8]>>) {
    let layout = images.layout(image);
    let linked_for = layout.and_then(|layout| layout.address_of(offset));
    let bias = linked_for.map_or(range.start, |linked_for| range.start.wrapping_sub(linked_for));
    let unwinding = match (layout, linked_for) {
        (Some(layout), Some(_)) => layout.unwinding(),
        _ => Default::default(),
    };
    (bias, Module::new(String::new(), range, bias, unwinding))
}

/// A file that /proc/PID/maps names, as the process itself would see it.
fn image_of(images: &mut Images, thread: pid_t, name: &str, is_program: bool) -> u32 {
    let is_gone = name.ends_with(" (deleted)") || !name.starts_with('/');
    let file = match is_program {
        true => images.of_path(&format!("/proc/{thread}/exe")),
        false if is_gone => None,
        false => images.of_path(&format!("/proc/{thread}/root{name}")),
    };
    file.unwrap_or_else(|| images.of_name(file_name(name)))
}

/// A line of /proc/PID/maps, if it is code: where, from where in the file, and which file.
fn code_in(line: &str) -> Option<(Range<u64>, u64, u64, &str)> {
    let mut columns = line.splitn(6, ' ');
    let (start, end) = columns.next()?.split_once('-')?;
    let is_code = columns.next()?.as_bytes().get(2) == Some(&b'x');
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(columns.next()?)?;
    let _device = columns.next()?;
    let inode = columns.next()?.parse().ok()?;
    let name = columns.next().unwrap_or("").trim_start();
    is_code.then_some((number(start)?..number(end)?, offset, inode, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_found_in_maps() {
        for (line, expected) in [
            (
                "7f0-7ff r-xp 00026000 fe:00 2062 \t                /usr/lib/a b.so (deleted)",
                Some((0x7f0..0x7ff, 0x26000, 2062, "\t                /usr/lib/a b.so (deleted)")),
            ),
            ("7f0-7ff r--p 00000000 fe:00 2062  /usr/lib/libc.so.6", None),
            ("7f0-7ff rwxp 00000000 00:00 0 ", Some((0x7f0..0x7ff, 0, 0, ""))),
            ("7f0-7ff r-xp 00000000 00:00 0    [vdso]", Some((0x7f0..0x7ff, 0, 0, "[vdso]"))),
            ("", None),
        ] {
            let expected = expected
                .map(|(range, offset, inode, name)| (range, offset, inode, str::trim_start(name)));
            assert_eq!(code_in(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_what_was_there() {
        let mut space = Space::new();
        space.insert(0x1000..0x4000, 0, 0);
        space.insert(0x6000..0x8000, 0, 1);
        space.insert(0x3000..0x6000, 0, 2);
        let starts: Vec<u64> = space.mappings.keys().copied().collect();
        assert_eq!(starts, [0x3000, 0x6000]);
        assert_eq!(space.mapping_at(0x5FFF), Some(0x3000));
        assert_eq!(space.mapping_at(0x6000), Some(0x6000));
        assert_eq!(space.mapping_at(0x8000), None);
        assert_eq!(space.mapping_at(0x1000), None);
    }
}
