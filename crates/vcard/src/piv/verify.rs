//! VERIFY, CHANGE REFERENCE DATA and RESET RETRY COUNTER: SP 800-73-5 part 2, 3.2.1 to 3.2.3.

use tapstone_apdu::{CommandApdu, StatusWord};

use super::pin::{LENGTH, PinSecret};
use super::{PivApplet, work};
use crate::applet::Reply;

/// Key references of part 1, table 4. The global PIN (00), the pairing code (98) and biometrics
/// (96, 97) are not there, as the discovery object says.
const PIN: u8 = 0x80;
const PUK: u8 = 0x81;

impl PivApplet {
    pub(super) fn verify(&mut self, command: &CommandApdu) -> Reply {
        if command.p2 != PIN {
            return Reply::refused(StatusWord::REFERENCE_NOT_FOUND);
        }
        match (command.p1, &command.data[..]) {
            (0x00, []) if self.verified => Reply::ok([]),
            (0x00, []) => Reply::refused(self.pin.state()),
            (0x00, data) => self.compare_pin(data),
            // Gives the security status up, as if nothing had been verified.
            (0xFF, []) => {
                self.verified = false;
                Reply::ok([])
            }
            (0xFF, _) => Reply::refused(StatusWord::WRONG_DATA),
            _ => Reply::refused(StatusWord::WRONG_PARAMETERS),
        }
    }

    fn compare_pin(&mut self, data: &[u8]) -> Reply {
        if self.pin.is_blocked() {
            return Reply::refused(StatusWord::BLOCKED);
        }
        if data.len() != LENGTH {
            return Reply::refused(StatusWord::WRONG_LENGTH);
        }
        if PinSecret::pin(data).is_none() {
            return Reply::refused(StatusWord::WRONG_DATA);
        }
        let checked = self.pin.check(data);
        self.verified = checked.is_ok();
        self.just_verified = self.verified;
        reply(checked).after(work::PIN_VERIFY, 1)
    }

    pub(super) fn change_reference_data(&mut self, command: &CommandApdu) -> Reply {
        let reference = match (command.p1, command.p2) {
            (0x00, PIN) => &mut self.pin,
            (0x00, PUK) => &mut self.puk,
            (0x00, _) => return Reply::refused(StatusWord::REFERENCE_NOT_FOUND),
            _ => return Reply::refused(StatusWord::WRONG_PARAMETERS),
        };
        if reference.is_blocked() {
            return Reply::refused(StatusWord::BLOCKED);
        }
        if command.data.len() != 2 * LENGTH {
            return Reply::refused(StatusWord::WRONG_LENGTH);
        }
        let (old, new) = command.data.split_at(LENGTH);
        let is_pin = command.p2 == PIN;
        let new = if is_pin { PinSecret::pin(new) } else { PinSecret::puk(new) };
        let Some(new) = new else {
            return Reply::refused(StatusWord::WRONG_DATA);
        };
        let checked = reference.check(old);
        if is_pin {
            self.verified = checked.is_ok();
        }
        if checked.is_err() {
            return reply(checked).after(work::PIN_VERIFY, 1);
        }
        reference.replace(new);
        reply(checked).after(work::PIN_VERIFY, 1).after(work::PIN_WRITE, 1)
    }

    pub(super) fn reset_retry_counter(&mut self, command: &CommandApdu) -> Reply {
        match (command.p1, command.p2) {
            (0x00, PIN) => {}
            (0x00, _) => return Reply::refused(StatusWord::REFERENCE_NOT_FOUND),
            _ => return Reply::refused(StatusWord::WRONG_PARAMETERS),
        }
        if self.puk.is_blocked() {
            return Reply::refused(StatusWord::BLOCKED);
        }
        if command.data.len() != 2 * LENGTH {
            return Reply::refused(StatusWord::WRONG_LENGTH);
        }
        let (puk, new) = command.data.split_at(LENGTH);
        let Some(new) = PinSecret::pin(new) else {
            return Reply::refused(StatusWord::WRONG_DATA);
        };
        let checked = self.puk.check(puk);
        if checked.is_err() {
            return reply(checked).after(work::PIN_VERIFY, 1);
        }
        // The security status of the PIN stays what it was.
        self.pin.replace(new);
        reply(checked).after(work::PIN_VERIFY, 1).after(work::PIN_WRITE, 1)
    }
}

fn reply(checked: Result<(), StatusWord>) -> Reply {
    match checked {
        Ok(()) => Reply::ok([]),
        Err(status) => Reply::refused(status),
    }
}
