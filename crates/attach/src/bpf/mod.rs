//! Programs and maps of the kernel, by bpf(2): as much of a loader as one object needs.
//!
//! There are libraries for it. Those that attach *sessions* (one link for the entry and the return
//! of a function, kernel 6.13) need a C library, and those without one know none; so this crate has
//! its own.

mod btf;
mod maps;
mod object;
mod ring;
mod syscall;

pub(crate) use self::btf::KernelTypes;
pub(crate) use self::maps::{Map, Maps};
pub(crate) use self::object::{LoadError, Program, ProgramFile};
pub(crate) use self::ring::Ring;
pub(crate) use self::syscall::{Link, ProbeSite, attach_probes, attach_tracepoint};
