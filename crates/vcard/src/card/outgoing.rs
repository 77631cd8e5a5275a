//! Response data on its way out: what fits the command's Le goes at once, the rest waits for GET
//! RESPONSE (ISO 7816-4, 5.3.4 and 11.7.1).

use tapstone_apdu::{CommandApdu, Expected, StatusWord};

use crate::applet::Reply;
use crate::transmission::Transmission;

/// The part of a response that has not been fetched.
pub(super) struct PendingResponse {
    transmission: Transmission,
    waiting: Option<Reply>,
}

impl PendingResponse {
    pub(super) const fn new(transmission: Transmission) -> Self {
        Self { transmission, waiting: None }
    }

    /// The response to the command itself. `optional`: its data may be left unfetched without a
    /// word, as the control information of SELECT.
    pub(super) fn begin(
        &mut self,
        reply: Reply,
        expected: Option<Expected>,
        had_data: bool,
        optional: bool,
    ) -> Reply {
        let length = reply.data.len();
        let room = match expected {
            _ if length == 0 => return reply,
            None if optional && self.transmission == Transmission::T1 => {
                return Reply { data: Vec::new(), ..reply };
            }
            None => 0,
            Some(_) if had_data && self.transmission == Transmission::T0 => 0,
            Some(expected) => expected.count(),
        };
        if room > 0 && self.wants_another_le(room, length) {
            let work = reply.work;
            return Reply { data: Vec::new(), status: exact(length), work };
        }
        self.send(reply, room)
    }

    /// Answers GET RESPONSE with the next part of the pending response.
    pub(super) fn fetch(&mut self, command: &CommandApdu) -> Reply {
        let Some(reply) = self.waiting.take() else {
            return Reply::refused(StatusWord::CONDITIONS_NOT_SATISFIED);
        };
        let problem = match command.expected {
            _ if command.p1 != 0 || command.p2 != 0 => StatusWord::WRONG_PARAMETERS,
            _ if !command.data.is_empty() => StatusWord::WRONG_LENGTH,
            None => StatusWord::WRONG_LENGTH,
            Some(expected) if self.wants_another_le(expected.count(), reply.data.len()) => {
                exact(reply.data.len())
            }
            Some(expected) => return self.send(reply, expected.count()),
        };
        self.waiting = Some(reply);
        Reply::refused(problem)
    }

    /// Another command came: what was not fetched is gone.
    pub(super) fn forget(&mut self) {
        self.waiting = None;
    }

    /// T=0 sends exactly P3 bytes (ISO 7816-3, 12.2.3, case 2S.3), so Le must not ask for more
    /// than there is.
    fn wants_another_le(&self, asked: usize, there: usize) -> bool {
        self.transmission == Transmission::T0 && asked > there && there <= 256
    }

    fn send(&mut self, mut reply: Reply, room: usize) -> Reply {
        if reply.data.len() <= room {
            return reply;
        }
        let rest = reply.data.split_off(room);
        let status = StatusWord::more(rest.len());
        let later = Reply { data: rest, status: reply.status, work: Vec::new() };
        self.waiting = Some(later);
        Reply { status, ..reply }
    }
}

/// The Le that fits: 6Cxx.
fn exact(length: usize) -> StatusWord {
    StatusWord(0x6C00 | (length & 0xFF) as u16)
}
