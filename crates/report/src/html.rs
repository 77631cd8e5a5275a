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
mod overview;
mod timeline;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use tapstone_record::Record;

use crate::text::clean;
use article::Article;
use environment::Several;
pub use timeline::{TimelineChart, TimelineLane, TimelineLayer, TimelineSpan};

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
    pub timeline: Option<&'a TimelineChart>,
    /// What else is to be known, beside the record's own warnings.
    pub note: Option<&'a str>,
    /// The command that repeats it, where the record's own names what is gone by now.
    pub again: Option<&'a [String]>,
}

/// How much is put into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Everything,
    /// Without the charts and the histograms of single results.
    Less,
    /// Without a section for each result.
    Least,
}

/// A larger page is slow to open, and too large for a mail. One of several records is an overview:
/// what it leaves out stands in a page of one.
const LARGEST: usize = 1_900_000;
const LARGEST_OF_SEVERAL: usize = 600_000;

/// All entries as one HTML document. Where it would be larger than 1.9 MB, or 600 kB when there are
/// several, it leaves out the charts and histograms of single results, from the largest record on, and then
/// their sections.
#[must_use]
pub fn render(entries: &[PageEntry<'_>]) -> String {
    let (several, largest) = match entries {
        [_] => (Several::No, LARGEST),
        _ => (Several::Yes, LARGEST_OF_SEVERAL),
    };
    let of = |place: usize, fill| article::article(&entries[place], place + 1, fill, several);
    let mut articles: Vec<_> =
        (0..entries.len()).map(|place| of(place, Fill::Everything)).collect();
    let length = |articles: &[Article]| articles.iter().map(|it| it.markup.0.len()).sum::<usize>();
    let page = assembled(entries, &articles);
    let beside = page.len() - length(&articles);
    if page.len() <= largest {
        return page;
    }
    for fill in [Fill::Less, Fill::Least] {
        for place in largest_first(&articles) {
            if length(&articles) + beside > largest {
                articles[place] = of(place, fill);
            }
        }
    }
    assembled(entries, &articles)
}

fn largest_first(articles: &[Article]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..articles.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(articles[*place].markup.0.len()));
    places
}

/// The document, of entries and what is shown of each.
fn assembled(entries: &[PageEntry<'_>], articles: &[Article]) -> String {
    let title = match articles {
        [only] => only.title.clone(),
        all => format!("{} records", all.len()),
    };
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
                    (masthead(entries))
                    main #main {
                        (overview::section(entries, articles))
                        @for article in articles { (article.markup) }
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

fn masthead(entries: &[PageEntry<'_>]) -> Markup {
    let tool = entries.first().map(|entry| &entry.record.tool);
    html! {
        header.masthead {
            h1 { "Tapstone" @if let Some(tool) = tool { " " small { (clean(&tool.version, true)) } } }
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
