//! Attributes that are read again: what keeping them brings, and that nothing else changes.

use tapstone_record::Change;
use tapstone_testing::hold;

use crate::searcher::Searcher;
use crate::support::undisturbed;
use crate::{saved, turn};

/// The client signs 100 times, and reads three attributes of its key twenty times before each.
#[test]
fn attributes_that_are_kept_bring_what_was_predicted() {
    let _turn = turn();
    let Some(searcher) = Searcher::new() else { return };
    searcher.prepare();
    let words = ["100", "--prepared", "--keep", "--read", "20"];
    let tried = || searcher.trial("cache-attributes", "--rounds 20", &words);
    undisturbed(0.0, 1.0, tried, |trial| {
        hold(trial.verdict == Change::Faster, format_args!("{trial:?}"))?;
        let saved = saved(trial);
        let predicted = trial.predicted.unwrap();
        hold(saved > 0.0 && saved <= predicted.high, format_args!("saved {saved}: {trial:?}"))
    });
}

/// A label that changes, lengths, too little room, and a value that is refused: all is as without
/// the fix.
#[test]
fn what_is_read_after_a_change_comes_from_the_token() {
    let _turn = turn();
    let Some(searcher) = Searcher::new() else { return };
    let options = "--rounds 3 --allow-writes";
    let trial = searcher.trial("cache-attributes", options, &["20", "--keep", "--relabel"]);
    // Two of three reads of the label, and of its length, in each of 20 steps and three rounds.
    assert_eq!(trial.changed, Some(2 * 2 * 20 * 3), "{trial:?}");
}
