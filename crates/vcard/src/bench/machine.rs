//! The machine: a stack of 16 cells of two bytes, an output that grows, thirteen instructions.

/// The longest program, and the longest output.
pub(super) const LONGEST: usize = 512;
const STACK: usize = 16;
const MOST_STEPS: u16 = 32_767;

/// A program of at most 512 bytes.
#[derive(Debug)]
pub(super) struct Bytecode(Vec<u8>);

impl Bytecode {
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= LONGEST).then(|| Self(bytes.to_vec()))
    }
}

/// The program left its stack, its code or its output, met no instruction, or ran too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MachineFault;

/// One run of a program.
pub(super) struct BytecodeMachine<'a> {
    program: &'a [u8],
    pointer: usize,
    stack: Vec<u16>,
    output: Vec<u8>,
    steps: u16,
}

impl<'a> BytecodeMachine<'a> {
    pub(super) fn new(program: &'a Bytecode) -> Self {
        let stack = Vec::with_capacity(STACK);
        Self { program: &program.0, pointer: 0, stack, output: Vec::new(), steps: 0 }
    }

    /// Executes the program up to HALT, or to the first fault.
    pub(super) fn execute(&mut self) -> Result<(), MachineFault> {
        while self.step()? {}
        Ok(())
    }

    /// How many instructions were run, HALT included.
    pub(super) const fn steps(&self) -> u16 {
        self.steps
    }

    pub(super) fn output(&self) -> &[u8] {
        &self.output
    }

    pub(super) fn into_output(self) -> Vec<u8> {
        self.output
    }

    /// One instruction; false after HALT.
    fn step(&mut self) -> Result<bool, MachineFault> {
        if self.steps == MOST_STEPS {
            return Err(MachineFault);
        }
        let opcode = self.byte()?;
        self.steps += 1;
        match opcode {
            0x00 => return Ok(false),
            0x01 => {
                let value = self.byte()?;
                self.push(value.into())?;
            }
            0x02 => {
                let value = self.two_bytes()?;
                self.push(value)?;
            }
            0x03 => {
                let top = *self.stack.last().ok_or(MachineFault)?;
                self.push(top)?;
            }
            0x04 => drop(self.pop()?),
            0x05 => {
                let b = self.pop()?;
                let a = self.pop()?;
                self.push(b)?;
                self.push(a)?;
            }
            0x10 => self.combine(u16::wrapping_add)?,
            0x11 => self.combine(u16::wrapping_sub)?,
            0x12 => self.combine(|a, b| a ^ b)?,
            0x20 => {
                let target = self.two_bytes()?;
                self.jump(target)?;
            }
            0x21 => {
                let target = self.two_bytes()?;
                if self.pop()? != 0 {
                    self.jump(target)?;
                }
            }
            0x30 => {
                let value = self.pop()?;
                self.put_out(&[value as u8])?;
            }
            0x31 => {
                let value = self.pop()?;
                self.put_out(&value.to_be_bytes())?;
            }
            _ => return Err(MachineFault),
        }
        Ok(true)
    }

    fn byte(&mut self) -> Result<u8, MachineFault> {
        let byte = *self.program.get(self.pointer).ok_or(MachineFault)?;
        self.pointer += 1;
        Ok(byte)
    }

    fn two_bytes(&mut self) -> Result<u16, MachineFault> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn push(&mut self, value: u16) -> Result<(), MachineFault> {
        if self.stack.len() == STACK {
            return Err(MachineFault);
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<u16, MachineFault> {
        self.stack.pop().ok_or(MachineFault)
    }

    fn combine(&mut self, operation: impl Fn(u16, u16) -> u16) -> Result<(), MachineFault> {
        let b = self.pop()?;
        let a = self.pop()?;
        self.push(operation(a, b))
    }

    fn jump(&mut self, target: u16) -> Result<(), MachineFault> {
        self.pointer = usize::from(target);
        if self.pointer < self.program.len() { Ok(()) } else { Err(MachineFault) }
    }

    fn put_out(&mut self, bytes: &[u8]) -> Result<(), MachineFault> {
        if self.output.len() + bytes.len() > LONGEST {
            return Err(MachineFault);
        }
        self.output.extend(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(code: &[u8]) -> Result<(u16, Vec<u8>), MachineFault> {
        let program = Bytecode::new(code).unwrap();
        let mut machine = BytecodeMachine::new(&program);
        machine.execute()?;
        Ok((machine.steps(), machine.into_output()))
    }

    #[test]
    fn instructions_do_what_the_text_says() {
        // 5 - 7, then both bytes; 1 xor 3 by its low byte.
        let code = [1, 5, 1, 7, 0x11, 0x31, 2, 0x01, 0x01, 1, 3, 0x12, 0x30, 0];
        assert_eq!(run(&code), Ok((9, vec![0xFF, 0xFE, 2])));
        // a b -> b a: 9 goes out first.
        assert_eq!(run(&[1, 9, 1, 8, 5, 0x30, 0x30, 0]), Ok((6, vec![9, 8])));
        // Counts 3 down to 0: PUSH1, three turns of four, HALT.
        let down = [1, 3, 1, 1, 0x11, 3, 0x21, 0, 2, 0];
        assert_eq!(run(&down), Ok((1 + 3 * 4 + 1, Vec::new())));
    }

    #[test]
    fn what_leaves_the_machine_is_a_fault() {
        let deep: Vec<u8> = [1, 1].repeat(17);
        for code in [&[][..], &[1], &[4], &[0x10], &[0x20, 0, 3], &[0x99], &[0x20, 0, 0], &deep] {
            assert_eq!(run(code), Err(MachineFault), "{code:?}");
        }
    }

    proptest! {
        #[test]
        fn any_program_ends(code in prop::collection::vec(any::<u8>(), 0..LONGEST)) {
            let program = Bytecode::new(&code).unwrap();
            let mut machine = BytecodeMachine::new(&program);
            let _ = machine.execute();
            prop_assert!(machine.steps() <= MOST_STEPS && machine.output().len() <= LONGEST);
        }
    }
}
