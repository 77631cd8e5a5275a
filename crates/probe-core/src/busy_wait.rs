//! `no-busy-wait`: when three polls without a time limit have found nothing inside one call, every
//! further one moves that thread's clock on by a millisecond until the call returns. The call gives
//! up when its own deadline says so, without having spun for so long. Other time limits that it
//! computes from the clock become shorter too.
//!
//! `no-busy-wait:program`: a program that asks itself, outside of any call, is let wait for what it asks
//! for ([`OwnPolls`]), a millisecond at most each time: it gets the same answers, and no processor is
//! kept busy.

use crate::frame::Frame;
use crate::names::known;
use crate::program_memory::ProgramMemory;

/// Polls that find nothing before it counts as spinning.
const EMPTY_POLLS: u32 = 3;
/// What an empty poll is worth from then on, in nanoseconds.
const STEP_NANOS: u64 = 1_000_000;
const NANOS_A_SECOND: u64 = 1_000_000_000;
/// Polls of a program in a row that found nothing before it is let wait: fewer do not come from a loop
/// with nothing else to do.
const OWN_POLLS: u32 = 1000;

/// What a poll inside a call has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// It did not wait, and found nothing.
    Empty,
    /// It waited, or found something.
    Otherwise,
}

/// How a call spins. All zeros: not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusyWait {
    /// Polls in it that found nothing, one after the other.
    empty_polls: u32,
    /// How much the clock is ahead of the time, inside it.
    ahead_nanos: u64,
}

impl BusyWait {
    /// Notes a poll. Returns whether the call spins.
    pub fn note_poll(&mut self, polled: Polled) -> bool {
        self.empty_polls = match polled {
            Polled::Empty => self.empty_polls.saturating_add(1),
            Polled::Otherwise => 0,
        };
        self.empty_polls > EMPTY_POLLS
    }

    /// Moves the call's clock on.
    pub fn move_clock_on(&mut self) {
        self.ahead_nanos += STEP_NANOS;
    }

    /// How much the clock is ahead of the time inside the call, in nanoseconds.
    pub fn ahead_nanos(&self) -> u64 {
        self.ahead_nanos
    }
}

/// How a thread polls outside of any call. All zeros: not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnPolls {
    /// Polls that found nothing, one after the other.
    empty: u32,
}

impl OwnPolls {
    /// Notes a poll.
    pub fn note(&mut self, polled: Polled) {
        self.empty = match polled {
            Polled::Empty => self.empty.saturating_add(1),
            Polled::Otherwise => 0,
        };
    }

    /// Lets a poll that would not wait do so, if many before it have found nothing. Returns whether.
    pub fn let_wait(&self, frame: &mut Frame, function: u32) -> bool {
        // Milliseconds, as an int.
        let limit = match function {
            known::POLL | known::POLL_CHK => 2,
            known::EPOLL_WAIT => 3,
            _ => return false,
        };
        let waits = self.empty >= OWN_POLLS && frame.arguments[limit] as i32 == 0;
        if waits {
            frame.arguments[limit] = STEP_NANOS / 1_000_000;
        }
        waits
    }
}

