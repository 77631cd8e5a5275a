//! A software token, made for this and removed with its folder.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use tapstone_discover::{self as discover, State};
use tapstone_record::Record;

use super::Skipped;
use super::run::{DemoRun, has_program, words};

const OPERATION: &str = "rsa2048.sign";

/// What a data sheet might say.
const CLAIM: &str = "rsa2048.sign >= 500/s";

/// The open loop asks for this part of the rate that the token can do.
const PART: f64 = 0.5;

/// The limit and a claim; then how long one waits at half of that rate.
pub(super) fn demonstrate_token(run: &DemoRun) -> anyhow::Result<Vec<PathBuf>> {
    let module = module()?;
    let pin = run.scratch().join("pin");
    let configuration = make_token(run.scratch(), &pin)?;
    let variables = [("SOFTHSM2_CONF", configuration.as_os_str())];
    let token = words([&"token", &"--module", &module, &"--token-label", &"tapstone-demo"]);
    let measure = |record: &str, rest: Vec<&OsStr>| {
        let pin = words([&"--pin-file", &pin]);
        run.verb(record, &[token.clone(), pin, rest].concat(), &variables)
    };
    let limit =
        words([&"--op", &OPERATION, &"--find-limit", &"--claim", &CLAIM, &"--max-time", &"30"]);
    let closed = measure("token.json", limit)?;
    let highest = Record::read(&closed)?.results.first().and_then(|case| case.throughput);
    let Some(highest) = highest else { return Ok(vec![closed]) };
    let rate = format!("{:.0}", highest.estimate * PART);
    let open = measure(
        "token-open.json",
        words([&"--op", &OPERATION, &"--rate", &rate, &"--threads", &"4", &"--seconds", &"5"]),
    )?;
    Ok(vec![closed, open])
}

fn module() -> anyhow::Result<PathBuf> {
    if !has_program("softhsm2-util") {
        return Err(Skipped("there is no softhsm2-util (Debian: softhsm2)".into()).into());
    }
    let found = discover::modules(&[])
        .candidates
        .into_iter()
        .find(|module| module.state != State::Missing && module.path.ends_with("libsofthsm2.so"));
    let missing = || Skipped("SoftHSM2's module, libsofthsm2.so, was not found".into());
    Ok(found.ok_or_else(missing)?.path)
}

/// A token whose configuration file this returns.
fn make_token(folder: &Path, pin: &Path) -> anyhow::Result<PathBuf> {
    let tokens = folder.join("tokens");
    let configuration = folder.join("softhsm2.conf");
    fs::create_dir(&tokens)?;
    fs::write(
        &configuration,
        format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            tokens.display()
        ),
    )?;
    // It lives for minutes and protects nothing: for it alone may a PIN be an argument, which is
    // how softhsm2-util takes it.
    let secret = format!("{:016}", random()? % 10_u64.pow(16));
    fs::write(pin, &secret)?;
    fs::set_permissions(pin, fs::Permissions::from_mode(0o600))?;
    let made = Command::new("softhsm2-util")
        .args(["--init-token", "--free", "--label", "tapstone-demo"])
        .args(["--pin", &secret, "--so-pin", &secret])
        .env("SOFTHSM2_CONF", &configuration)
        .stdin(Stdio::null())
        .output()
        .context("softhsm2-util")?;
    anyhow::ensure!(
        made.status.success(),
        "softhsm2-util made no token: {}",
        String::from_utf8_lossy(&made.stderr).trim()
    );
    Ok(configuration)
}

fn random() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    let mut file = fs::File::open("/dev/urandom")?;
    std::io::Read::read_exact(&mut file, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
