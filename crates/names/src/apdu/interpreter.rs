//! Follows a conversation with a card, and so knows what each command is about.

use std::collections::BTreeMap;

use super::view::View;
use super::{Application, Described, describe, piv};
use tapstone_apdu::StatusWord;

/// Names the commands of one card in the order in which they are sent.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// By logical channel: each has an application of its own.
    channels: BTreeMap<u8, Channel>,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    selected: Option<Application>,
    /// What was selected by file identifier or path last.
    file: Option<String>,
    last: Option<Last>,
}

/// A command that another one may go on with.
#[derive(Clone, Debug)]
struct Last {
    described: Described,
    /// More of its data follows: in a command of this instruction and these parameters.
    chained: Option<[u8; 3]>,
}

impl Interpreter {
    /// A card of which nothing has been seen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names a command, which was answered with this status word.
    ///
    /// GET RESPONSE and the further parts of a chain are about what their beginning was about.
    pub fn exchange(&mut self, command: &[u8], status: StatusWord) -> Described {
        let Some(view) = View::parse(command) else { return describe(command, None) };
        let channel = self.channels.entry(view.channel()).or_default();
        let described = channel.describe(command, &view);
        if view.instruction == 0xA4 && !view.is_proprietary() && status.is_success() {
            channel.select(&view, &described);
        }
        // PIV is the default application of many cards, and OpenSC asks for its objects first.
        if channel.selected.is_none() && status.is_success() && piv::describe_data(&view).is_some()
        {
            channel.selected = Some(Application::Piv);
        }
        let chained = view.is_chained().then_some([view.instruction, view.p1, view.p2]);
        channel.last = Some(Last { described: described.clone(), chained });
        described
    }

    /// The application that is selected on the basic channel, as far as that was seen.
    #[must_use]
    pub fn selected(&self) -> Option<Application> {
        self.channels.get(&0)?.selected
    }

    /// The card was reset: what was selected is not any more.
    pub fn reset(&mut self) {
        self.channels.clear();
    }
}

impl Channel {
    fn describe(&self, command: &[u8], view: &View<'_>) -> Described {
        let mut described = describe(command, self.selected);
        let Some(Last { described: last, chained }) = &self.last else {
            return self.with_file(described, view);
        };
        if *chained == Some([view.instruction, view.p1, view.p2]) {
            return last.clone();
        }
        if described.name == "GET RESPONSE" {
            described.object.clone_from(&last.object);
            return described;
        }
        self.with_file(described, view)
    }

    /// What reads or writes without a file identifier means the current file.
    fn with_file(&self, mut described: Described, view: &View<'_>) -> Described {
        let current = matches!(view.instruction, 0xB0 | 0xB2 | 0xD0 | 0xD2 | 0xD6 | 0xDC | 0xE2);
        if current && !view.is_proprietary() && described.object.is_none() {
            described.object.clone_from(&self.file);
        }
        described
    }

    fn select(&mut self, view: &View<'_>, described: &Described) {
        match (view.p1, view.data) {
            // Which one the default is, nobody has said.
            (0x04, []) => (self.selected, self.file) = (None, None),
            (0x04, aid) => (self.selected, self.file) = (Some(Application::by_aid(aid)), None),
            _ => self.file.clone_from(&described.object),
        }
    }
}
