//! Programs in which the probe cannot begin, and whose dynamic linker would say so on their standard
//! error: those of another machine. They are started without it.

/// Bytes of a program's file that say what machine it is for.
pub const BEGINNING: usize = 20;

/// Whether a program's file is an ELF file of another machine than x86-64 (gABI, ELF header).
pub fn is_foreign(beginning: &[u8; BEGINNING]) -> bool {
    const CLASS_64: u8 = 2;
    const MACHINE_X86_64: [u8; 2] = [62, 0];
    let is_elf = beginning.starts_with(b"\x7fELF");
    is_elf && (beginning[4] != CLASS_64 || beginning[18..] != MACHINE_X86_64)
}

/// The file name of the probe's library, as LD_AUDIT, stacks and paths show it: no program has one of
/// that name.
pub const PROBE_FILE: &str = "tapstone-probe.so";

/// Whether a variable of an environment names the probe to the dynamic linker, and nothing else.
pub fn names_probe(variable: &[u8]) -> bool {
    let value = variable.strip_prefix(b"LD_AUDIT=");
    value.is_some_and(|value| value.ends_with(PROBE_FILE.as_bytes()) && !value.contains(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header of a class and a machine.
    fn beginning(class: u8, machine: u8) -> [u8; BEGINNING] {
        let mut beginning = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0";
        beginning[4] = class;
        beginning[18] = machine;
        beginning
    }

    #[test]
    fn programs_of_32_bits_and_of_other_machines_are_foreign() {
        assert!(!is_foreign(&beginning(2, 62)));
        assert!(is_foreign(&beginning(1, 3)) && is_foreign(&beginning(1, 62)));
        assert!(is_foreign(&beginning(2, 183)), "aarch64");
        assert!(!is_foreign(b"#!/bin/sh\necho hello\n".first_chunk().unwrap()));
    }

    #[test]
    fn only_the_probe_alone_is_taken_out() {
        assert!(names_probe(b"LD_AUDIT=/tmp/tapstone-probe-x/tapstone-probe.so"));
        for other in [
            &b"LD_AUDIT=/tmp/tapstone-probe-x/tapstone-probe.so:/usr/lib/other.so"[..],
            b"LD_AUDIT=/usr/lib/other.so",
            b"LD_PRELOAD=/tmp/tapstone-probe-x/tapstone-probe.so",
            b"TAPSTONE_PROBE=/dev/shm/tapstone-probe.so",
            b"",
        ] {
            assert!(!names_probe(other));
        }
    }
}
