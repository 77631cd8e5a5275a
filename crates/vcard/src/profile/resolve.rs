//! From what is written to a profile that can be used: names are found, numbers are checked, and
//! contradictions are refused.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use tapstone_link::{Link, TransmissionProtocol};
use tapstone_measure::units::Nanos;
use tapstone_source::{Mistake, Source};
use toml::{Spanned, Table, Value};

use super::price::price;
use super::raw::{RawApplet, RawJitter, RawProfile, RawTime, RawTimes};
use super::timing::{Jitter, Price, Timing};
use super::{InstalledApplet, Profile, ProfileOrigin, atr, faults, names};
use crate::identity::LONGEST_NAME;
use crate::piv::Recipe;
use crate::transmission::{LONGEST_ATR, Transmission};

/// What to do about something that TOML's reader does not like.
fn hint(message: &str) -> &'static str {
    if message.contains("`from`") || message.contains("`published`") {
        "say where the number comes from: from = \"published\", \"derived\" or \"assumed\""
    } else {
        "`tapstone vcard --show jcop31-v2.2` prints a profile to compare with"
    }
}

pub(super) fn profile(file: &str, text: &str) -> Result<Profile, Mistake> {
    let source = Source { file, text };
    let raw: RawProfile =
        toml::from_str(text).map_err(|error| source.syntax(&error, hint(error.message())))?;
    let name = name(&source, &raw.name)?;
    let (atr, offered) = answer_to_reset(&source, &raw.atr)?;
    let applets = applets(&source, &raw.applet)?;
    let link = raw.link.map(|table| link(&source, table)).transpose()?;
    let transmission = match &link {
        Some((Link::Contact(contact), span)) => {
            let spoken = match contact.parameters().protocol {
                TransmissionProtocol::T0 => Transmission::T0,
                TransmissionProtocol::T1 => Transmission::T1,
            };
            if spoken != offered {
                let problem = format!(
                    "the link speaks {spoken}, but with this ATR a host speaks {offered}\n\
                     hint: change `protocol` of the link, or `atr`"
                );
                return Err(source.error(span.clone(), problem));
            }
            spoken
        }
        // Part 4 of ISO 14443 carries blocks, whatever ATR a reader makes up for the card.
        Some((Link::Contactless(_), _)) => Transmission::T1,
        None => offered,
    };
    let installed: Vec<&str> =
        raw.applet.iter().map(|a| a.get_ref().name.get_ref().as_str()).collect();
    let faults = faults::resolve(&source, &raw.fault, link.is_some())?;
    let timing = Timing {
        commands: commands(&source, &raw.command, &installed)?,
        work: work(&source, &raw.work, &installed)?,
        jitter: raw.jitter.map(|jitter| spread(&source, &jitter)).transpose()?,
        ..times(&source, &raw.time, link)?
    };
    Ok(Profile {
        name,
        description: raw.description,
        source: raw.source,
        text: text.to_owned(),
        atr,
        transmission,
        applets,
        timing,
        faults,
    })
}

fn name(source: &Source<'_>, name: &Spanned<String>) -> Result<String, Mistake> {
    let text = name.get_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(plain) {
        let problem = "a name has 1 to 127 letters, digits, dots, hyphens and underscores\n\
                       hint: say more in `description`";
        return Err(source.error(name.span(), problem));
    }
    Ok(text.clone())
}

fn answer_to_reset(
    source: &Source<'_>,
    atr: &Spanned<String>,
) -> Result<(Vec<u8>, Transmission), Mistake> {
    let wrong = |why: &str| {
        let problem = format!(
            "no answer to reset by ISO 7816-3: {why}\n\
             hint: `3B 80 01 81` is the shortest for T=1, `3B 00` for T=0"
        );
        source.error(atr.span(), problem)
    };
    let digits: String = atr.get_ref().split_whitespace().collect();
    let bytes = hex::decode(digits).map_err(|_| wrong("not pairs of hexadecimal digits"))?;
    if bytes.len() > LONGEST_ATR {
        return Err(wrong("it has more than 33 bytes"));
    }
    let offered = atr::spoken(&bytes).map_err(wrong)?;
    Ok((bytes, offered))
}

