//! Bugs that are put into a copy of the sources, to see that the targets find them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Deserialize;
use tapstone_fuzz::FuzzTarget;
use tapstone_fuzz::targets::TARGETS;

use super::{Campaign, at_idle_priority};

/// How long each target may look, unless MINUTES says otherwise.
const DEFAULT_MINUTES: f64 = 5.0;

/// `fuzz/bugs.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bugs {
    bug: Vec<Bug>,
}

/// A change of one place.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    name: String,
    target: String,
    file: PathBuf,
    from: String,
    to: String,
    /// What the failure's message has in it, when it is this bug.
    says: String,
}

impl Bugs {
    fn read() -> anyhow::Result<Self> {
        Ok(toml::from_str(include_str!("../../bugs.toml"))?)
    }
}

impl Bug {
    /// The text of the file with the bug in it.
    fn put_into(&self, text: &str) -> anyhow::Result<String> {
        let places = text.matches(&self.from).count();
        ensure!(places == 1, "{}: {places} places for {:?}", self.file.display(), self.name);
        Ok(text.replace(&self.from, &self.to))
    }

    fn target(&self) -> anyhow::Result<&'static FuzzTarget> {
        let target = TARGETS.into_iter().find(|target| target.name == self.target);
        target.with_context(|| format!("{}: no such target", self.target))
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Copies what Git knows of the sources, and changes the copy.
pub(crate) fn plant(campaign: &Campaign) -> anyhow::Result<()> {
    let copy = campaign.out.join("bugs/sources");
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace())
        .output()
        .context("git lists the sources")?;
    ensure!(listed.status.success(), "git cannot list the sources");
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let to = copy.join(name);
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        let new = fs::read(workspace().join(name)).with_context(|| name.to_owned())?;
        // What is the same is not built again.
        if fs::read(&to).ok().as_ref() != Some(&new) {
            fs::write(&to, new)?;
        }
    }
    for bug in Bugs::read()?.bug {
        let path = copy.join(&bug.file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, bug.put_into(&text)?)?;
    }
    Ok(())
}

/// Each target looks for its bug, from the kept corpus on. The exit code is 1 when one is not found.
pub(crate) fn hunt(campaign: &Campaign) -> anyhow::Result<ExitCode> {
    let minutes = std::env::var("MINUTES").ok().and_then(|text| text.parse().ok());
    let most = Duration::from_secs_f64(60.0 * minutes.unwrap_or(DEFAULT_MINUTES));
    let bugs = Bugs::read()?.bug;
    let mut found = 0;
    for bug in &bugs {
        let outcome = look_for(campaign, bug, most)?;
        found += usize::from(outcome.is_ok());
        match outcome {
            Ok(after) => println!("found     after {after:6.1} s: {} ({})", bug.name, bug.target),
            Err(why) => println!("NOT FOUND {why}: {} ({})", bug.name, bug.target),
        }
    }
    println!("{found} of {} bugs found", bugs.len());
    Ok(if found == bugs.len() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Seconds until it was found, or why that does not count.
fn look_for(campaign: &Campaign, bug: &Bug, most: Duration) -> anyhow::Result<Result<f64, String>> {
    let target = bug.target()?;
    let folder = campaign.out.join("bugs").join(&bug.target);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("corpus"))?;
    let failure = folder.join("failure");
    let start = Instant::now();
    let program = campaign.out.join("bugs/programs").join(format!("fuzz-{}", target.name));
    let output = at_idle_priority(&program)
        .arg(format!("-max_total_time={}", most.as_secs()))
        .arg(format!("-max_len={}", target.longest))
        .arg(format!("-exact_artifact_path={}", failure.display()))
        .args(["-timeout=30", "-rss_limit_mb=2048"])
        .args(target.dictionary().map(|path| format!("-dict={}", path.display())))
        .args([&folder.join("corpus"), &Campaign::kept_corpus(target)])
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.display().to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    if output.status.success() || !failure.exists() {
        return Ok(Err(format!("within {seconds:.0} s")));
    }
    if !String::from_utf8_lossy(&output.stderr).contains(&bug.says) {
        return Ok(Err("it failed in another way".to_owned()));
    }
    let honest = Command::new(campaign.program(target))
        .arg(&failure)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(if honest.success() { Ok(seconds) } else { Err("it fails without the bug, too".to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_its_place_in_the_sources() {
        let bugs = Bugs::read().unwrap().bug;
        assert!(bugs.len() >= 10, "{} bugs", bugs.len());
        for bug in bugs {
            bug.target().unwrap();
            let text = fs::read_to_string(workspace().join(&bug.file)).unwrap();
            assert_ne!(bug.put_into(&text).unwrap(), text);
        }
    }
}
