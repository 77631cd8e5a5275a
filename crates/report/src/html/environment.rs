//! Where it was measured, with what, and the command that repeats it.

use maud::{Markup, html};
use tapstone_record::Record;

use super::blocks;
use crate::sections::page::Block;
use crate::text::clean;
use crate::{figures, shell};

/// Whether a page has other records too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Several {
    Yes,
    No,
}

/// What the head of a record says, and what only the record has.
pub(super) fn section(
    record: &Record,
    words: &[String],
    head: &[Block],
    prefix: &str,
    several: Several,
) -> Markup {
    let environment = &record.environment;
    let clock = environment.clock.map(|clock| {
        format!("step {}, a reading costs {}", clock.step_ns, figures::time(clock.cost_ns))
    });
    let load = environment.load.average_1m.map(|load| format!("{load:.2} over the last minute"));
    let module = record.target.module.as_ref();
    let rest = [
        ("operating system", environment.os.clone()),
        ("governor", environment.governor.clone()),
        ("clock", clock),
        ("load before", load),
        ("module", module.map(|module| module.path.clone())),
        ("SHA-256 of it", module.map(|module| module.sha256.clone())),
        ("tool", Some(format!("{} {}", record.tool.name, record.tool.version))),
        ("schema", Some(record.schema.as_str().to_owned())),
    ];
    let body = html! {
        (blocks::body(head))
        dl {
            @for (label, value) in rest.iter().filter_map(|(label, value)| Some((label, value.as_ref()?))) {
                dt { (label) } dd { (clean(value, true)) }
            }
        }
        (again(words))
    };
    html! {
        section.environment id=(format!("{prefix}-environment")) {
            // One record is looked at closely; of several it would be most of the page.
            @match several {
                Several::No => { h3 { "Environment" } (body) }
                Several::Yes => details { summary { h3 { "Environment and command" } } (body) }
            }
        }
    }
}

/// What repeats it. A command of which the record hides words, or that cannot be shown as it is,
/// is no command to be copied.
fn again(words: &[String]) -> Markup {
    let line: Vec<String> = words.iter().map(|word| shell::quoted_or_hidden(word)).collect();
    let line = line.join(" ");
    let shown = clean(&line, true);
    let whole = !shell::hides(words) && shown == line;
    html! {
        @if !words.is_empty() {
            p.faint { @if whole { "Measured by this command:" } @else {
                "Measured by this command, of which the record does not keep all words:" } }
            @if whole {
                pre.command tabindex="0" { code { (shown) } }
            } @else {
                pre.template tabindex="0" { code { (shown) } }
            }
        }
    }
}
