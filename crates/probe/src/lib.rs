//! The library that sits inside an observed program: an auditor of the dynamic linker (rtld-audit,
//! glibc 2.35 or later, x86-64).
//!
//! The linker asks it about every symbol that it binds, also for dlsym(3) and dlopen(3) with
//! RTLD_DEEPBIND. Where the symbol is one to watch ([`tapstone_probe_core::functions`]), the answer is a stub that
//! writes an event, calls the function, and writes another. Nothing is allocated or locked, no
//! library is called, and errno stays the program's.
//!
//! It refuses quietly, and the tracer says so: without the variable, without the file, or where
//! the C library is too old, the program runs as it is.
//!
//! - [`tapstone_probe_core`]: what is decided and written, as far as no process is needed.
//! - [`trampoline`], [`calls`]: what happens around a call; [`callers`]: where it comes from.
//! - [`stubs`]: what stands for each function that is watched.
//! - [`thread`], [`process`], [`file`]: what a thread is in, and where its events go.
//! - [`objects`], [`elf`], [`rewrite`]: loaded libraries, and calls that bypass the linker's tables.
//! - [`tables`]: PKCS#11 function lists, through which modules are called.
//! - [`hooks`], [`limit`], [`service`]: what the program does that the probe has to follow.
//! - [`fixes`]: changes that a trial makes.
#![no_std]

mod callers;
mod calls;
mod elf;
mod file;
mod fixes;
mod hooks;
mod limit;
mod memory;
mod objects;
mod process;
mod rewrite;
mod service;
mod stubs;
mod sys;
mod tables;
mod thread;
mod trampoline;

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_uint};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tapstone_probe_core::chunks::{bytes_of_chunks, chunks_in_bytes};
use tapstone_probe_core::wire;
use tapstone_probe_core::wire::{HEADER_BYTES, Head, Header, MAGIC, VERSION};

use crate::elf::{LinkMap, Symbol};
use crate::file::SharedFile;

/// The interface of rtld-audit that this is written for (glibc 2.35: LAV_CURRENT is 2).
const LAV_CURRENT: c_uint = 2;

/// What the probe knows of its process.
pub(crate) struct State {
    pub(crate) file: *mut u8,
    /// Chunks of it that are mapped.
    pub(crate) reach: AtomicU64,
    pub(crate) threads: *mut thread::Table,
    /// Whether a thread's id is where glibc is known to keep it.
    pub(crate) tid_in_thread: bool,
}

struct StateCell(UnsafeCell<MaybeUninit<State>>);

// SAFETY: written once, before the program's first thread runs; what changes later is atomic.
unsafe impl Sync for StateCell {}

static STATE: StateCell = StateCell(UnsafeCell::new(MaybeUninit::uninit()));
static ENVIRONMENT: AtomicUsize = AtomicUsize::new(0);

/// Only from code that runs after `la_version` found everything in order.
#[inline(always)]
pub(crate) fn state() -> &'static State {
    // SAFETY: the linker asks about no object and no symbol unless la_version agreed.
    unsafe { (*STATE.0.get()).assume_init_ref() }
}

impl State {
    #[inline(always)]
    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: mapped for good, and longer than the header.
        unsafe { &*self.file.cast() }
    }
}

/// The linker calls initialisers with the program's arguments and environment (gABI, DT_INIT_ARRAY;
/// that it passes them is glibc's).
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISER: extern "C" fn(i32, *const *const c_char, *const *const c_char) = initialise;

extern "C" fn initialise(_: i32, _: *const *const c_char, environment: *const *const c_char) {
    ENVIRONMENT.store(environment as usize, Ordering::Relaxed);
}

/// Agrees to audit, or not.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(offered: c_uint) -> c_uint {
    if begin(offered >= LAV_CURRENT) { LAV_CURRENT } else { 0 }
}

/// Where the kernel left the program's environment: above all frames of its first thread.
fn environment() -> usize {
    ENVIRONMENT.load(Ordering::Relaxed)
}

