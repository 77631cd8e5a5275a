//! Logins and sessions that a program gives up before it wants them again: what keeping them brings,
//! and that nothing else is different.

use std::path::PathBuf;
use std::process::Command;

use tapstone_record::{Change, FindingKind, Trial};
use tapstone_testing::hold;

use crate::fixtures;
use crate::softhsm::{Hsm, PIN};
use crate::support::undisturbed;
use crate::{record, run, saved, turn};

/// The client that begins anew for every signature, with its key on a token of its own.
struct Newcomer {
    program: PathBuf,
    hsm: Hsm,
}

impl Newcomer {
    /// `None` where the client cannot be built, or there is no SoftHSM2: the test skips then.
    fn new() -> Option<Self> {
        let (program, hsm) = fixtures::built("newcomer").zip(Hsm::new())?;
        let newcomer = Self { program, hsm };
        let prepared = Command::new(&newcomer.program)
            .arg(newcomer.hsm.module())
            .args(["1", "--prepare"])
            .envs(newcomer.variables().iter().map(|(name, value)| (name, value)))
            .status();
        assert!(prepared.unwrap().success());
        Some(newcomer)
    }

    fn variables(&self) -> [(&'static str, String); 2] {
        let configuration = self.hsm.path("softhsm2.conf").display().to_string();
        [("SOFTHSM2_CONF", configuration), ("PIN", PIN.to_owned())]
    }

    fn run(&self, verb: &str, options: &str, words: &str) -> crate::support::Outcome {
        let variables = self.variables();
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let module = self.hsm.module().display().to_string();
        let mut command = vec![self.program.to_str().unwrap(), &module];
        command.extend(words.split_whitespace());
        run(verb, options, &variables, &command)
    }

    #[track_caller]
    fn trial(&self, fix: &str, words: &str) -> Trial {
        let outcome = self.run("trial", &format!("--fix {fix} --rounds 20"), words).exits(0);
        let mut trials = record(&outcome).trials;
        assert_eq!(trials.len(), 1);
        trials.remove(0)
    }
}

#[test]
fn a_login_that_is_kept_brings_what_was_predicted() {
    let _turn = turn();
    let Some(newcomer) = Newcomer::new() else { return };
    let tried = || newcomer.trial("keep-login", "100");
    undisturbed(0.0, 1.0, tried, |trial| {
        hold(trial.verdict == Change::Faster, format_args!("{trial:?}"))?;
        let predicted = trial.predicted.unwrap();
        let saved = saved(trial);
        // A login is the token's most costly call here, and what it saves may be a little more.
        let is_held = (0.85 * predicted.low..=1.15 * predicted.high).contains(&saved);
        hold(is_held, format_args!("saved {saved}: {trial:?}"))
    });
}

/// All but the first login and the last logout, and each session but one.
#[test]
fn what_is_kept_is_counted() {
    let _turn = turn();
    let Some(newcomer) = Newcomer::new() else { return };
    for (fix, words, changed) in [
        ("keep-login", "50", 50 + 49),
        ("keep-session", "50 --sessions", 50 + 49),
        // The end of the last session is a logout that this one cannot make up for.
        ("keep-session", "50 --sessions --implicit", 0),
    ] {
        let outcome = newcomer.run("trace", &format!("--fix {fix}"), words).exits(0);
        let said = if changed > 0 {
            format!("the fix {fix} was on and changed {changed} calls")
        } else {
            format!("the fix {fix} never applied")
        };
        let warnings = record(&outcome).warnings;
        assert!(warnings.iter().any(|it| it.contains(&said)), "{words}: {warnings:#?}");
    }
}

/// A program that looks for what a logout and an end change sees what it sees without the fixes: the
/// state of sessions, keys, closed handles, and a PIN that is refused.
#[test]
fn nobody_can_tell_that_something_was_kept() {
    let _turn = turn();
    let Some(newcomer) = Newcomer::new() else { return };
    let without = newcomer.run("trace", "", "1 --curious").exits(0);
    assert!(without.stdout.contains("C_Login with another PIN: 0xa0"), "{}", without.stdout);
    for fixes in ["--fix keep-login", "--fix keep-session", "--fix keep-login --fix keep-session"] {
        let with = newcomer.run("trace", fixes, "1 --curious").exits(0);
        assert_eq!(with.stdout, without.stdout, "{fixes}");
        let warnings = record(&with).warnings;
        assert!(warnings.iter().any(|it| it.contains("was on and changed")), "{warnings:#?}");
    }
}

/// Each is found, with the fix to try.
#[test]
fn what_is_given_up_too_early_is_found() {
    let Some(newcomer) = Newcomer::new() else { return };
    let outcome = newcomer.run("trace", "", "50 --sessions").exits(0);
    let findings = record(&outcome).findings;
    let churn = findings.iter().filter(|finding| finding.kind == FindingKind::SessionChurn);
    let fixes: Vec<_> = churn.filter_map(|finding| finding.trial.as_deref()).collect();
    // A session of SoftHSM2 takes microseconds: it may be too little to be found.
    assert!(fixes.contains(&"keep-login"), "{findings:#?}");
}
