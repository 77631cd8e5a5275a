//! bpf(2): the only place that knows its number and the layouts of its attributes
//! (include/uapi/linux/bpf.h).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP_ELEM: u32 = 1;
const MAP_UPDATE_ELEM: u32 = 2;
const MAP_DELETE_ELEM: u32 = 3;
const MAP_GET_NEXT_KEY: u32 = 4;
const PROG_LOAD: u32 = 5;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const LINK_CREATE: u32 = 28;

/// BPF_TRACE_UPROBE_MULTI.
pub(crate) const UPROBE_MULTI: u32 = 48;
/// BPF_TRACE_UPROBE_SESSION.
pub(crate) const UPROBE_SESSION: u32 = 57;
/// BPF_F_UPROBE_MULTI_RETURN.
const AT_RETURN: u32 = 1;

/// Attached for as long as it lives; the kernel detaches it when the process ends, however.
#[derive(Debug)]
pub(crate) struct Link(#[expect(dead_code, reason = "it is held until it is dropped")] OwnedFd);

/// Where a probe sits, and what its program is told there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeSite {
    /// In the file.
    pub(crate) offset: u64,
    pub(crate) cookie: u64,
}

/// # Safety
/// `attributes` is what the kernel expects of `command`, and every address in it is valid for what
/// the command does with it, until the call returns.
unsafe fn bpf<T>(command: u32, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the attributes are alive and as long as said; their addresses are the caller's promise.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_mut(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// # Safety
/// As [`bpf`], for a command that returns a descriptor.
unsafe fn bpf_descriptor<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise; what comes back is a new descriptor that nobody else has.
    unsafe { bpf(command, attributes).map(|number| OwnedFd::from_raw_fd(number as i32)) }
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
}

/// How a map is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapShape {
    /// BPF_MAP_TYPE_…
    pub(crate) kind: u32,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) entries: u32,
    pub(crate) flags: u32,
}

pub(super) fn create_map(name: &str, shape: MapShape) -> io::Result<OwnedFd> {
    let mut attributes = MapCreate {
        kind: shape.kind,
        key_bytes: shape.key_bytes,
        value_bytes: shape.value_bytes,
        entries: shape.entries,
        flags: shape.flags,
        inner_map: 0,
        numa_node: 0,
        name: object_name(name),
    };
    // SAFETY: no addresses in it.
    unsafe { bpf_descriptor(MAP_CREATE, &mut attributes) }
}

/// As the kernel shows it to bpftool: at most 15 letters.
fn object_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    bytes
}

#[repr(C)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Which element of which map, and where its value is.
fn element(map: BorrowedFd<'_>, key: *const u8, value: *mut u8) -> MapElement {
    MapElement {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key.addr() as u64,
        value: value.addr() as u64,
        flags: 0,
    }
}

/// `value` has the size of the map's values (of all processors, where it has one for each), `key`
/// that of its keys: [`super::Map`] sees to it.
pub(super) fn look_up(map: BorrowedFd<'_>, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
    let mut attributes = element(map, key.as_ptr(), value.as_mut_ptr());
    // SAFETY: key and value are alive and as large as the map's.
    found(unsafe { bpf(MAP_LOOKUP_ELEM, &mut attributes) })
}

/// `next` is as large as the map's keys, and so is `key`.
pub(super) fn next_key(
    map: BorrowedFd<'_>,
    key: Option<&[u8]>,
    next: &mut [u8],
) -> io::Result<bool> {
    let mut attributes = element(map, key.map_or(ptr::null(), <[u8]>::as_ptr), next.as_mut_ptr());
    // SAFETY: keys are alive and as large as the map's; none asks for the first.
    found(unsafe { bpf(MAP_GET_NEXT_KEY, &mut attributes) })
}

