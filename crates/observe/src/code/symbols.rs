//! The functions of a file, by the symbols that it has.

use std::cmp::Reverse;
use std::sync::Arc;

use object::elf::{SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, Sym64};
use object::read::ReadRef;
use object::read::elf::{SectionHeader, Sym};

use super::elf::Elf;

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFunction {
    pub(crate) name: Arc<str>,
    /// The address that it is linked for.
    pub(crate) start: u64,
}

/// For each of the addresses, which are sorted, the function that it is in: by `.symtab`, which
/// holds all functions, else by `.dynsym`, which holds the exported ones.
pub(crate) fn functions<'a, R: ReadRef<'a>>(
    data: R,
    addresses: &[u64],
) -> Option<Vec<Option<NamedFunction>>> {
    let elf = Elf::parse(data)?;
    let of_kind = |kind| elf.sections.iter().find(|section| section.sh_type(elf.endian) == kind);
    let table = of_kind(SHT_SYMTAB).or_else(|| of_kind(SHT_DYNSYM))?;
    let strings = elf.sections.get(table.sh_link(elf.endian) as usize)?;
    let strings = strings.file_range(elf.endian)?;
    let strings = strings.0..strings.0.checked_add(strings.1)?;
    let symbols: &[Sym64<_>] = table.data_as_array(elf.endian, data).ok()?;
    let found = symbols.iter().filter_map(|symbol| {
        let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
        let start = symbol.st_value(elf.endian);
        let end = start.checked_add(symbol.st_size(elf.endian))?;
        // Of a library's thousands a stack meets a few; only their names are read.
        let first = addresses.partition_point(|address| *address < start);
        let is_met = addresses.get(first).is_some_and(|address| *address < end);
        if !is_function || !is_met || symbol.st_shndx(elf.endian) == SHN_UNDEF {
            return None;
        }
        let name = strings.start + u64::from(symbol.st_name(elf.endian));
        let name = data.read_bytes_at_until(name..strings.end, 0).ok()?;
        (!name.is_empty()).then_some(Symbol { start, end, name })
    });
    let symbols = Symbols::new(found.collect());
    Some(addresses.iter().map(|address| symbols.function_at(*address)).collect())
}

/// Symbols in the order of their addresses.
struct Symbols<'a> {
    sorted: Vec<Symbol<'a>>,
    /// For each, the highest end of it and all before it.
    reach: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol<'a> {
    start: u64,
    end: u64,
    name: &'a [u8],
}

impl<'a> Symbols<'a> {
    fn new(mut symbols: Vec<Symbol<'a>>) -> Self {
        // Of several names for one place the last is taken: that with the fewest underscores in
        // front, as programs call it, and then the shortest.
        let underscores = |name: &[u8]| name.iter().take_while(|byte| **byte == b'_').count();
        symbols.sort_by_key(|symbol| {
            let rank = (underscores(symbol.name), symbol.name.len(), symbol.name);
            (symbol.start, Reverse(rank))
        });
        let mut highest = 0;
        let reach = symbols.iter().map(|symbol| {
            highest = highest.max(symbol.end);
            highest
        });
        Self { reach: reach.collect(), sorted: symbols }
    }

    /// The innermost function that an address is in. One beyond a function's size is in none: the
    /// next symbol before it would be a wrong name.
    fn function_at(&self, address: u64) -> Option<NamedFunction> {
        let behind = self.sorted.partition_point(|symbol| symbol.start <= address);
        let candidates = (0..behind).rev().take_while(|place| self.reach[*place] > address);
        let symbol =
            candidates.map(|place| self.sorted[place]).find(|found| found.end > address)?;
        // In `.symtab` a name may carry its version: getprotobynumber@@GLIBC_2.2.5.
        let name = symbol.name.split(|byte| *byte == b'@').next().unwrap_or(symbol.name);
        Some(NamedFunction { name: String::from_utf8_lossy(name).into(), start: symbol.start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_at(symbols: &[(u64, u64, &'static str)], address: u64) -> Option<String> {
        let symbols = symbols.iter().map(|&(start, size, name)| Symbol {
            start,
            end: start + size,
            name: name.as_bytes(),
        });
        let found = Symbols::new(symbols.collect()).function_at(address)?;
        Some(found.name.to_string())
    }

    #[test]
    fn an_address_beyond_a_function_has_no_name() {
        let symbols = [(0x100, 0x20, "first"), (0x180, 0x10, "second"), (0x200, 0, "label")];
        for (address, expected) in [
            (0xFF, None),
            (0x100, Some("first")),
            (0x11F, Some("first")),
            (0x120, None),
            (0x18F, Some("second")),
            (0x190, None),
            (0x200, None),
        ] {
            assert_eq!(name_at(&symbols, address).as_deref(), expected, "{address:#x}");
        }
    }

    #[test]
    fn the_innermost_function_and_its_plainest_name_are_taken() {
        let symbols = [
            (0x100, 0x100, "outer"),
            (0x120, 0x10, "__nanosleep"),
            (0x120, 0x10, "nanosleep"),
            (0x120, 0x10, "nanosleep_again"),
            (0x140, 0x10, "versioned@@GLIBC_2.2.5"),
        ];
        assert_eq!(name_at(&symbols, 0x125).as_deref(), Some("nanosleep"));
        assert_eq!(name_at(&symbols, 0x135).as_deref(), Some("outer"), "behind an inner one");
        assert_eq!(name_at(&symbols, 0x148).as_deref(), Some("versioned"));
    }
}
