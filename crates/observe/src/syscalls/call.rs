//! A system call on its way: from its entry to its return, which may be interrupted.
//!
//! A signal interrupts a sleeping call. With a handler it usually fails with EINTR; without one
//! (SIGCHLD, mostly, which a traced process is woken for even when it ignores it) the kernel
//! begins it again, and for the program it was one call.

use libc::user_regs_struct;
use tapstone_measure::units::Nanos;

use tapstone_events::system_calls::NameId;
use tapstone_events::system_calls::StackId;
use tapstone_events::system_calls::table::KnownCall;

/// The kernel goes on with an interrupted sleep by this call, which no program makes itself.
pub(super) const RESTART: u32 = libc::SYS_restart_syscall as u32;

/// A program asks where it may run.
pub(super) const GET_AFFINITY: u32 = libc::SYS_sched_getaffinity as u32;

/// A call that has not returned.
pub(super) struct PendingCall {
    pub(super) known: &'static KnownCall,
    pub(super) arguments: [u64; 6],
    /// Instruction and stack pointer, to know it again.
    from: (u64, u64),
    pub(super) start: Nanos,
    pub(super) on: Option<NameId>,
    pub(super) stack: StackId,
    /// When a signal interrupted it; the kernel may begin it again.
    pub(super) interrupted: Option<Nanos>,
}

impl PendingCall {
    /// A call at its entry.
    pub(super) fn new(
        known: &'static KnownCall,
        registers: &user_regs_struct,
        start: Nanos,
    ) -> Self {
        Self {
            known,
            arguments: arguments(registers, known),
            from: (registers.rip, registers.rsp),
            start,
            on: None,
            stack: StackId::EMPTY,
            interrupted: None,
        }
    }

    /// Whether the thread is in the kernel with it.
    pub(super) fn is_under_way(&self) -> bool {
        self.interrupted.is_none()
    }

    /// Whether a thread that enters the kernel goes on with this call.
    pub(super) fn is_begun_again(&self, registers: &user_regs_struct) -> bool {
        let number = registers.orig_rax as u32;
        let is_same = number == self.known.number
            && self.from == (registers.rip, registers.rsp)
            && self.arguments == arguments(registers, self.known);
        !self.is_under_way() && (number == RESTART || is_same)
    }
}

/// The arguments that the call has; the other registers hold anything, and are not looked at.
fn arguments(registers: &user_regs_struct, known: &KnownCall) -> [u64; 6] {
    let r = registers;
    let mut arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
    arguments[known.arguments..].fill(0);
    arguments
}

/// Codes by which the kernel tells itself to begin a call again, or to let it fail with EINTR
/// (include/linux/errno.h): ERESTARTSYS, -NOINTR, -NOHAND, and _RESTARTBLOCK.
pub(super) fn is_to_be_restarted(result: i64) -> bool {
    matches!(result, -512 | -513 | -514 | -516)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapstone_events::system_calls::table;

    fn registers(number: i64, arguments: [u64; 3]) -> user_regs_struct {
        // SAFETY: zeroes are valid numbers.
        let zeroes: user_regs_struct = unsafe { std::mem::zeroed() };
        let [rdi, rsi, rdx] = arguments;
        let r10 = 1;
        let r8 = 2;
        let r9 = 3;
        user_regs_struct { orig_rax: number as u64, rdi, rsi, rdx, r10, r8, r9, ..zeroes }
    }

    #[test]
    fn registers_that_are_no_arguments_are_not_kept() {
        let poll = table::by_name("poll").unwrap();
        let call = PendingCall::new(poll, &registers(libc::SYS_poll, [7, 8, 9]), Nanos::ZERO);
        assert_eq!(call.arguments, [7, 8, 9, 0, 0, 0]);
    }

    #[test]
    fn only_an_interrupted_call_is_begun_again() {
        let poll = table::by_name("poll").unwrap();
        let entry = registers(libc::SYS_poll, [7, 8, 9]);
        let mut call = PendingCall::new(poll, &entry, Nanos::ZERO);
        assert!(!call.is_begun_again(&entry), "it is under way");
        call.interrupted = Some(Nanos(1));
        assert!(call.is_begun_again(&entry));
        assert!(call.is_begun_again(&registers(libc::SYS_restart_syscall, [7, 8, 9])));
        assert!(!call.is_begun_again(&registers(libc::SYS_poll, [7, 8, 10])));
        assert!(!call.is_begun_again(&registers(libc::SYS_read, [7, 8, 9])));
        assert!(!call.is_begun_again(&user_regs_struct { rip: 1, ..entry }));
    }
}
