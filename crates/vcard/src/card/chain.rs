//! Command chaining: ISO 7816-4, 5.3.3. A command whose data is too long for one APDU comes in
//! several with the same header; all but the last have bit 5 of CLA set.

use tapstone_apdu::{CommandApdu, StatusWord};

/// The longest data field that is put together.
const LONGEST: usize = 65_535;

const LAST_OF_CHAIN_EXPECTED: StatusWord = StatusWord(0x6883);
const CHAINING_NOT_SUPPORTED: StatusWord = StatusWord(0x6884);

/// What has come of a chained command so far.
#[derive(Default)]
pub(super) struct Chain {
    open: Option<CommandApdu>,
}

/// What became of an APDU.
pub(super) enum Taken {
    /// The command is complete.
    Whole(CommandApdu),
    /// It is part of one that is not complete.
    More,
    /// It does not belong where it came.
    Refused(StatusWord),
}

impl Chain {
    /// Takes in an APDU. Only interindustry classes chain: proprietary ones are the applications'
    /// business.
    pub(super) fn take(&mut self, mut command: CommandApdu) -> Taken {
        let more = command.is_chained() && command.cla & 0x80 == 0;
        if more {
            command.cla &= !0x10;
        }
        let by_name = super::is_select(&command);
        if more && by_name {
            self.drop_it();
            return Taken::Refused(CHAINING_NOT_SUPPORTED);
        }
        if let Some(open) = self.open.take() {
            // A selection starts afresh, as a reset does: this is how a host gets out of a chain
            // that someone else left open.
            if !by_name {
                command = match joined(open, command) {
                    Ok(joined) => joined,
                    Err(status) => return Taken::Refused(status),
                };
            }
        }
        if more {
            self.open = Some(command);
            Taken::More
        } else {
            Taken::Whole(command)
        }
    }

    /// Forgets what has come so far.
    pub(super) fn drop_it(&mut self) {
        self.open = None;
    }
}

fn joined(mut open: CommandApdu, next: CommandApdu) -> Result<CommandApdu, StatusWord> {
    let same = [open.cla, open.ins, open.p1, open.p2] == [next.cla, next.ins, next.p1, next.p2];
    if !same {
        return Err(LAST_OF_CHAIN_EXPECTED);
    }
    if open.data.len() + next.data.len() > LONGEST {
        return Err(StatusWord::WRONG_LENGTH);
    }
    open.data.extend(next.data);
    open.expected = next.expected;
    Ok(open)
}
