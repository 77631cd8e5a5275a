//! The faults of a profile: each has what its kind needs, and can happen.

use toml::Spanned;

use super::price::price;
use super::raw::RawFault;
use crate::fault::{FaultKind, InjectedFault};

use tapstone_apdu::StatusWord;
use tapstone_measure::units::Nanos;
use tapstone_source::{Mistake, Source};

/// In the order of their commands.
pub(super) fn resolve(
    source: &Source<'_>,
    raw: &[Spanned<RawFault>],
    has_link: bool,
) -> Result<Vec<InjectedFault>, Mistake> {
    let mut faults = Vec::new();
    for fault in raw {
        faults.push((one(source, fault, has_link)?, fault.get_ref().at.span()));
    }
    faults.sort_by_key(|(fault, _)| fault.at);
    for pair in faults.windows(2) {
        let [(earlier, _), (later, span)] = pair else { continue };
        let ends = matches!(earlier.kind, FaultKind::Mute { .. } | FaultKind::Removed);
        let problem = if ends {
            format!(
                "this never happens: the card is gone at command {}\n\
                 hint: let it happen before, or remove it",
                earlier.at
            )
        } else if earlier.at == later.at {
            format!("a second fault at command {}\nhint: choose another command", later.at)
        } else {
            continue;
        };
        return Err(source.error(span.clone(), problem));
    }
    Ok(faults.into_iter().map(|(fault, _)| fault).collect())
}

fn one(
    source: &Source<'_>,
    fault: &Spanned<RawFault>,
    has_link: bool,
) -> Result<InjectedFault, Mistake> {
    let raw = fault.get_ref();
    let at = *raw.at.get_ref();
    if at == 0 {
        let problem = "commands are counted from 1\nhint: 1 is the first command";
        return Err(source.error(raw.at.span(), problem));
    }
    let given = [
        ("times", raw.times.is_some()),
        ("closes_after", raw.closes_after.is_some()),
        ("status", raw.status.is_some()),
        ("count", raw.count.is_some()),
    ];
    let needed = match raw.kind.get_ref().as_str() {
        "slow" => Some("times"),
        "mute" => Some("closes_after"),
        "removed" => None,
        "wrong_status" => Some("status"),
        "waiting_time_extension" => Some("count"),
        other => {
            let problem = format!(
                "no fault is called {other:?}\n\
                 hint: slow, mute, removed, wrong_status or waiting_time_extension"
            );
            return Err(source.error(raw.kind.span(), problem));
        }
    };
    for (field, there) in given {
        if there != (needed == Some(field)) {
            let kind = raw.kind.get_ref();
            let problem = if there {
                format!("{kind} has no `{field}`\nhint: remove it")
            } else {
                format!("{kind} needs `{field}`\nhint: add it to this fault")
            };
            return Err(source.error(raw.kind.span(), problem));
        }
    }
    Ok(InjectedFault { at, kind: kind(source, raw, has_link)? })
}

/// By the one field that is there.
fn kind(source: &Source<'_>, raw: &RawFault, has_link: bool) -> Result<FaultKind, Mistake> {
    if let Some(times) = &raw.times {
        let value = *times.get_ref();
        if !(value > 1.0 && value <= 1e6) {
            let problem = "no slowing down\nhint: more than 1 and at most 1000000 times";
            return Err(source.error(times.span(), problem));
        }
        return Ok(FaultKind::Slow { times: value });
    }
    if let Some(time) = &raw.closes_after {
        let closes_after = Nanos(price(source, time)?.0.round() as u64);
        return Ok(FaultKind::Mute { closes_after });
    }
    if let Some(status) = &raw.status {
        let word = status.get_ref();
        let word = (word.len() == 4).then(|| u16::from_str_radix(word, 16).ok()).flatten();
        let problem = "no status word\nhint: four hexadecimal digits from 6000 to 9FFF";
        // ISO 7816-4, 5.6: SW1 is 6X or 9X.
        let word = word.filter(|word| matches!(word >> 12, 6 | 9));
        let word = word.ok_or_else(|| source.error(status.span(), problem))?;
        return Ok(FaultKind::WrongStatus(StatusWord(word)));
    }
    if let Some(count) = &raw.count {
        if *count.get_ref() == 0 || !has_link {
            let problem = "waiting times are of a link\n\
                           hint: a `count` of 1 or more, and a [link] for the card";
            return Err(source.error(count.span(), problem));
        }
        return Ok(FaultKind::WaitingTimeExtension { count: *count.get_ref() });
    }
    Ok(FaultKind::Removed)
}
