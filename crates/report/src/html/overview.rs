//! The first screen: what was asked, what came out, when, and of what. Each line leads to its section.

use maud::{Markup, html};

use super::PageEntry;
use super::article::{Article, when};
use super::blocks::{badge, span};
use crate::summary::{Answer, answers};
use crate::text::clean;
use crate::words;

/// The first of many lines of a record; its sections have the others.
const MOST: usize = 6;

pub(super) fn section(entries: &[PageEntry<'_>], articles: &[Article]) -> Markup {
    html! {
        section.overview {
            div.scroll tabindex="0" role="group" aria-label="what was asked and what came out" {
                table {
                    thead { tr {
                        @for title in ["asked", "answer", "verdict", "when", "on"] {
                            th.words scope="col" { (title) }
                        }
                    } }
                    tbody { @for (entry, article) in entries.iter().zip(articles) {
                        (of_record(entry, article))
                    } }
                }
            }
        }
    }
}

fn of_record(entry: &PageEntry<'_>, article: &Article) -> Markup {
    let record = entry.record;
    let all = answers(record);
    html! {
        @for (place, answer) in all.iter().take(MOST).enumerate() {
            tr {
                td { a href=(format!("#{}", target(answer, article))) { (clean(&answer.asked, true)) } }
                td { (clean(&answer.answer, true)) }
                td { (span(&answer.verdict)) }
                @if place == 0 {
                    @let rows = all.len().min(MOST);
                    td rowspan=(rows) { (when(record)) }
                    td rowspan=(rows) {
                        (clean(&article.title, true))
                        @if record.target.emulated.is_some() { " " (badge("emulated")) }
                        @if let Some(origin) = words::common_provenance(record) { " " (badge(origin)) }
                        @if all.len() > MOST { " " span.faint { "and " (all.len() - MOST) " more below" } }
                    }
                }
            }
        }
    }
}

/// The section that says more; the record where it has none of that name.
fn target<'a>(answer: &Answer, article: &'a Article) -> &'a str {
    let section = article.sections.iter().find(|it| it.text == answer.section);
    section.map_or(&article.id, |section| &section.to)
}
