//! `--leftovers`: keys that a killed run left on a token, found by label and id.

use tapstone_text::Foreign;
use tapstone_token::protocol::Leftover;

use super::arguments::Arguments;
use super::target;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Format;
use crate::print::{outln, say};

pub(super) fn list_leftovers(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut controller = target::open(arguments, interrupt::flag_on_signals()?)?;
    let remove = arguments.leftovers.remove;
    if remove {
        // Said before it is done.
        let found = controller.leftovers(false)?;
        say!("removing {} of Tapstone's own keys", found.len());
    }
    let left = controller.leftovers(remove)?;
    controller.close();
    match arguments.output.shared.format {
        Format::Json => outln!("{}", serde_json::to_string_pretty(&left)?),
        Format::Text | Format::Csv => print(&left, remove),
    }
    let stuck = remove && left.iter().any(|key| !key.removed);
    Ok(if stuck { Exit::NotMeasured } else { Exit::Done })
}

fn print(left: &[Leftover], remove: bool) {
    if left.is_empty() {
        outln!("no leftovers");
    }
    for key in left {
        let fate = match (remove, key.removed) {
            (false, _) => "left",
            (true, true) => "removed",
            (true, false) => "could not be removed",
        };
        outln!("{fate}  {}  {}", key.class, Foreign::new(&key.label));
    }
    if !left.is_empty() && !remove {
        say!("hint: --leftovers --remove removes them; is no other run using this token?");
    }
}