fn begin(is_new_enough: bool) -> bool {
    let environment = environment() as *const *const u8;
    // SAFETY: the linker's list of variables, which ends with null.
    let (path, auxiliary) = unsafe { variable(environment) };
    if path.is_null() {
        return false;
    }
    let most = if is_new_enough { limit::most_bytes() } else { 0 };
    let most = bytes_of_chunks(chunks_in_bytes(most));
    // SAFETY: the value of a variable ends with a zero.
    let Some(mapped) = (unsafe { sys::map_file(path, most, HEADER_BYTES) }) else { return false };
    let file = mapped.at;
    let bytes = mapped.bytes;
    // SAFETY: mapped, and as long as the header.
    let header = unsafe { &*file.cast::<Header>() };
    let ours = header.magic == MAGIC && header.version == VERSION;
    let enough = bytes >= mapped.size.min(limit::least_bytes());
    let threads = if ours && enough { thread::table() } else { ptr::null_mut() };
    if threads.is_null() {
        let why = if is_new_enough { &header.limited } else { &header.outdated };
        why.fetch_add(u64::from(ours), Ordering::Relaxed);
        // SAFETY: nobody else knows of it.
        unsafe { sys::unmap(file, bytes) };
        return false;
    }
    let reach = AtomicU64::new(chunks_in_bytes(bytes));
    let tid_in_thread = sys::thread_from_library() == sys::thread_from_kernel();
    let state = State { file, reach, threads, tid_in_thread };
    // SAFETY: nothing reads it before this function has returned true.
    unsafe { (*STATE.0.get()).write(state) };
    objects::begin(auxiliary);
    header.processes.fetch_add(1, Ordering::Relaxed);
    announce();
    true
}

/// The value of the probe's variable, and what the kernel puts behind the environment.
///
/// # Safety
/// `environment` is null, or a program's.
unsafe fn variable(mut environment: *const *const u8) -> (*const u8, *const [usize; 2]) {
    let name = wire::VARIABLE.as_bytes();
    let mut value = ptr::null();
    if environment.is_null() {
        return (value, ptr::null());
    }
    // SAFETY: the list ends with null, each text with a zero.
    unsafe {
        while !(*environment).is_null() {
            let text = *environment;
            let mut at = 0;
            while at < name.len() && *text.add(at) == name[at] {
                at += 1;
            }
            if at == name.len() && *text.add(at) == b'=' {
                value = text.add(at + 1);
            }
            environment = environment.add(1);
        }
        (value, environment.add(1).cast())
    }
}

fn announce() {
    let mut path = [0; wire::MOST_BYTES];
    let length = sys::program(&mut path);
    let both = u64::from(sys::process()) | u64::from(sys::parent()) << 32;
    if let Some(thread) = thread::enter(thread::here()) {
        let path = path.get(..length).unwrap_or_default();
        let head = Head::new(process::now(), wire::EVENT_PROCESS, 0);
        if thread.journal.write_event(&SharedFile, head, [both], path).is_null() {
            note_unannounced(both);
        }
        thread.leave();
    }
}

/// There is no chunk in which to say that this program began: its number has a place all the same.
#[cold]
fn note_unannounced(process_and_parent: u64) {
    let header = state().header();
    let at = header.unannounced_count.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = header.unannounced.get(at as usize) {
        place.store(process_and_parent, Ordering::Relaxed);
    }
}

/// An object was loaded; its cookie becomes its number.
///
/// # Safety
/// Called by the linker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objopen(
    map: *const LinkMap,
    _namespace: isize,
    cookie: *mut usize,
) -> c_uint {
    const LA_FLG_BINDTO: c_uint = 1;
    const LA_FLG_BINDFROM: c_uint = 2;
    // SAFETY: the linker's own.
    let (number, bindings) = unsafe { objects::add(map, stubs::forget) };
    // SAFETY: as above.
    unsafe { *cookie = number };
    let flag = |flag, set| if set { flag } else { 0 };
    flag(LA_FLG_BINDTO, bindings.to) | flag(LA_FLG_BINDFROM, bindings.from)
}

/// An object is unloaded.
///
/// # Safety
/// Called by the linker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objclose(cookie: *mut usize) -> c_uint {
    // SAFETY: the number that la_objopen left there.
    let number = unsafe { *cookie };
    if number == objects::PROGRAM {
        // exit(3) closes all objects, the program's own first.
        hooks::process_ends(thread::here());
    }
    if !objects::is_shared(number) {
        stubs::release(number);
        tables::close(number);
        objects::remove(number);
    }
    0
}

/// All objects that the program starts with are loaded and relocated.
#[unsafe(no_mangle)]
pub extern "C" fn la_preinit(_cookie: *mut usize) {
    rewrite::rewrite_waiting();
}

/// A symbol is bound: the answer is where calls go.
///
/// # Safety
/// Called by the linker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_symbind64(
    symbol: *const Symbol,
    _index: c_uint,
    caller: *const usize,
    definer: *const usize,
    flags: *mut c_uint,
    name: *const u8,
) -> usize {
    const LA_SYMB_DLSYM: c_uint = 4;
    // SAFETY: the linker's own; cookies are the numbers that la_objopen left.
    let (address, flags, caller, definer) = unsafe { ((*symbol).value, *flags, *caller, *definer) };
    if flags & LA_SYMB_DLSYM != 0 {
        rewrite::rewrite_waiting();
    }
    // SAFETY: a symbol's name ends with a zero.
    let function = unsafe { stubs::number_of_symbol(name) };
    let stub = function.and_then(|function| stubs::watch(function, address, caller, definer));
    stub.unwrap_or(address)
}