/// Moves on what a function that reads a clock has told, by so many nanoseconds.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub unsafe fn move_reading_on(frame: &mut Frame, function: u32, ahead: u64) {
    let [first, second, ..] = frame.arguments;
    if function != known::TIME && frame.result as i32 != 0 {
        return;
    }
    // SAFETY: where the function has just written the time.
    unsafe {
        match function {
            known::CLOCK_GETTIME => move_pair_on(second, ahead, NANOS_A_SECOND),
            known::GETTIMEOFDAY => move_pair_on(first, ahead / 1_000, 1_000_000),
            known::TIME => {
                frame.result += ahead / NANOS_A_SECOND;
                if first != 0 {
                    *(first as *mut u64) = frame.result;
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// `at` is null or points to seconds and their parts, of which so many are one.
unsafe fn move_pair_on(at: u64, parts: u64, one: u64) {
    let at = at as *mut u64;
    if at.is_null() {
        return;
    }
    // SAFETY: two words.
    unsafe {
        let all = *at.add(1) + parts;
        *at += all / one;
        *at.add(1) = all % one;
    }
}

/// Whether a call would sleep, and not say that its time is none (EFAULT, EINVAL). The time that is
/// left is written by a sleep that a signal ends, and by no other.
///
/// # Safety
/// The frame is a call of that function, which has not begun.
pub unsafe fn would_sleep(frame: &Frame, function: u32, memory: &ProgramMemory) -> bool {
    let [first, _, third, ..] = frame.arguments;
    let time = match function {
        known::SLEEP | known::USLEEP => return true,
        known::NANOSLEEP => first,
        _ => third,
    };
    // SAFETY: the caller's promise.
    let time = unsafe { memory.words::<2>(time) };
    time.is_some_and(|[seconds, nanos]| seconds >> 63 == 0 && nanos < NANOS_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(words: &mut [u64; 2]) -> u64 {
        words.as_mut_ptr() as u64
    }

    #[test]
    fn the_fourth_empty_poll_in_a_row_is_spinning() {
        let mut call = BusyWait::default();
        let spins: std::vec::Vec<bool> = (0..5).map(|_| call.note_poll(Polled::Empty)).collect();
        assert_eq!(spins, [false, false, false, true, true]);
        assert!(!call.note_poll(Polled::Otherwise));
        assert!(!call.note_poll(Polled::Empty), "it begins anew");
    }

    #[test]
    fn a_program_that_asks_a_thousand_times_in_vain_is_let_wait() {
        let mut polls = OwnPolls::default();
        let limit_of = |polls: &OwnPolls, function, at: usize, limit: i32| {
            let mut frame = Frame::new(function, [5; 6]);
            frame.arguments[at] = u64::from(limit as u32);
            let waits = polls.let_wait(&mut frame, function);
            (waits, frame.arguments[at] as i32)
        };
        for _ in 0..OWN_POLLS {
            assert_eq!(limit_of(&polls, known::POLL, 2, 0), (false, 0));
            polls.note(Polled::Empty);
        }
        for (function, at) in [(known::POLL, 2), (known::POLL_CHK, 2), (known::EPOLL_WAIT, 3)] {
            assert_eq!(limit_of(&polls, function, at, 0), (true, 1));
            assert_eq!(limit_of(&polls, function, at, 7), (false, 7), "it waits itself");
            assert_eq!(limit_of(&polls, function, at, -1), (false, -1));
        }
        assert_eq!(limit_of(&polls, known::SELECT, 2, 0), (false, 0));
        polls.note(Polled::Otherwise);
        assert_eq!(limit_of(&polls, known::POLL, 2, 0), (false, 0), "it begins anew");
    }

    #[test]
    fn the_clock_moves_on_by_a_millisecond() {
        let mut call = BusyWait::default();
        assert_eq!(call.ahead_nanos(), 0);
        call.move_clock_on();
        call.move_clock_on();
        assert_eq!(call.ahead_nanos(), 2_000_000);
    }

    #[test]
    fn a_reading_of_each_clock_moves_on() {
        let mut time = [10, 999_999_000];
        let mut frame = Frame::new(known::CLOCK_GETTIME, [1, address(&mut time), 0, 0, 0, 0]);
        // SAFETY: the second argument points to two words.
        unsafe { move_reading_on(&mut frame, known::CLOCK_GETTIME, 1_500) };
        assert_eq!(time, [11, 500]);

        frame.result = u64::MAX;
        // SAFETY: as above.
        unsafe { move_reading_on(&mut frame, known::CLOCK_GETTIME, 1_500) };
        assert_eq!(time, [11, 500], "a clock that there is not told no time");

        let mut time = [10, 999_999];
        let mut frame = Frame::new(known::GETTIMEOFDAY, [address(&mut time), 0, 0, 0, 0, 0]);
        // SAFETY: the first argument points to two words.
        unsafe { move_reading_on(&mut frame, known::GETTIMEOFDAY, 2_500_001_999) };
        assert_eq!(time, [13, 500_000], "parts of a microsecond are dropped");

        let mut time = [10, 77];
        let mut frame = Frame::new(known::TIME, [address(&mut time), 0, 0, 0, 0, 0]);
        frame.result = 10;
        // SAFETY: the first argument points to a word.
        unsafe { move_reading_on(&mut frame, known::TIME, 2_999_999_999) };
        assert_eq!(frame.result, 12);
        assert_eq!(time, [12, 77]);
    }

    #[test]
    fn where_nothing_was_written_nothing_is() {
        for function in [known::CLOCK_GETTIME, known::GETTIMEOFDAY, known::TIME, known::POLL] {
            let mut frame = Frame::new(function, [0; 6]);
            frame.result = 5;
            // SAFETY: null is allowed.
            unsafe { move_reading_on(&mut frame, function, 1_000_000_000) };
            assert_eq!(frame.result, if function == known::TIME { 6 } else { 5 });
        }
    }

    #[test]
    fn a_time_that_is_none_is_for_the_kernel_to_refuse() {
        let would = |function, time: u64, is_there: bool| {
            let frame = Frame::new(function, [time, 0, time, 0, 0, 0]);
            let memory =
                ProgramMemory::of_call(&frame, if is_there { |_| true } else { |_| false });
            // SAFETY: two words, or nothing that is there.
            unsafe { would_sleep(&frame, function, &memory) }
        };
        let clock_nanosleep = crate::names::function_number(b"clock_nanosleep").unwrap() as u32;
        for function in [known::NANOSLEEP, clock_nanosleep] {
            assert!(would(function, address(&mut [3, 999_999_999]), true));
            assert!(!would(function, address(&mut [3, 1_000_000_000]), true));
            assert!(!would(function, address(&mut [u64::MAX, 0]), true));
            assert!(!would(function, 0, true), "null");
            assert!(!would(function, 1 << 40, false));
        }
        assert!(would(known::SLEEP, 3, false) && would(known::USLEEP, 3, false));
    }
}
