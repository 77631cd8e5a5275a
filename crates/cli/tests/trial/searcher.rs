//! The client that searches, reads and signs on SoftHSM2, as the tests of two fixes run it.

use std::path::PathBuf;
use std::process::Command;

use tapstone_record::Trial;

use crate::fixtures;
use crate::softhsm::Hsm;

/// The client beside a token of its own.
pub(crate) struct Searcher {
    program: PathBuf,
    module: String,
    configuration: String,
    _hsm: Hsm,
}

impl Searcher {
    /// `None` where the client cannot be built, or there is no SoftHSM2: the test skips then.
    pub(crate) fn new() -> Option<Self> {
        let (program, hsm) = fixtures::built("searcher").zip(Hsm::new())?;
        let module = hsm.module().display().to_string();
        let configuration = hsm.path("softhsm2.conf").display().to_string();
        Some(Self { program, module, configuration, _hsm: hsm })
    }

    /// Makes the key, for runs that find it there.
    pub(crate) fn prepare(&self) {
        let prepare = Command::new(&self.program)
            .args([&self.module, "1", "--prepare"])
            .env("SOFTHSM2_CONF", &self.configuration)
            .status();
        assert!(prepare.unwrap().success());
    }

    /// The only trial of a fix on the client, with these words behind its module.
    #[track_caller]
    pub(crate) fn trial(&self, fix: &str, options: &str, words: &[&str]) -> Trial {
        let command = [&[self.program.to_str().unwrap(), &self.module], words].concat();
        crate::trial(fix, options, &[("SOFTHSM2_CONF", &self.configuration)], &command)
    }
}
