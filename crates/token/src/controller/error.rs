//! What can stand in the way of measuring a token, in words that say what to do.

use std::path::{Path, PathBuf};

use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function};

use crate::material::MaterialError;
use crate::module::LoadError;
use crate::protocol::Trouble;

/// A worker process that is no more.
pub type Lost = tapstone_worker::Lost<Pkcs11Function>;

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum TokenMeasureError {
    /// A worker process could not be started.
    #[error("a worker process could not be started: {0}\nhint: is there room for another process?")]
    Spawn(std::io::Error),
    /// The module's file is not there.
    #[error("{}: no such module\nhint: `tapstone targets` lists the modules that were found", .0.display())]
    NoModule(PathBuf),
    /// The module cannot be loaded or initialised.
    #[error("{}: {}\nhint: {}", .module.display(), load_text(.module, .error), load_hint(.error))]
    Load {
        /// The path of the module.
        module: PathBuf,
        /// Why it could not be loaded or initialised.
        error: LoadError,
    },
    /// The module took its process with it, or never answered.
    #[error("{}: {lost}\nhint: {}", .module.display(), lost_hint(.lost))]
    Lost {
        /// The path of the module.
        module: PathBuf,
        /// How its process was lost, and in which call.
        lost: Lost,
    },
    /// A call of PKCS #11 failed.
    #[error("{what}: {failure}\nhint: {}", failure_hint(.failure))]
    Call {
        /// The token or module.
        what: String,
        /// The function, and the code that it returned.
        failure: Pkcs11Failure,
    },
    /// No token fits what was asked for.
    #[error("{}: no token {wanted}\nhint: {}", .module.display(), token_hint(.present))]
    NoToken {
        /// The path of the module.
        module: PathBuf,
        /// What was asked for.
        wanted: String,
        /// The tokens that the module has, by label.
        present: Vec<String>,
    },
    /// Several tokens fit, and they are not the same.
    #[error("{}: {count} tokens fit: {}\nhint: choose one by --token-label, --token-serial or --slot", .module.display(), .fits.join(", "))]
    ManyTokens {
        /// The path of the module.
        module: PathBuf,
        /// How many tokens fit.
        count: usize,
        /// The tokens that fit, each in words.
        fits: Vec<String>,
    },
    /// The token has not been initialised.
    #[error(
        "slot {slot}: the token is not initialised\nhint: initialise it with its vendor's tool; Tapstone never does"
    )]
    Uninitialised {
        /// The CK_SLOT_ID of the slot.
        slot: u64,
    },
    /// The PIN's counter forbids a try.
    #[error("token \"{label}\": {why}\nhint: {hint}")]
    PinAtRisk {
        /// The label of the token.
        label: String,
        /// What the flags say.
        why: &'static str,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// An operation that logs in, without a PIN.
    #[error(
        "login needs a PIN to log in with\nhint: give one: --pin-file, --pin-env, --pin-fd or --pin-prompt"
    )]
    NoPin,
    /// Another machine could not do what was asked.
    #[error("{host}: {text}")]
    Host {
        /// The name of the machine.
        host: String,
        /// What its agent says, with a hint.
        text: String,
    },
    /// A machine's results are not what it had committed itself to.
    #[error(
        "{host}: {why}\nhint: trust no figure of this case, and measure without {host} until you know why"
    )]
    Refuted {
        /// The name of the machine.
        host: String,
        /// What is to be said against it.
        why: &'static str,
    },
    /// Keys could not be found or made.
    #[error("{trouble}\nhint: {}", trouble_hint(.trouble))]
    Keys {
        /// What is wrong with them.
        trouble: Trouble,
    },
    /// Software could not prepare its part.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The run's own keys are still on the token.
    #[error(
        "the run's own keys could not be removed: {0}\nhint: when the token is back, --leftovers --remove removes them"
    )]
    KeysLeft(Pkcs11Failure),
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

/// The dynamic linker names the file itself.
fn load_text(module: &Path, error: &LoadError) -> String {
    let text = error.to_string();
    let named = format!("{}: ", module.display());
    text.strip_prefix(&named).unwrap_or(&text).to_owned()
}

fn load_hint(error: &LoadError) -> &'static str {
    match error {
        LoadError::Open(_) => "the module must be a shared library for this machine",
        LoadError::Arguments => "--module-args takes a text without a zero in it",
        LoadError::NoFunctionList => "give the module itself, not a library that it uses",
        LoadError::Call(Pkcs11Failure { call: Pkcs11Function::C_Initialize, code })
            if code.name() == Some("CKR_ARGUMENTS_BAD") =>
        {
            "some modules have to be told where their files are: --module-args"
        }
        LoadError::Call(failure) => failure_hint(failure),
    }
}

fn lost_hint(lost: &Lost) -> &'static str {
    match lost {
        Lost::Hung { .. } => "--timeout gives the module more time",
        Lost::BeyondBuffer { .. } => {
            "the module breaks PKCS #11: tell its maker, and trust no figure of it"
        }
        Lost::Crashed { .. } => "run the module's own tool on it; its logs are on standard error",
        Lost::Unreachable(_) => "look at its agent; it removes the run's keys once it has noticed",
        Lost::Garbled(_) => "the module seems to write into descriptors that are not its own",
    }
}

fn failure_hint(failure: &Pkcs11Failure) -> &'static str {
    failure.code.hint().unwrap_or("the module's own log may say more")
}

fn token_hint(present: &[String]) -> String {
    match present {
        [] => {
            "the module sees no token at all: is it connected, and is the module configured?".into()
        }
        labels => format!("there is: {}", labels.join(", ")),
    }
}

fn trouble_hint(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::NotNoted { .. } => {
            "XDG_STATE_HOME names a folder of yours with room; session keys (without --token-keys) need no note"
        }
        Trouble::Call { failure, .. } => failure_hint(failure),
        Trouble::NotAllowed { .. } => "the agent's configuration says what it allows",
        Trouble::NoKey { .. } => {
            "the key must be of the operation's type; is the PIN given, if it is private?"
        }
        Trouble::ManyKeys { .. } => "choose one by --key-id",
        Trouble::WrongKey { .. } => {
            "name a key made for this operation, or the operation for this key"
        }
    }
}
