//! The kept corpus: the fewest inputs that reach all edges that were ever reached.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, ensure};
use tapstone_fuzz::targets::TARGETS;

use super::{Campaign, at_idle_priority};

/// Takes what the sessions found into the kept corpora, and throws out what is no longer needed.
pub(crate) fn minimise(campaign: &Campaign) -> anyhow::Result<()> {
    for target in TARGETS {
        let kept = Campaign::kept_corpus(target);
        let new = kept.with_extension("new");
        fs::create_dir_all(&new)?;
        // Of a target that was not run here there is none.
        let grown = campaign.grown_corpus(target);
        fs::create_dir_all(&grown)?;
        let program = campaign.program(target);
        let status = at_idle_priority(&program)
            // How often an edge was passed does not count.
            .args(["-set_cover_merge=1", "-use_counters=0"])
            .arg(format!("-max_len={}", target.longest))
            .args([&new, &kept, &grown])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| program.display().to_string())?;
        ensure!(status.success(), "{}: the corpora cannot be merged", target.name);
        fs::remove_dir_all(&kept)?;
        fs::rename(&new, &kept)?;
        let files = fs::read_dir(&kept)?.map(|file| Ok(file?.metadata()?.len()));
        let sizes = files.collect::<anyhow::Result<Vec<u64>>>()?;
        println!(
            "{:15} {:4} inputs, {:7} bytes",
            target.name,
            sizes.len(),
            sizes.iter().sum::<u64>()
        );
    }
    Ok(())
}