fn applets(
    source: &Source<'_>,
    raw: &[Spanned<RawApplet>],
) -> Result<Vec<InstalledApplet>, Mistake> {
    let mut applets = Vec::new();
    let mut seen = Vec::new();
    for applet in raw {
        let RawApplet { name, card_data, chuid_bytes, certificate_bytes, certificates } =
            applet.get_ref();
        let is_of_piv = card_data.is_some()
            || chuid_bytes.is_some()
            || certificate_bytes.is_some()
            || certificates.is_some();
        let known = name.get_ref().as_str();
        if seen.contains(&known) {
            let problem = format!("a second {known} applet\nhint: remove one of the two");
            return Err(source.error(name.span(), problem));
        }
        seen.push(known);
        applets.push(match known {
            names::PIV => {
                let default = Recipe::default();
                let of = card_data.as_ref();
                InstalledApplet::Piv(Recipe {
                    authentication: of
                        .and_then(|p| p.authentication)
                        .unwrap_or(default.authentication),
                    signature: of.and_then(|p| p.signature).unwrap_or(default.signature),
                    management: of.and_then(|p| p.management).unwrap_or(default.management),
                    card: of.and_then(|p| p.card).unwrap_or(default.card),
                    chuid_bytes: chuid_bytes.as_ref().map(|count| count.get_ref().bytes),
                    certificate_bytes: certificate_bytes
                        .as_ref()
                        .map(|count| count.get_ref().bytes),
                    certificates: certificates.unwrap_or_default(),
                })
            }
            names::BENCH if is_of_piv => {
                let problem = "`card_data`, `chuid_bytes`, `certificate_bytes` and `certificates` \
                               are of the piv applet\n\
                               hint: leave them out";
                return Err(source.error(applet.span(), problem));
            }
            names::BENCH => InstalledApplet::Bench,
            _ => {
                let problem = format!("no applet is called {known:?}\nhint: bench or piv");
                return Err(source.error(name.span(), problem));
            }
        });
    }
    if applets.is_empty() {
        let problem = "a card without an applet answers nothing\n\
                       hint: add `[[applet]]` with `name = \"bench\"` or `name = \"piv\"`";
        return Err(source.error(0..0, problem));
    }
    Ok(applets)
}

/// `from` is the whole table's; the rest is the link's.
fn link(source: &Source<'_>, table: Spanned<Table>) -> Result<(Link, Range<usize>), Mistake> {
    let span = table.span();
    let mut table = table.into_inner();
    let origin = table.remove("from").ok_or_else(|| "missing field `from`".to_owned());
    let origin = origin.and_then(|from| {
        ProfileOrigin::deserialize(from).map_err(|error| error.message().trim_end().to_owned())
    });
    if let Err(problem) = origin {
        let hint = "say where the link's numbers come from: from = \"published\", \"derived\" or \
                    \"assumed\"";
        return Err(source.error(span, format!("{problem}\nhint: {hint}")));
    }
    match Link::deserialize(Value::Table(table)) {
        Ok(link) => Ok((link, span)),
        Err(error) => {
            let message = error.message().trim_end();
            let hint = if message.contains("hint: ") {
                ""
            } else {
                "\nhint: kind = \"contact\" with `protocol` and `clock_hz`, or \"contactless\" \
                 with `kbit_per_second`"
            };
            Err(source.error(span, format!("{message}{hint}")))
        }
    }
}

