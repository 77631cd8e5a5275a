//! The program for the kernel that says which system calls stop (seccomp(2), classic BPF).
//!
//! All others run at full speed: the kernel remembers per call number that this filter always
//! allows it. Calls of another architecture (a 32-bit program, `int 0x80`, x32) are let through
//! unseen; a filter made by `seccompiler` would kill the program for them.

use std::mem::offset_of;

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};

/// `AUDIT_ARCH_X86_64` of linux/audit.h: EM_X86_64, 64 bits, little-endian.
const AUDIT_ARCH_X86_64: u32 = 0xC000_003E;

/// Stops at each of `numbers`, and at each mapping of a file's code, by which the tracer learns of
/// libraries as they are loaded.
pub(super) fn program(numbers: impl Iterator<Item = u32>) -> Vec<sock_filter> {
    let mmap = libc::SYS_mmap as u32;
    let mut program = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
        verdict(libc::SECCOMP_RET_ALLOW),
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    for number in numbers {
        program.push(jump(BPF_JEQ, number, 0, 1));
        program.push(verdict(libc::SECCOMP_RET_TRACE));
    }
    program.extend([
        jump(BPF_JEQ, mmap, 0, 5),
        load(offset_of!(libc::seccomp_data, args) + 2 * size_of::<u64>()),
        jump(BPF_JSET, libc::PROT_EXEC as u32, 0, 3),
        load(offset_of!(libc::seccomp_data, args) + 3 * size_of::<u64>()),
        jump(BPF_JSET, libc::MAP_ANONYMOUS as u32, 1, 0),
        verdict(libc::SECCOMP_RET_TRACE),
        verdict(libc::SECCOMP_RET_ALLOW),
    ]);
    program
}

/// The low half of a field of `struct seccomp_data`, on a little-endian machine.
fn load(offset: usize) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset as u32)
}

fn verdict(action: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, action)
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// So many instructions further when the comparison holds, and when it does not.
fn jump(comparison: u32, k: u32, holds: u8, fails: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison | BPF_K) as u16, jt: holds, jf: fails, k }
}
