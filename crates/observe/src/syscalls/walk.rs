//! From a stopped thread's registers to the stack that it is on.

use framehop::FrameAddress;
use framehop::x86_64::UnwindRegsX86_64;
use libc::{pid_t, user_regs_struct};

use super::images::Images;
use super::memory;
use super::space::Space;
use super::stacks::Collector;
use tapstone_events::system_calls::{StackId, Stacks};

/// Frames further out than these are not looked for.
const MOST_FRAMES: usize = 128;

/// Walks stacks, and knows all that were met.
pub(super) struct Walker {
    pub(super) images: Images,
    collector: Collector,
    /// Stacks that could not be read: their program does not let others read its memory.
    pub(super) refused: u64,
    /// Memory to use again and again.
    bytes: Vec<u8>,
    places: Vec<u32>,
}

impl Walker {
    pub(super) fn new() -> Self {
        let images = Images::default();
        let collector = Collector::new();
        Self { images, collector, refused: 0, bytes: Vec::new(), places: Vec::new() }
    }

    /// The stack of a thread that is stopped.
    pub(super) fn stack(
        &mut self,
        space: &mut Space,
        thread: pid_t,
        registers: &user_regs_struct,
    ) -> StackId {
        self.places.clear();
        let mut stack = memory::Stack::new(thread, registers.rsp, &mut self.bytes);
        let mut unwound = UnwindRegsX86_64::new(registers.rip, registers.rsp, registers.rbp);
        let mut next = Some(FrameAddress::from_instruction_pointer(registers.rip));
        while let Some(address) = next.filter(|_| self.places.len() < MOST_FRAMES) {
            let place = space.place(&mut self.images, &mut self.collector, thread, address);
            let Some(place) = place else { break };
            self.places.push(place);
            next = space.caller(address, &mut unwound, &mut stack);
        }
        if self.places.len() < 2 && stack.word(registers.rsp).is_err() {
            self.refused += 1;
        }
        self.collector.stack(&self.places)
    }

    /// Stacks that were cut because there were too many.
    pub(super) fn cut(&self) -> u64 {
        self.collector.cut
    }

    /// All stacks, with names.
    pub(super) fn into_stacks(self) -> Stacks {
        self.collector.named(self.images.as_slice())
    }
}
