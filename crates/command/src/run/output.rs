//! Reads what a command prints, both streams at once, in bounded memory, until the command has
//! ended.
//!
//! Whoever else holds the pipes open by then (a daemon that it started) is not waited for: what
//! the command itself wrote is in the pipe, and is read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use sha2::{Digest, Sha256};
use tapstone_text::Foreign;

use crate::observation::Observations;

/// So much of a stream is kept from its beginning.
const KEPT_BYTES: usize = 16 << 20;

/// So much of a stream is kept of its end, for errors.
const TAIL_BYTES: usize = 8 << 10;

/// What one read asks for: as much as a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// The most that a pipe holds (fs.pipe-max-size, unless root raised it): more cannot have been
/// written before the command ended.
const PIPE_BYTES: u64 = 1 << 20;

/// Where a command's standard output and standard error go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramOutput {
    /// To where Tapstone's own go.
    #[default]
    Passed,
    /// Both to Tapstone's standard error: its standard output is for data.
    Shown,
    /// Kept: the first 16 MiB of each, and the SHA-256 of all of it.
    Kept,
    /// Read and counted; the last lines are kept, to be shown when something goes wrong.
    Tail,
}

/// What a command printed to one of its streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// How much, in bytes.
    pub bytes: u64,
    /// The SHA-256 of all of it, where the output is kept rather than counted.
    pub sha256: Option<[u8; 32]>,
    /// The first 16 MiB, or where it is only counted the last 8 KiB.
    pub kept: Vec<u8>,
}

impl Stream {
    /// The last lines of what was kept, without what could act on a terminal.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.kept);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let harmless = |line: &&str| Foreign::new(line.replace('\t', " ")).to_string();
        lines[lines.len().saturating_sub(count)..].iter().map(harmless).collect()
    }
}

/// The reading ends of a command's pipes, if it has any: standard output and standard error.
pub(super) struct Readers {
    readers: Option<[PipeReader; 2]>,
    buffer: Vec<u8>,
}

impl Readers {
    pub(super) fn of_child(output: ProgramOutput, child: &mut Child) -> Self {
        let pipes = child.stdout.take().zip(child.stderr.take());
        let readers = pipes.map(|(stdout, stderr)| {
            [OwnedFd::from(stdout), stderr.into()].map(|pipe| PipeReader::new(pipe, output))
        });
        Self { readers, buffer: vec![0; READ_BYTES] }
    }

    /// Reads until this process, given as a pidfd, has ended, and looks after observations.
    /// Without pipes and observations there is nothing to do.
    pub(super) fn read_until_exit(
        &mut self,
        process: BorrowedFd<'_>,
        observations: &Observations<'_>,
    ) -> io::Result<()> {
        let mut open: Vec<&mut PipeReader> = self.readers.iter_mut().flatten().collect();
        let pause = observations.period();
        let pause = pause.map(|pause| Timespec::try_from(pause).expect("it is short"));
        if open.is_empty() && pause.is_none() {
            return Ok(());
        }
        loop {
            let pipes = open.iter().map(|reader| reader.pipe.as_fd());
            let all = [process].into_iter().chain(pipes);
            let mut waited: Vec<_> =
                all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            match poll(&mut waited, pause.as_ref()) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let ready: Vec<bool> = waited.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return open.into_iter().try_for_each(|reader| reader.read_rest(&mut self.buffer));
            }
            observations.look_after();
            let mut still_open = Vec::new();
            for (reader, ready) in open.into_iter().zip(&ready[1..]) {
                if !ready || reader.read(&mut self.buffer)? > 0 {
                    still_open.push(reader);
                }
            }
            open = still_open;
        }
    }

    pub(super) fn finish(self) -> (Option<Stream>, Option<Stream>) {
        match self.readers.map(|readers| readers.map(PipeReader::finish)) {
            Some([stdout, stderr]) => (Some(stdout), Some(stderr)),
            None => (None, None),
        }
    }
}

