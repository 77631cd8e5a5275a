//! A part of a path that sends something else, or by another link: what its formula says of the
//! difference, step by step.

use std::collections::BTreeMap;

use tapstone_link::Hop;
use tapstone_record::Provenance;

use crate::content::CardContent;
use crate::path::{AuthenticationPath, Message, PathPart, StepFilter, formula};

/// By how much the formula of what is sent now is faster than that of what was sent before, step by
/// step: a time that was published or measured keeps what the formulas do not know.
pub(crate) fn resend(part: &mut PathPart, hop: Hop, messages: Vec<Message>) {
    let Some(old) = &part.hop else { return };
    let before = formula(old, &part.messages);
    let after = formula(&hop, &messages);
    for (step, now) in &before {
        let then = after.get(step).copied().unwrap_or_default();
        if now.0 > 0.0 {
            part.scale(StepFilter::Only(&[step]), then.0 / now.0);
        }
    }
    part.hop = Some(hop);
    part.messages = messages;
    part.provenance = Provenance::Derived;
}

/// What is read or signed becomes another, and with it what every part sends and how many commands
/// it answers. A path whose content is not known stays as it is.
pub(crate) fn send_content(path: &mut AuthenticationPath, change: impl FnOnce(&mut CardContent)) {
    let Some(content) = &mut path.content else { return };
    let commands_before = content.commands();
    change(content);
    let messages = content.messages();
    let commands = content.commands();
    for part in &mut path.parts {
        if let Some(piece) = part.per_command.and_then(|at| part.pieces.get_mut(at)) {
            for (step, ratio) in ratios(&commands_before, &commands) {
                piece.scale(StepFilter::Only(&[step]), ratio);
            }
        }
        if let (true, Some(hop)) = (part.carries_commands, part.hop.clone()) {
            resend(part, hop, messages.clone());
        }
    }
}

fn ratios<'a>(
    before: &'a BTreeMap<String, f64>,
    after: &'a BTreeMap<String, f64>,
) -> impl Iterator<Item = (&'a str, f64)> {
    before.iter().map(|(step, count)| {
        (step.as_str(), after.get(step).copied().unwrap_or_default() / count.max(1.0))
    })
}
