//! Where in a function a probe costs least.
//!
//! The kernel puts a breakpoint on an instruction. Some (`push`, a jump on a condition or without)
//! it carries out itself; others it has to step through elsewhere, which costs several times as
//! much. Many functions begin with a few of the others and then one of these, so the probe goes
//! there, where that is the same: the way is straight, nothing jumps into it, the stack pointer has
//! not moved, so that the return address is where it was, and where arguments are looked at, none
//! has been overwritten.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, Register,
};

/// A function of a file, as far as it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    /// Its bytes from the entry on. Some that follow it do no harm.
    pub(crate) code: &'a [u8],
    /// Its arguments are looked at.
    pub(crate) with_arguments: bool,
}

/// So far from the entry a probe is moved at most, in instructions.
const FURTHEST: usize = 16;

/// Where the probe goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbePlace {
    /// How many bytes behind the entry; 0: on the entry itself.
    pub behind: u64,
    /// The kernel has to step through the instruction there.
    pub is_stepped: bool,
}

/// The cheapest place in a function's body at which a probe may go.
pub(crate) fn probe_place(body: Body<'_>) -> ProbePlace {
    const ENTRY: ProbePlace = ProbePlace { behind: 0, is_stepped: true };
    let Some(behind) = straight_way(body) else { return ENTRY };
    let is_alone = behind == 0 || !jumps_into(body.code, behind);
    if is_alone { ProbePlace { behind, is_stepped: false } } else { ENTRY }
}

/// The first instruction that the kernel carries out itself, where the way to it is straight.
fn straight_way(body: Body<'_>) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, body.code, 0, DecoderOptions::NONE);
    let mut info = InstructionInfoFactory::new();
    for instruction in decoder.iter().take(FURTHEST) {
        if is_emulated(&instruction) {
            return Some(instruction.ip());
        }
        let leaves = instruction.is_invalid()
            || instruction.flow_control() != FlowControl::Next
            || instruction.has_rep_prefix()
            || instruction.has_repne_prefix();
        if leaves || overwrites(&mut info, &instruction, body.with_arguments) {
            return None;
        }
    }
    None
}

/// arch/x86/kernel/uprobes.c: push_setup_xol_ops and branch_setup_xol_ops. A `nop` is no better a
/// place than what follows, so it is passed.
fn is_emulated(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Push => instruction.code() == Code::Push_r64,
        Mnemonic::Jmp => matches!(instruction.code(), Code::Jmp_rel8_64 | Code::Jmp_rel32_64),
        _ => instruction.is_jcc_short_or_near(),
    }
}

/// Whether it moves the stack pointer, or writes to a register that has an argument that matters.
fn overwrites(
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
    with_arguments: bool,
) -> bool {
    const KEPT: [Register; 7] = [
        Register::RSP,
        Register::RDI,
        Register::RSI,
        Register::RDX,
        Register::RCX,
        Register::R8,
        Register::R9,
    ];
    let kept = if with_arguments { &KEPT[..] } else { &KEPT[..1] };
    info.info(instruction).used_registers().iter().any(|used| {
        let is_written =
            !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead);
        is_written && kept.contains(&used.register().full_register())
    })
}

/// Whether a jump near by goes behind the entry, up to the place. What cannot be decoded, or does
/// not tell where it goes, is taken for a jump into it only where it is still on the way.
fn jumps_into(code: &[u8], offset: u64) -> bool {
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    decoder.into_iter().take_while(|instruction| !instruction.is_invalid()).any(|instruction| {
        let jumps = matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call
        );
        jumps && (1..=offset).contains(&instruction.near_branch_target())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_goes_to_the_first_push_on_a_straight_way() {
        for (what, code, offset) in [
            ("push rbp", &[0x55, 0xC3][..], 0),
            ("endbr64; push rbp", &[0xF3, 0x0F, 0x1E, 0xFA, 0x55, 0xC3], 4),
            ("endbr64; push r12", &[0xF3, 0x0F, 0x1E, 0xFA, 0x41, 0x54, 0xC3], 4),
            ("mov rax,[rip+0]; push rbx", &[0x48, 0x8B, 5, 0, 0, 0, 0, 0x53, 0xC3], 7),
            ("mov eax,84; jmp +0", &[0xB8, 84, 0, 0, 0, 0xEB, 0], 5),
            ("test edi,edi; je +1; push rbx", &[0x85, 0xFF, 0x74, 1, 0x53, 0xC3], 2),
        ] {
            let place = ProbePlace { behind: offset, is_stepped: false };
            assert_eq!(probe_place(Body { code, with_arguments: true }), place, "{what}");
        }
    }

    #[test]
    fn an_argument_that_is_not_looked_at_may_be_overwritten() {
        let code = &[0xBF, 1, 0, 0, 0, 0x53, 0xC3];
        let place = |with_arguments| probe_place(Body { code, with_arguments });
        assert_eq!(place(false), ProbePlace { behind: 5, is_stepped: false });
        assert_eq!(place(true), ProbePlace { behind: 0, is_stepped: true });
    }

    #[test]
    fn otherwise_it_stays_on_the_entry() {
        for (what, code) in [
            ("mov eax,84; ret", &[0xB8, 84, 0, 0, 0, 0xC3][..]),
            ("sub rsp,8; push rbx", &[0x48, 0x83, 0xEC, 8, 0x53]),
            ("xor ecx,ecx; push rbx", &[0x31, 0xC9, 0x53, 0xC3]),
            ("mov edi,1; push rbx", &[0xBF, 1, 0, 0, 0, 0x53, 0xC3]),
            ("endbr64; push rbx; jmp to the push", &[0xF3, 0x0F, 0x1E, 0xFA, 0x53, 0xEB, 0xFD]),
            ("mov eax,1; push rbx; je behind the mov", &[0xB8, 1, 0, 0, 0, 0x53, 0x74, 0xFD]),
            ("call; push rbx", &[0xE8, 0, 0, 0, 0, 0x53]),
            ("nothing", &[]),
        ] {
            let entry = ProbePlace { behind: 0, is_stepped: true };
            assert_eq!(probe_place(Body { code, with_arguments: true }), entry, "{what}");
        }
    }
}
