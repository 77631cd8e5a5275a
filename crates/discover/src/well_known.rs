//! The modules that are found without configuration, because they lie where their packages or
//! their vendors' installers put them.
//!
//! Not here: NSS's softoken, which takes its parameters in C_Initialize, and OpenSC's
//! `pkcs11-spy.so`, which is another module's shell.

use std::path::Path;

use super::{Candidate, FoundBy, Roots};

/// A module that is known by its file's name.
#[derive(Debug)]
pub(super) struct Known {
    /// The name of the product that installs it.
    pub(super) name: &'static str,
    /// What is behind it, and what to know before it is measured.
    pub(super) what: &'static str,
    /// Where it lies: absolute, or below each library directory and its `pkcs11`.
    files: &'static [&'static str],
}

/// Sources: the packages of Debian 12, Fedora and Arch, and the vendors' installation guides.
const KNOWN: &[Known] = &[
    Known {
        name: "SoftHSM2",
        what: "a software token: measures this machine's processor",
        files: &["softhsm/libsofthsm2.so", "libsofthsm2.so"],
    },
    Known {
        name: "Kryoptic",
        what: "a software token: measures this machine's processor",
        files: &["libkryoptic_pkcs11.so", "kryoptic/libkryoptic_pkcs11.so"],
    },
    Known {
        name: "OpenSC",
        what: "smart cards and USB tokens, through PC/SC",
        files: &["opensc-pkcs11.so"],
    },
    Known {
        name: "YKCS11",
        what: "the PIV application of a YubiKey, through PC/SC",
        files: &["libykcs11.so"],
    },
    Known {
        name: "SmartCard-HSM",
        what: "SmartCard-HSM and Nitrokey HSM, through PC/SC",
        files: &["libsc-hsm-pkcs11.so"],
    },
    Known {
        name: "SafeNet Authentication Client",
        what: "eToken and IDPrime cards, through PC/SC",
        files: &["libeToken.so", "libeTPkcs11.so", "libIDPrimePKCS11.so"],
    },
    Known {
        name: "tpm2-pkcs11",
        what: "the TPM 2.0 of this machine",
        files: &["libtpm2_pkcs11.so"],
    },
    Known {
        name: "YubiHSM 2",
        what: "a USB HSM: yubihsm_pkcs11.conf says where its connector is",
        files: &["yubihsm_pkcs11.so"],
    },
    Known {
        name: "openCryptoki",
        what: "the coprocessors of IBM Z, a TPM or software, as pkcsslotd is configured",
        files: &["libopencryptoki.so", "opencryptoki/libopencryptoki.so", "PKCS11_API.so"],
    },
    Known {
        name: "Thales Luna",
        what: "a PCIe or network HSM, by Chrystoki.conf",
        files: &["/usr/safenet/lunaclient/lib/libCryptoki2_64.so", "libCryptoki2_64.so"],
    },
    Known {
        name: "Entrust nShield",
        what: "a PCIe, USB or network HSM, through its hardserver",
        files: &["/opt/nfast/toolkits/pkcs11/libcknfast.so"],
    },
    Known {
        name: "Utimaco SecurityServer",
        what: "a PCIe or network HSM or its simulator: cs_pkcs11_R3.cfg (or R2) says which",
        files: &[
            "libcs_pkcs11_R3.so",
            "libcs_pkcs11_R2.so",
            "/opt/utimaco/lib/libcs_pkcs11_R3.so",
            "/opt/utimaco/lib/libcs_pkcs11_R2.so",
            "/opt/utimaco/p11/libcs_pkcs11_R3.so",
            "/opt/utimaco/p11/libcs_pkcs11_R2.so",
        ],
    },
    Known {
        name: "Securosys Primus",
        what: "a network HSM, or one in the cloud",
        files: &["/usr/local/primus/lib/libprimusP11.so"],
    },
    Known {
        name: "Nitrokey NetHSM",
        what: "a network HSM, by p11nethsm.conf: measures HTTPS too",
        files: &["libnethsm_pkcs11.so"],
    },
    Known {
        name: "AWS CloudHSM",
        what: "HSMs in the cloud; the PIN is `user:password`",
        files: &["/opt/cloudhsm/lib/libcloudhsm_pkcs11.so"],
    },
    Known {
        name: "Google Cloud KMS",
        what: "keys in the cloud, by the file that KMS_PKCS11_CONFIG names",
        files: &["libkmsp11.so"],
    },
    Known {
        name: "p11-kit proxy",
        what: "all p11-kit modules behind one: measures the proxy too",
        files: &["p11-kit-proxy.so"],
    },
    Known {
        name: "p11-kit client",
        what: "the module behind a `p11-kit server`: measures the transport too",
        files: &["p11-kit-client.so"],
    },
    Known {
        name: "p11-kit trust",
        what: "the certificates that the system trusts: no keys to measure",
        files: &["p11-kit-trust.so"],
    },
];

/// The modules that are there.
pub(super) fn present(roots: &Roots) -> Vec<Candidate> {
    let directories: Vec<_> = roots.libraries().chain(roots.p11_kit_modules()).collect();
    let places = |file: &&str| match file.starts_with('/') {
        true => vec![roots.at(file)],
        false => directories.iter().map(|directory| directory.join(file)).collect(),
    };
    let paths = KNOWN.iter().flat_map(|known| known.files.iter().flat_map(places));
    paths
        .filter(|path| path.is_file())
        .map(|path| Candidate::new(&path, FoundBy::WellKnownPath))
        .collect()
}

/// What a file is, judged by its name, wherever it lies.
pub(super) fn by_file_name(path: &Path) -> Option<&'static Known> {
    let wanted = path.file_name()?;
    KNOWN
        .iter()
        .find(|known| known.files.iter().any(|file| Path::new(file).file_name() == Some(wanted)))
}