fn times(
    source: &Source<'_>,
    raw: &RawTimes,
    link: Option<(Link, Range<usize>)>,
) -> Result<Timing, Mistake> {
    if let (Some((_, _)), Some(byte)) =
        (&link, raw.byte_to_card.as_ref().or(raw.byte_from_card.as_ref()))
    {
        let problem = "the link says already how long bytes take\n\
                       hint: remove [link], or the times per byte";
        return Err(source.error(byte.span(), problem));
    }
    let priced = |time: &Option<Spanned<RawTime>>| {
        time.as_ref().map_or(Ok(Price::default()), |time| price(source, time))
    };
    Ok(Timing {
        power_on: Nanos(priced(&raw.power_on)?.0.round() as u64),
        command: priced(&raw.command)?,
        byte_to_card: priced(&raw.byte_to_card)?,
        byte_from_card: priced(&raw.byte_from_card)?,
        link: link.map(|(link, _)| link),
        ..Timing::default()
    })
}

fn commands(
    source: &Source<'_>,
    raw: &BTreeMap<String, Spanned<RawTime>>,
    installed: &[&str],
) -> Result<BTreeMap<(Option<&'static str>, u8), Price>, Mistake> {
    let mut prices = BTreeMap::new();
    for (name, time) in raw {
        let key = command(name, installed).map_err(|problem| source.error(time.span(), problem))?;
        prices.insert(key, price(source, time)?);
    }
    Ok(prices)
}

/// `A4`, or `bench WRITE`.
fn command(name: &str, installed: &[&str]) -> Result<(Option<&'static str>, u8), String> {
    if let Some((applet, command)) = name.split_once(' ') {
        let Some(applet) = [names::BENCH, names::PIV].into_iter().find(|&known| known == applet)
        else {
            return Err(format!("no applet is called {applet:?}\nhint: bench or piv"));
        };
        if !installed.contains(&applet) {
            return Err(format!("the card has no {applet} applet\nhint: add it, or remove this"));
        }
        let found = names::commands(applet).find(|&(known, _)| known == command);
        return found.map(|(_, ins)| (Some(applet), ins)).ok_or_else(|| {
            let all: Vec<_> = names::commands(applet).map(|(known, _)| known).collect();
            format!("{applet} has no command {command:?}\nhint: it has {}", all.join(", "))
        });
    }
    let ins = (name.len() == 2).then(|| u8::from_str_radix(name, 16).ok()).flatten();
    let known = |&ins: &u8| {
        let mut all = installed.iter().flat_map(|applet| names::commands(applet));
        all.any(|(_, known)| known == ins)
    };
    ins.filter(known).map(|ins| (None, ins)).ok_or_else(|| {
        "no applet of this card has such an instruction\n\
         hint: an applet and its command, as \"bench WRITE\", or an INS that one has, as \"A4\""
            .to_owned()
    })
}

fn work(
    source: &Source<'_>,
    raw: &BTreeMap<String, Spanned<RawTime>>,
    installed: &[&str],
) -> Result<BTreeMap<String, Price>, Mistake> {
    let known: Vec<&str> =
        installed.iter().flat_map(|applet| names::work(applet)).copied().collect();
    let mut prices = BTreeMap::new();
    for (name, time) in raw {
        if !known.contains(&name.as_str()) {
            let mut sorted = known.clone();
            sorted.sort_unstable();
            let problem = format!(
                "the card's applets compute nothing called {name:?}\nhint: they compute {}",
                sorted.join(", ")
            );
            return Err(source.error(time.span(), problem));
        }
        prices.insert(name.clone(), price(source, time)?);
    }
    Ok(prices)
}

fn spread(source: &Source<'_>, raw: &RawJitter) -> Result<Jitter, Mistake> {
    let percent = *raw.percent.get_ref();
    if !(0.0..=100.0).contains(&percent) {
        let problem = "a command cannot take less than no time\nhint: choose 0 to 100 percent";
        return Err(source.error(raw.percent.span(), problem));
    }
    Ok(Jitter::new(percent / 100.0, raw.seed))
}
