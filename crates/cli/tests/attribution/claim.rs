//! A claim on a machine that other programs take.

use std::thread::available_parallelism;

use tapstone_record::Verdict;
use tapstone_testing::{figures, hold};

use crate::alone;
use crate::setup::Neighbour;
use crate::support::Tapstone;

/// No further round can save the claim: that is said at once, and not after twenty of them.
#[test]
fn a_claim_on_a_disturbed_machine_is_void_with_the_first_disturbed_round() {
    let _alone = alone();
    let processors = available_parallelism().unwrap().get();
    figures(|| {
        let _beside: Vec<Neighbour> = (0..processors).map(Neighbour::start).collect();
        let run = Tapstone::on(&[("MODEL", "honest")]).args("--no-verify --threads 1");
        let run = run.args("--seconds 0.5 --precision 0.1%").quietly();
        let outcome = run.arg("--claim").arg("rsa1024.sign >= 1/s").run();
        let claim = outcome.record().claims.remove(0);
        hold(claim.verdict == Verdict::Void, format_args!("{claim:?}"))?;
        hold(outcome.exit == Some(2), &outcome.stderr)?;
        hold(claim.rounds.len() < 5, format_args!("{claim:?}"))?;
        let reason = &claim.arithmetic;
        hold(reason.contains("other programs disturbed round"), reason)?;
        hold(reason.contains("and no more were made"), reason)?;
        hold(!reason.contains("unreliable"), reason)
    });
}
