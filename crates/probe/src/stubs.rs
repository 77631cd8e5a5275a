//! Stubs: what the linker binds to instead of a function that is watched.
//!
//! There are as many as may be needed, in the text of the probe: memory that is both written and
//! executed is something that hardened systems refuse. Each loads its number and goes to one piece
//! of code that calls [`enter`], then the function, then [`leave`]. It keeps a frame like any
//! function, with unwinding information, so that exceptions and debuggers find their way through.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::calls::{enter, leave};
use crate::wire::{self, Family, FUNCTIONS, Kind};
use crate::{objects, state, thread};

const STUBS: usize = 4096;
const STUB_BYTES: usize = 16;
/// Buckets for the names that are watched.
const BUCKETS: usize = 1024;

/// What a stub calls.
pub(crate) struct Slot {
    pub(crate) original: AtomicUsize,
    pub(crate) function: AtomicU32,
    /// Who calls, and who is called: numbers of objects.
    objects: AtomicU32,
}

impl Slot {
    /// Who calls and who is called.
    pub(crate) fn objects(&self) -> (usize, usize) {
        let both = self.objects.load(Ordering::Relaxed);
        ((both >> 16) as usize, (both & 0xFFFF) as usize)
    }
}

static SLOTS: [Slot; STUBS] = [const {
    Slot {
        original: AtomicUsize::new(0),
        function: AtomicU32::new(0),
        objects: AtomicU32::new(0),
    }
}; STUBS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// Names by their hash: numbers of functions, from 1.
static NAMES: [u16; BUCKETS] = names();

const fn names() -> [u16; BUCKETS] {
    let mut buckets = [0; BUCKETS];
    let mut number = 0;
    while number < FUNCTIONS.len() {
        let mut at = hash(FUNCTIONS[number].name.as_bytes());
        while buckets[at % BUCKETS] != 0 {
            at += 1;
        }
        buckets[at % BUCKETS] = number as u16 + 1;
        number += 1;
    }
    buckets
}

/// FNV-1a, folded.
const fn hash(name: &[u8]) -> usize {
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ hash >> 15) as usize
}

/// The number of a function that is watched.
fn number_of(name: &[u8]) -> Option<usize> {
    let mut at = hash(name);
    loop {
        let number = usize::from(NAMES[at % BUCKETS]).checked_sub(1)?;
        if FUNCTIONS.get(number)?.name.as_bytes() == name {
            return Some(number);
        }
        at += 1;
    }
}

#[inline(always)]
pub(crate) fn slot(number: u32) -> &'static Slot {
    // SAFETY: numbers come from stubs, of which there are as many.
    unsafe { SLOTS.get_unchecked(number as usize) }
}

/// The stub for a call, when it is one to watch.
///
/// # Safety
/// `name` ends with a zero; `address` is that function.
pub(crate) unsafe fn watch(
    name: *const u8,
    address: usize,
    caller: usize,
    definer: usize,
) -> Option<usize> {
    const LONGEST: usize = 40;
    // SAFETY: the name ends.
    let name = unsafe { core::slice::from_raw_parts(name, crate::sys::length(name, LONGEST)) };
    let function = number_of(name)?;
    let watched = match FUNCTIONS.get(function)?.family {
        // A library that calls what it exports itself is not its own client.
        Family::Pkcs11 | Family::Pcsc | Family::Driver => caller != definer,
        Family::Libc(_) => !objects::is_system(caller),
    };
    if watched { assign(function, address, caller, definer) } else { None }
}

