//! Where it was measured, with what, and the command that repeats it.

use maud::{Markup, html};
use tapstone_record::Record;

use super::blocks;
use crate::figures;
use crate::sections::page::Block;
use crate::text::clean;

/// What the head of a record says, and what only the record has.
pub(super) fn section(record: &Record, head: &[Block], prefix: &str) -> Markup {
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
    html! {
        section.environment id=(format!("{prefix}-environment")) {
            h3 { "Environment" }
            (blocks::body(head))
            dl {
                @for (label, value) in rest.iter().filter_map(|(label, value)| Some((label, value.as_ref()?))) {
                    dt { (label) } dd { (clean(value, true)) }
                }
            }
            @if !record.command.is_empty() {
                @let command = clean(&record.command.join(" "), true);
                @if command.contains('…') {
                    pre.template tabindex="0" { code { (command) } }
                } @else {
                    pre.command tabindex="0" { code { (command) } }
                }
            }
        }
    }
}
