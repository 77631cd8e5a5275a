//! A folder of records that new runs are compared with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapstone_compare::baseline::{file_stem, is_baseline_of};
use tapstone_files::Access;
use tapstone_record::Record;

use super::sides::OpenedRecord;
use crate::output;

/// The folder, as named on the command line.
pub(super) struct Baselines<'a>(pub(super) &'a Path);

impl Baselines<'_> {
    /// The one record in the folder that is a run of the same work on the same device.
    pub(super) fn find(&self, candidate: &OpenedRecord) -> anyhow::Result<Option<OpenedRecord>> {
        let mut fitting = Vec::new();
        for path in self.files()? {
            // The candidate may have been written into the folder.
            if path.canonicalize().ok() == Path::new(&candidate.path).canonicalize().ok() {
                continue;
            }
            let kept = OpenedRecord::read(&path.to_string_lossy())?;
            if is_baseline_of(&kept.record, &candidate.record) {
                fitting.push(kept);
            }
        }
        if let [one, other, ..] = &fitting[..] {
            anyhow::bail!(
                "{} and {} are both of the same work on the same device as {}\nhint: keep one of \
                 them in {}, or name it: tapstone compare {} {}",
                one.path,
                other.path,
                candidate.path,
                self.0.display(),
                one.path,
                candidate.path
            );
        }
        Ok(fitting.pop())
    }

    /// Keeps a record's file, as it is, in the place of the one that was found, or as a first one.
    pub(super) fn keep(
        &self,
        candidate: &OpenedRecord,
        found: Option<&Path>,
    ) -> anyhow::Result<PathBuf> {
        let place = found.map_or_else(|| self.free_name(&candidate.record), Path::to_owned);
        fs::create_dir_all(self.0).with_context(|| {
            format!(
                "cannot make {}\nhint: --baseline names a folder in which files can be made",
                self.0.display()
            )
        })?;
        output::write_file(&place, Access::Everybody, |to| {
            to.write_all(candidate.content.as_bytes())
        })?;
        Ok(place)
    }

    /// Every record in it, in the order of names. A folder that is not there yet has none.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let read = || {
            let paths = fs::read_dir(self.0)?.map(|entry| Ok(entry?.path()));
            paths.collect::<std::io::Result<Vec<PathBuf>>>()
        };
        let mut paths = read().with_context(|| {
            format!(
                "cannot read {}\nhint: --baseline names a folder with records",
                self.0.display()
            )
        })?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        Ok(paths)
    }

    /// Several works on one device are told apart by a number.
    fn free_name(&self, record: &Record) -> PathBuf {
        let stem = file_stem(record);
        let names = (1..).map(|number: u32| match number {
            1 => format!("{stem}.json"),
            _ => format!("{stem}-{number}.json"),
        });
        let mut paths = names.map(|name| self.0.join(name));
        paths.find(|path| !path.exists()).expect("a folder has less files than there are numbers")
    }
}