/// A stub for this function, called by this object; the one that it had before.
pub(crate) fn assign(
    function: usize,
    address: usize,
    caller: usize,
    definer: usize,
) -> Option<usize> {
    if is_stub(address) {
        return Some(address);
    }
    let both = (caller as u32) << 16 | definer as u32;
    let used = USED.load(Ordering::Acquire).min(STUBS);
    for (number, slot) in SLOTS.iter().enumerate().take(used) {
        if slot.original.load(Ordering::Acquire) == address
            && slot.objects.load(Ordering::Relaxed) == both
            && slot.function.load(Ordering::Relaxed) == function as u32
        {
            return Some(stub(number));
        }
    }
    let number = USED.fetch_add(1, Ordering::AcqRel);
    let Some(slot) = SLOTS.get(number) else {
        USED.store(STUBS, Ordering::Release);
        state().header().unwatched.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    slot.function.store(function as u32, Ordering::Relaxed);
    slot.objects.store(both, Ordering::Relaxed);
    slot.original.store(address, Ordering::Release);
    announce(number, function, caller, definer);
    Some(stub(number))
}

/// Tells the tracer what a stub stands for.
fn announce(number: usize, function: usize, caller: usize, definer: usize) {
    let (module, client) = (objects::name(definer), objects::name(caller));
    let mut bytes = [0; 256];
    let (first, rest) = bytes.split_at_mut(module.len().min(128));
    first.copy_from_slice(module.get(..first.len()).unwrap_or_default());
    let (second, _) = rest.split_at_mut(client.len().min(128));
    second.copy_from_slice(client.get(..second.len()).unwrap_or_default());
    let lengths = (first.len(), second.len());
    let word = function as u64 | (lengths.0 as u64) << 16 | (lengths.1 as u64) << 32;
    if let Some(thread) = thread::enter() {
        let bytes = bytes.get(..lengths.0 + lengths.1).unwrap_or_default();
        thread.put(thread::now(), wire::EVENT_SLOT, 0, number as u32, &[word], bytes);
        thread.leave();
    }
}

fn stub(number: usize) -> usize {
    (&raw const tapstone_stubs) as usize + number * STUB_BYTES
}

fn is_stub(address: usize) -> bool {
    let start = (&raw const tapstone_stubs) as usize;
    (start..start + STUBS * STUB_BYTES).contains(&address)
}

/// What a function of libc does, if it is one.
#[inline(always)]
pub(crate) fn kind(function: u32) -> Option<Kind> {
    match FUNCTIONS.get(function as usize)?.family {
        Family::Libc(kind) => Some(kind),
        _ => None,
    }
}

/// What the assembler keeps of a call. Its layout is known below.
#[repr(C)]
pub(crate) struct Frame {
    /// The six arguments in registers.
    pub(crate) arguments: [u64; 6],
    /// %rax: how many vector registers a variadic function is given.
    variadic: u64,
    /// The stub's number.
    pub(crate) slot: u64,
    /// When the call began.
    pub(crate) start: u64,
    /// What was written at its beginning.
    pub(crate) written: *mut u64,
    /// What it returns.
    pub(crate) result: u64,
    /// 0: not watched after all. Otherwise what `leave` is to do.
    pub(crate) state: u64,
    /// Arguments on the stack.
    pub(crate) stack: *const u64,
    /// For the call's kind.
    pub(crate) note: u64,
}

const _: () = assert!(size_of::<Frame>() == 112);

unsafe extern "C" {
    static tapstone_stubs: u8;
}

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
    "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
    "mov rbp, rsp", ".cfi_def_cfa_register rbp",
    "sub rsp, 112",
    "mov [rbp - 112], rdi", "mov [rbp - 104], rsi", "mov [rbp - 96], rdx",
    "mov [rbp - 88], rcx", "mov [rbp - 80], r8", "mov [rbp - 72], r9",
    "mov [rbp - 64], rax", "mov [rbp - 56], r11",
    "lea rax, [rbp + 16]", "mov [rbp - 16], rax",
    "lea rdi, [rbp - 112]",
    "call {enter}",
    "test rax, rax", "jz 3f",
    "mov r11, rax",
    "push [rbp + 40]", "push [rbp + 32]", "push [rbp + 24]", "push [rbp + 16]",
    "mov rdi, [rbp - 112]", "mov rsi, [rbp - 104]", "mov rdx, [rbp - 96]",
    "mov rcx, [rbp - 88]", "mov r8, [rbp - 80]", "mov r9, [rbp - 72]",
    "mov rax, [rbp - 64]",
    "call r11",
    "add rsp, 32",
    "mov [rbp - 32], rax",
    "3:",
    "cmp qword ptr [rbp - 24], 0", "je 4f",
    "lea rdi, [rbp - 112]",
    "call {leave}",
    "4:",
    "mov rax, [rbp - 32]",
    "leave", ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc", ".size tapstone_call, . - tapstone_call",
    stubs = const STUBS,
    enter = sym enter,
    leave = sym leave,
);
