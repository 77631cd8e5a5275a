//! Records as one self-contained page: no request to anywhere, readable without JavaScript, in a
//! light and a dark theme, and on paper.
//!
//! It has what a terminal has, from the same sections, and charts. Nothing from a record can act in
//! it: text is escaped by maud and plotters, and the page's policy allows one script and one style,
//! both by their hash.

mod article;
mod blocks;
mod draw;
mod environment;
mod loops;
mod timeline;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use tapstone_record::Record;

use crate::text::clean;
use blocks::{Fold, Link};
pub use timeline::{Timeline, TimelineLane, TimelineLayer, TimelineSpan};

const STYLE: &str = include_str!("html/page.css");

/// Built from `crates/report/page` by esbuild; the licences of what is in it stand at its top.
const SCRIPT: &str = include_str!("html/page.js");

/// A record to be shown.
#[derive(Debug)]
pub struct PageEntry<'a> {
    /// What it is called: its file.
    pub name: &'a str,
    /// The record that the page shows.
    pub record: &'a Record,
    /// Of a traced program whose events were kept: what happened when.
    pub timeline: Option<&'a Timeline>,
    /// What else is to be known, beside the record's own warnings.
    pub note: Option<&'a str>,
}

/// How much is put into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Everything,
    /// Without the charts and the histograms of single results, which their tables tell.
    Less,
}

/// A larger page is slow to open, and too large for a mail.
const LARGEST: usize = 1_900_000;

/// All entries as one HTML document. Where it would be larger than 1.9 MB, it leaves out the charts
/// and histograms of single results.
#[must_use]
pub fn render(entries: &[PageEntry<'_>]) -> String {
    let whole = filled(entries, Fill::Everything);
    if whole.len() <= LARGEST { whole } else { filled(entries, Fill::Less) }
}

fn filled(entries: &[PageEntry<'_>], fill: Fill) -> String {
    // A record on its own is what one came for, and its only result is shown.
    let fold = if entries.len() == 1 { Fold::Open } else { Fold::Folded };
    let articles: Vec<_> = entries
        .iter()
        .enumerate()
        .map(|(number, entry)| article::article(entry, number + 1, fill, fold))
        .collect();
    let title = match &articles[..] {
        [only] => only.title.clone(),
        all => format!("{} records", all.len()),
    };
    let links: Vec<&Link> = articles.iter().map(|article| &article.link).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (clean(&title, true)) " · Tapstone" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the results" }
                div.page {
                    (masthead(entries, &links))
                    main #main {
                        @for article in &articles { (article.markup) }
                        (loops::sections(entries))
                    }
                    footer { p {
                        "Every figure carries its unit; brackets and ± are 95 % intervals unless said \
                         otherwise. How figures are made: METHODOLOGY.md of Tapstone."
                    } }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn masthead(entries: &[PageEntry<'_>], links: &[&Link]) -> Markup {
    let tool = entries.first().map(|entry| &entry.record.tool);
    html! {
        header.masthead {
            h1 { "Tapstone" @if let Some(tool) = tool { " " small { (clean(&tool.version, true)) } } }
            @if links.len() > 1 {
                nav aria-label="records" {
                    ul { @for link in links { li { a href=(format!("#{}", link.to)) { (clean(&link.text, true)) } } } }
                }
            }
        }
    }
}

/// Nothing is loaded from anywhere, and nothing else is run.
fn policy() -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}
