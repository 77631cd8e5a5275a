//! A door: the dialogue with a card as it was measured; as a model the budget of a transaction,
//! what changes would bring, and the queue.
//!
//! Of a model, times are in milliseconds throughout, so that a reader can add them up.

mod budget;
mod dialogue;
mod queue;
mod what_if;

use tapstone_record::{Fraction, Probability, Record, ScenarioName};
use tapstone_text::thousands;

pub(super) use self::dialogue::{is_one, tells};
use super::page::Page;
use super::span::Span;
use crate::figures::{self, ms};

pub(super) fn add_door(page: &mut Page, record: &Record) {
    dialogue::add_dialogue(page, record);
    if let Some(budget) = &record.budget {
        budget::add_budget(page, budget);
    }
    if let Some(what_if) = &record.what_if {
        what_if::add_what_if(page, what_if);
    }
    if let Some(queue) = &record.queue {
        queue::add_queue(page, queue);
    }
}

/// Whether a record holds nothing but a model: no machine had a part in its figures.
pub(super) fn is_model(record: &Record) -> bool {
    let modelled = record.budget.is_some() || record.what_if.is_some() || record.queue.is_some();
    modelled && record.results.is_empty()
}

fn scenario(page: &mut Page, scenario: &ScenarioName) {
    page.fact("scenario", Span::plain(format!("{} · {}", scenario.name, scenario.title)));
}

/// `within 1,500 ms: 93.4 % of transactions; half take at most 1,180 ms, 95 % at most 1,540 ms`.
fn chance(chance: &Probability, limit: f64) -> String {
    format!(
        "within {}: {} of transactions; half take at most {}, 95 % at most {} ({} draws, seed {})",
        ms(limit),
        figures::share(Fraction(chance.met.estimate)),
        ms(chance.p50_ns),
        ms(chance.p95_ns),
        thousands(chance.draws),
        chance.seed
    )
}
