//! Where the files of a machine are looked for: its own tree, or one under a prefix.

use std::env;
use std::path::{Path, PathBuf};

/// The tree that is searched. The default is this machine's, with the home of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// What stands for `/`.
    pub system: PathBuf,
    /// The user's home, if there is one.
    pub home: Option<PathBuf>,
}

impl Default for Roots {
    fn default() -> Self {
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Self { system: PathBuf::from("/"), home }
    }
}

impl Roots {
    /// Where `path`, absolute on the machine, is in this tree.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.system.join(path.trim_start_matches('/'))
    }

    /// Where `path` is in the user's home.
    pub(super) fn at_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_deref().map(|home| home.join(path))
    }

    /// The directories for shared libraries: Debian's multiarch, Fedora's, Arch's, those for
    /// locally built software, and the one that NixOS collects a system's libraries in.
    pub(super) fn libraries(&self) -> impl Iterator<Item = PathBuf> {
        let multiarch = format!("{}-linux-gnu", env::consts::ARCH);
        let of =
            |base: &Path| [base.join("lib").join(&multiarch), base.join("lib64"), base.join("lib")];
        let [usr, local] = ["/usr", "/usr/local"].map(|base| of(&self.at(base)));
        usr.into_iter().chain(local).chain([self.at("/run/current-system/sw/lib")])
    }

    /// The directories that p11-kit may have been built to load modules from: `pkcs11` in each
    /// library directory. The one in use is known to its pkg-config file, which users lack.
    pub(super) fn p11_kit_modules(&self) -> impl Iterator<Item = PathBuf> {
        self.libraries().map(|directory| directory.join("pkcs11"))
    }
}