/// One pipe, and what came out of it.
struct PipeReader {
    pipe: OwnedFd,
    whole: bool,
    bytes: u64,
    kept: Vec<u8>,
    /// Of what no longer fits `kept`, and all that was before it. Small outputs are not hashed
    /// until the command has ended: that takes time which it could have used.
    sha256: Option<Sha256>,
}

impl PipeReader {
    fn new(pipe: OwnedFd, output: ProgramOutput) -> Self {
        let whole = output == ProgramOutput::Kept;
        Self { pipe, whole, bytes: 0, kept: Vec::new(), sha256: None }
    }

    /// Reads what is there; 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            match rustix::io::read(&self.pipe, &mut *buffer) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        self.take(&buffer[..count]);
        Ok(count)
    }

    /// What the command has left in the pipe.
    fn read_rest(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        ioctl_fionbio(&self.pipe, true)?;
        let before = self.bytes;
        while self.bytes - before < PIPE_BYTES {
            match self.read(buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take(&mut self, new: &[u8]) {
        self.bytes += new.len() as u64;
        if self.whole {
            let (fits, rest) = new.split_at(new.len().min(KEPT_BYTES - self.kept.len()));
            self.kept.extend_from_slice(fits);
            if !rest.is_empty() {
                let start = || Sha256::new_with_prefix(&self.kept);
                self.sha256.get_or_insert_with(start).update(rest);
            }
        } else {
            self.kept.extend_from_slice(new);
            if self.kept.len() > 2 * TAIL_BYTES {
                self.kept.drain(..self.kept.len() - TAIL_BYTES);
            }
        }
    }

    fn finish(mut self) -> Stream {
        let sha256 = self.whole.then(|| {
            let all = self.sha256.take().unwrap_or_else(|| Sha256::new_with_prefix(&self.kept));
            all.finalize().into()
        });
        if !self.whole {
            self.kept.drain(..self.kept.len().saturating_sub(TAIL_BYTES));
        }
        Stream { bytes: self.bytes, sha256, kept: self.kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(output: ProgramOutput) -> PipeReader {
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        PipeReader::new(pipe, output)
    }

    fn hex(digest: [u8; 32]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_beginning_is_kept_and_all_of_it_is_in_the_digest() {
        let mut small = reader(ProgramOutput::Kept);
        let mut large = reader(ProgramOutput::Kept);
        small.take(b"a");
        small.take(b"bc");
        let small = small.finish();
        assert_eq!((small.bytes, &small.kept[..]), (3, &b"abc"[..]));
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(small.sha256.unwrap()), abc);
        let chunk = [7_u8; 1_000_003];
        (0..20).for_each(|_| large.take(&chunk));
        let large = large.finish();
        assert_eq!((large.bytes, large.kept.len()), (20_000_060, KEPT_BYTES));
        let all: [u8; 32] = Sha256::digest(chunk.repeat(20)).into();
        assert_eq!(large.sha256, Some(all));
    }

    #[test]
    fn of_the_rest_only_the_end_is_kept() {
        let mut reader = reader(ProgramOutput::Tail);
        for number in 0..100_000 {
            reader.take(format!("line {number}\n").as_bytes());
        }
        let stream = reader.finish();
        assert_eq!((stream.kept.len(), stream.sha256), (TAIL_BYTES, None));
        assert_eq!(stream.bytes, 1_088_890);
        assert_eq!(stream.last_lines(2), ["line 99998", "line 99999"]);
    }

    #[test]
    fn lines_for_a_terminal_cannot_act_on_it() {
        let kept = b"first\n\n\x1b[2Jsecond\r\n \nth\xffird\xe2\x80\xae\tend\n\n".to_vec();
        let stream = Stream { bytes: kept.len() as u64, sha256: None, kept };
        let lines = stream.last_lines(2);
        assert_eq!(lines, ["\u{fffd}[2Jsecond", "th\u{fffd}ird\u{fffd} end"]);
        assert_eq!(stream.last_lines(9).len(), 3);
    }
}
