//! A search that is made again: what keeping its answer brings, beside what was predicted.

use tapstone_record::Change;
use tapstone_testing::hold;

use crate::searcher::Searcher;
use crate::support::undisturbed;
use crate::{saved, turn};

/// The client signs 200 times, and searches its key before each.
#[test]
fn a_search_that_is_kept_brings_what_was_predicted() {
    let _turn = turn();
    let Some(searcher) = Searcher::new() else { return };
    searcher.prepare();
    let tried = || searcher.trial("cache-find", "--rounds 20", &["200", "--prepared"]);
    undisturbed(0.0, 1.0, tried, |trial| {
        hold(trial.verdict == Change::Faster, format_args!("{trial:?}"))?;
        let predicted = trial.predicted.unwrap();
        let saved = saved(trial);
        let is_held = (predicted.low..=predicted.high).contains(&saved);
        hold(is_held, format_args!("saved {saved}: {trial:?}"))
    });
}

/// Objects are made and destroyed between searches: nothing is kept, and nothing is different.
#[test]
fn a_search_after_a_change_goes_to_the_token() {
    let _turn = turn();
    let Some(searcher) = Searcher::new() else { return };
    let trial = searcher.trial("cache-find", "--rounds 3 --allow-writes", &["20", "--change"]);
    assert_eq!(trial.changed, Some(0), "{trial:?}");
}
