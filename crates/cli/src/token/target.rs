//! Which module, token and PIN, and what the record says of them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use sha2::{Digest, Sha256};
use tapstone_hosts::{Fleet, HostsWatch, Wish};
use tapstone_pin::{Pin, PinSource};
use tapstone_record as record;
use tapstone_text::Foreign;
use tapstone_token::controller::{TokenChoice, TokenController, TokenOptions, WorkerCommand};
use tapstone_token::module::ModuleArguments;
use tapstone_token::protocol::Login;

use super::arguments::{Arguments, PinSourceArguments, TargetArguments};
use crate::print::say;

/// Opens the controller that the options describe: the module is loaded and the token entered.
pub(super) fn open(
    arguments: &Arguments,
    interrupt: Arc<AtomicBool>,
) -> anyhow::Result<TokenController> {
    let options = TokenOptions {
        worker: WorkerCommand { hidden: hidden_variables(&arguments.pin.source), ..worker()? },
        module: arguments.target.module.clone().context("--module is missing")?,
        module_arguments: arguments
            .target
            .module_args
            .module_args
            .clone()
            .map(ModuleArguments::new),
        tokens: tokens(&arguments.target),
        login: login(&arguments.pin.source)?,
        accept_low_count: arguments.pin.accept_low_count,
        timeout: arguments.target.timeout.into(),
        interrupt,
        announce: |text| say!("{}", Foreign::with_lines(text)),
    };
    Ok(TokenController::open(options)?)
}

/// The controller on other machines, and what follows them for the record.
pub(super) fn open_on_hosts(
    arguments: &Arguments,
    count: u32,
    interrupt: Arc<AtomicBool>,
) -> Result<(TokenController, HostsWatch), NoHosts> {
    let timeout = arguments.target.timeout.into();
    let fleet = Fleet::gather(Wish {
        server: arguments.hosts.nats.server().map_err(NoHosts::before)?,
        enrolment: arguments.hosts.enrolment.read().map_err(NoHosts::before)?,
        count: count as usize,
        target: arguments.hosts.target.clone().unwrap_or_default(),
        timeout,
        interrupt: Arc::clone(&interrupt),
        say: |text| say!("{}", Foreign::with_lines(text)),
    });
    let fleet = fleet.map_err(|error| NoHosts { hosts: error.hosts(), error: error.into() })?;
    let watch = fleet.watch();
    match TokenController::open_on(Box::new(fleet), timeout, interrupt) {
        Ok(controller) => Ok((controller, watch)),
        Err(error) => Err(NoHosts { hosts: watch.hosts(), error: error.into() }),
    }
}

/// Why a run on other machines could not begin.
pub(super) struct NoHosts {
    pub(super) error: anyhow::Error,
    /// What is known of the machines; none, if nobody was asked yet.
    pub(super) hosts: Vec<record::Host>,
}

impl NoHosts {
    fn before(error: anyhow::Error) -> Self {
        Self { error, hosts: Vec::new() }
    }
}

/// This program again, as a worker.
pub(crate) fn worker() -> anyhow::Result<WorkerCommand> {
    let program = std::env::current_exe().context("cannot find the program's own file")?;
    Ok(WorkerCommand { program, arguments: vec!["worker".to_owned()], hidden: Vec::new() })
}

/// Variables that may hold a secret: no worker needs them.
fn hidden_variables(pin: &PinSourceArguments) -> Vec<OsString> {
    let arguments = std::iter::once("TAPSTONE_MODULE_ARGS".into());
    arguments.chain(pin.pin_env.iter().map(Into::into)).collect()
}

fn tokens(arguments: &TargetArguments) -> Vec<TokenChoice> {
    let labels = arguments.token_label.iter().cloned().map(TokenChoice::Label);
    let serials = arguments.token_serial.iter().cloned().map(TokenChoice::Serial);
    let slots = arguments.slot.iter().copied().map(TokenChoice::Slot);
    let named: Vec<TokenChoice> = labels.chain(serials).chain(slots).collect();
    if named.is_empty() { vec![TokenChoice::Only] } else { named }
}

fn login(arguments: &PinSourceArguments) -> anyhow::Result<Login> {
    Ok(read_pin(arguments)?.map_or(Login::None, Login::Pin))
}

/// The PIN from where the user said that it is; `None` where nobody was named or nothing given.
pub(crate) fn read_pin(arguments: &PinSourceArguments) -> anyhow::Result<Option<Pin>> {
    let source = match arguments {
        PinSourceArguments { pin_file: Some(path), .. } => PinSource::File(path.clone()),
        PinSourceArguments { pin_env: Some(name), .. } => PinSource::Environment(name.into()),
        PinSourceArguments { pin_fd: Some(number), .. } => PinSource::Descriptor(*number),
        PinSourceArguments { pin_prompt: true, .. } => PinSource::Prompt,
        _ => return Ok(None),
    };
    let pin = source.read()?;
    if let Some(warning) = source.warning() {
        say!("warning: {}", Foreign::with_lines(warning.to_string()));
    }
    Ok(pin)
}

/// What a record says of the module and its tokens.
pub(super) fn describe(controller: &TokenController, watch: Option<&HostsWatch>) -> record::Target {
    let library = &controller.library;
    let module = match watch {
        Some(watch) => watch.module(),
        None => Some(record::Module {
            path: controller.module().display().to_string(),
            sha256: sha256(controller.module()).unwrap_or_default(),
        }),
    };
    // Many hosts often share one token.
    let mut tokens: Vec<record::Token> = Vec::new();
    for token in controller.targets.iter().map(token) {
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    record::Target {
        module,
        library: Some(record::Library {
            description: library.description.clone(),
            version: library.version.to_string(),
            manufacturer: library.manufacturer.clone(),
            cryptoki_version: library.cryptoki_version.to_string(),
        }),
        tokens,
        ..record::Target::new(record::TargetKind::Token)
    }
}

fn token(target: &tapstone_token::controller::TokenTarget) -> record::Token {
    let token = &target.token;
    record::Token {
        slot: record::Slot { id: target.slot.id, description: target.slot.description.clone() },
        label: token.label.clone(),
        manufacturer: token.manufacturer.clone(),
        model: token.model.clone(),
        serial: token.serial.clone(),
        firmware_version: token.firmware_version.to_string(),
        hardware_version: token.hardware_version.to_string(),
        flags: token.flag_names().into_iter().map(str::to_owned).collect(),
    }
}

/// A module that was found by a bare name has no file to hash.
fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hex::encode(hash.finalize()))
}