pub(super) fn update(map: BorrowedFd<'_>, key: &[u8], value: &[u8]) -> io::Result<()> {
    let mut attributes = element(map, key.as_ptr(), value.as_ptr().cast_mut());
    // SAFETY: key and value are alive and as large as the map's; the value is only read.
    unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes).map(drop) }
}

pub(super) fn delete(map: BorrowedFd<'_>, key: &[u8]) -> io::Result<bool> {
    let mut attributes = element(map, key.as_ptr(), ptr::null_mut());
    // SAFETY: the key is alive and as large as the map's.
    found(unsafe { bpf(MAP_DELETE_ELEM, &mut attributes) })
}

fn found(result: io::Result<libc::c_long>) -> io::Result<bool> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        other => other.map(|_| true),
    }
}

/// A program as the kernel takes it.
pub(super) struct ProgramText<'a> {
    pub(super) name: &'a str,
    /// BPF_PROG_TYPE_…
    pub(super) kind: u32,
    /// What it will be attached to; 0 for a tracepoint.
    pub(super) attach: u32,
    /// Instructions of eight bytes.
    pub(super) instructions: &'a [u8],
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

/// `log` takes what the verifier says, where it is not empty.
pub(super) fn load_program(text: &ProgramText<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    /// Some of the kernel's functions are only for programs under a licence like its own: theirs,
    /// of the two that their source has.
    const LICENSE: &CStr = c"GPL v2";
    const INSTRUCTION: usize = 8;
    let mut attributes = ProgramLoad {
        kind: text.kind,
        instruction_count: (text.instructions.len() / INSTRUCTION) as u32,
        instructions: text.instructions.as_ptr().addr() as u64,
        license: LICENSE.as_ptr().addr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr().addr() as u64 },
        name: object_name(text.name),
        attach: text.attach,
        ..ProgramLoad::default()
    };
    // SAFETY: instructions, licence and log are alive, and as long as said.
    unsafe { bpf_descriptor(PROG_LOAD, &mut attributes) }
}

#[repr(C)]
struct TracepointOpen {
    name: u64,
    program: u32,
    padding: u32,
}

pub(crate) fn attach_tracepoint(program: BorrowedFd<'_>, name: &CStr) -> io::Result<Link> {
    let mut attributes = TracepointOpen {
        name: name.as_ptr().addr() as u64,
        program: program.as_raw_fd() as u32,
        padding: 0,
    };
    // SAFETY: the name is alive and ends with a zero.
    unsafe { bpf_descriptor(RAW_TRACEPOINT_OPEN, &mut attributes).map(Link) }
}

#[repr(C)]
struct ProbeLinkCreate {
    program: u32,
    target: u32,
    attach: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    counters: u64,
    cookies: u64,
    count: u32,
    probe_flags: u32,
    process: u32,
    padding: u32,
}

/// Probes at places of a file, in whatever process has it mapped, from now on.
pub(crate) fn attach_probes(
    program: BorrowedFd<'_>,
    (attach, at_return): (u32, bool),
    file: &Path,
    sites: &[ProbeSite],
) -> io::Result<Link> {
    let path = std::ffi::CString::new(file.as_os_str().as_encoded_bytes())?;
    let offsets: Vec<u64> = sites.iter().map(|site| site.offset).collect();
    let cookies: Vec<u64> = sites.iter().map(|site| site.cookie).collect();
    let mut attributes = ProbeLinkCreate {
        program: program.as_raw_fd() as u32,
        target: 0,
        attach,
        flags: 0,
        path: path.as_ptr().addr() as u64,
        offsets: offsets.as_ptr().addr() as u64,
        counters: 0,
        cookies: cookies.as_ptr().addr() as u64,
        count: sites.len() as u32,
        probe_flags: if at_return { AT_RETURN } else { 0 },
        process: 0,
        padding: 0,
    };
    // SAFETY: path, offsets and cookies are alive, and there are as many of these as said.
    unsafe { bpf_descriptor(LINK_CREATE, &mut attributes).map(Link) }
}
