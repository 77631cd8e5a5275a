//! The code of the stubs.
//!
//! They are in the text of the probe: memory that is both written and executed is something that
//! hardened systems refuse. Each loads its number and goes to one piece of code that calls
//! [`enter`], then the function, then [`leave`]. It keeps a frame like any function, with unwinding
//! information, so that exceptions and debuggers find their way through.
//!
//! The layout of [`Frame`](tapstone_probe_core::frame::Frame) is known below.

use core::arch::global_asm;
use core::mem::{offset_of, size_of};

use crate::calls::{enter, leave};
use crate::stubs::{SLOTS, STUBS, StubSlot};

const _: () = assert!(size_of::<StubSlot>().is_power_of_two());

// Arguments on the stack are copied: nine is the most that a watched function has
// (C_EncryptMessage), so three are on the stack, and four keep it aligned.
global_asm!(
    ".p2align 4",
    ".hidden tapstone_stubs", ".globl tapstone_stubs",
    ".type tapstone_stubs, @function",
    "tapstone_stubs:", ".cfi_startproc",
    ".set tapstone_number, 0",
    ".rept {stubs}",
    ".p2align 4",
    "mov r11d, tapstone_number",
    "jmp 2f",
    ".set tapstone_number, tapstone_number + 1",
    ".endr",
    ".p2align 4",
    ".cfi_endproc", ".size tapstone_stubs, . - tapstone_stubs",
    ".type tapstone_call, @function",
    "tapstone_call:", ".cfi_startproc",
    "2:",
    // A lock that is free is taken at once: there may be ten thousand in a millisecond.
    "lea r10, [rip + {slots}]", "shl r11d, {slot_bits}", "add r10, r11",
    "cmp dword ptr [r10 + {taken}], 0", "je 6f",
    // No such function looks at how many vector registers it is given.
    "mov eax, [r10 + {taken}]", "test eax, [rdi]", "jnz 6f",
    "jmp [r10 + {original}]",
    "6:", "shr r11d, {slot_bits}",
    "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
    "mov rbp, rsp", ".cfi_def_cfa_register rbp",
    "sub rsp, 128",
    "mov [rbp - 128], rdi", "mov [rbp - 120], rsi", "mov [rbp - 112], rdx",
    "mov [rbp - 104], rcx", "mov [rbp - 96], r8", "mov [rbp - 88], r9",
    "mov [rbp - 80], rax", "mov [rbp - 72], r11",
    "lea rax, [rbp + 16]", "mov [rbp - 32], rax",
    "lea rdi, [rbp - 128]",
    "call {enter}",
    "test rax, rax", "jz 3f",
    "mov r11, rax",
    "cmp qword ptr [rbp - 40], 0", "je 5f",
    "push [rbp + 40]", "push [rbp + 32]", "push [rbp + 24]", "push [rbp + 16]",
    "mov rdi, [rbp - 128]", "mov rsi, [rbp - 120]", "mov rdx, [rbp - 112]",
    "mov rcx, [rbp - 104]", "mov r8, [rbp - 96]", "mov r9, [rbp - 88]",
    "mov rax, [rbp - 80]",
    "call r11",
    "add rsp, 32",
    "mov [rbp - 48], rax",
    "3:",
    "cmp qword ptr [rbp - 40], 0", "je 4f",
    "lea rdi, [rbp - 128]",
    "call {leave}",
    "4:",
    "mov rax, [rbp - 48]",
    ".cfi_remember_state",
    "leave", ".cfi_def_cfa rsp, 8",
    "ret",
    // Nothing is to be done when it ends: it goes back to its caller by itself, and finds as many
    // arguments as it was given (execl).
    "5:", ".cfi_restore_state",
    "mov rdi, [rbp - 128]", "mov rsi, [rbp - 120]", "mov rdx, [rbp - 112]",
    "mov rcx, [rbp - 104]", "mov r8, [rbp - 96]", "mov r9, [rbp - 88]",
    "mov rax, [rbp - 80]",
    "leave", ".cfi_def_cfa rsp, 8",
    "jmp r11",
    ".cfi_endproc", ".size tapstone_call, . - tapstone_call",
    ".hidden tapstone_end", ".globl tapstone_end",
    "tapstone_end:",
    stubs = const STUBS,
    slots = sym SLOTS,
    slot_bits = const size_of::<StubSlot>().ilog2(),
    taken = const offset_of!(StubSlot, taken),
    original = const offset_of!(StubSlot, original),
    enter = sym enter,
    leave = sym leave,
);
