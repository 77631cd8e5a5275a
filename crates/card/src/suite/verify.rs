//! Judges what a run brought, in the controller's process, which never talks to the card.

use tapstone_record::{Verification, Verifier};

use super::material::SeenAnswer;
use super::plan::PlannedCase;
use crate::controller::CardRun;

/// How the answers of a case were judged; `None` where the suite names no judge.
#[must_use]
pub fn verify(ran: &CardRun, number: u16, case: &PlannedCase) -> Option<Verification> {
    let answer = case.answer.as_ref()?;
    let saved = ran.ready.iter().flatten().next().map_or(&[][..], |ready| &ready.saved[..]);
    // A round goes through the lanes that the card can do.
    let lanes = ran.ready.iter().flatten().next().map_or(1, |ready| u64::from(ready.lanes.max(1)));
    let samples = ran.samples.iter().flatten();
    let good = samples.filter(|sample| sample.lane == number && sample.fault.is_none());
    let mut verification = Verification::new(0, 0, 0, Verifier::Software);
    for sample in good {
        verification.eligible += 1;
        let round = sample.number / lanes;
        let material = &case.materials[(round % case.materials.len() as u64) as usize];
        let seen = SeenAnswer { material, point: case.point, output: &sample.output, saved };
        let right = answer.judge(seen);
        verification.checked += u64::from(right.is_some());
        verification.wrong += u64::from(right == Some(false));
    }
    Some(verification)
}
