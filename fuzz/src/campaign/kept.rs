//! The sessions that come with the sources, so that runs on several machines add up: a line of JSON
//! for each that did not fail.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Session;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions.jsonl")
}

/// Every session that was kept, the earliest first. An error names the line that is none.
pub(crate) fn read() -> anyhow::Result<Vec<Session>> {
    let path = path();
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let session = |(line, text)| {
        serde_json::from_str(text).with_context(|| format!("{}:{}", path.display(), line + 1))
    };
    text.lines().enumerate().map(session).collect()
}

/// Keeps these sessions, but none that found a failure: what it ran is no longer as it was.
pub(crate) fn write(sessions: &[Session]) -> anyhow::Result<()> {
    let whole = sessions.iter().filter(|session| session.failures.is_empty());
    let lines = whole.map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    let path = path();
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    fs::write(&path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_that_come_with_the_sources_can_be_read() {
        for session in read().unwrap() {
            assert!(session.executions.count > 0, "{session:?}");
        }
    }
}
