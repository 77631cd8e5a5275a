//! What a traced program did: time by layer, calls by module, APDUs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::figures::Fraction;
use crate::finding::FindingKind;

/// What a whole command took: user and system time are of all its processes that were waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandTime {
    /// From just before its process was made until it had ended, in nanoseconds.
    #[schemars(with = "u64")]
    pub wall_ns: Nanos,
    /// Processor time in user mode, in nanoseconds.
    #[schemars(with = "u64")]
    pub user_ns: Nanos,
    /// Processor time in the kernel, in nanoseconds.
    #[schemars(with = "u64")]
    pub system_ns: Nanos,
}

/// What a process of a traced command did with its time, as far as its first thread tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessTime {
    /// The id of the process, as the kernel numbers it.
    pub process: u32,
    /// The file name of the last program that it ran; empty when that is not known.
    pub program: String,
    /// From its first event to its end, in nanoseconds; of the command itself its whole time.
    #[schemars(with = "u64")]
    pub wall_ns: Nanos,
    /// Processor time of all its threads; null when it did not end in good order.
    #[schemars(with = "Option<u64>")]
    pub processor_ns: Option<Nanos>,
    /// What its first thread did, the longest first. Running and waits are known from different
    /// sources, so that they add up to `wall_ns` only nearly.
    pub parts: Vec<TimePart>,
}

/// A part of a thread's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimePart {
    /// What it did.
    pub kind: TimeKind,
    /// How long, in nanoseconds.
    #[schemars(with = "u64")]
    pub time_ns: Nanos,
    /// Its part of the process's time.
    pub share: Fraction,
}

/// What a thread does with its time. Readers must expect kinds that are not in this list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeKind {
    /// On a processor.
    Running,
    /// Ready to run, and without a processor.
    Runnable,
    /// In a call that sleeps.
    Sleeping,
    /// For something to read, or to become ready.
    Input,
    /// For another thread.
    Lock,
    /// For a process that it started.
    Children,
    /// Not known: blocked in something that is not watched, or running where the kernel does not
    /// say for how long.
    Unknown,
    /// A kind that a later version of the tool knows.
    #[serde(untagged)]
    Other(String),
}

/// What was looked for in a traced program. Where `findings` is empty, this is what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasteSearch {
    /// The kinds of waste that were looked for.
    pub looked_for: Vec<FindingKind>,
    /// What could not be seen, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// The time of one thread that one layer owns. The layers of a thread add up to its wall time;
/// threads are never added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// The id of the process, as the kernel numbers it.
    pub process: u32,
    /// The id of the thread, as the kernel numbers it (gettid(2)).
    pub thread: u32,
    /// The owner: `program`, `pkcs11`, `pcsc`, `below-pcsc`, `user`, `lock` and others.
    pub layer: String,
    /// The time that it owns, in nanoseconds.
    #[schemars(with = "u64")]
    pub time_ns: Nanos,
    /// Its part of the thread's wall time.
    pub share: Fraction,
}

/// One function of one module, all its calls together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// The file name of the library that was called. A proxy and the module behind it are two.
    pub module: String,
    /// The layer that the call belongs to.
    pub layer: String,
    /// The function, as its specification spells it.
    pub function: String,
    /// How often it was called.
    pub count: u64,
    /// How often in one operation, on average; absent where the operation is the whole command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_operation: Option<f64>,
    /// Calls that failed, by return code.
    #[serde(default)]
    pub failed: BTreeMap<String, u64>,
    /// From entry to return, in nanoseconds, all calls together. Calls that nest overlap.
    #[schemars(with = "u64")]
    pub total_ns: Nanos,
    /// Of how many calls `total_ns` is, where not of all: a call inside one of the same function has
    /// its time there, and of others the beginning or the end was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<u64>,
    /// The part of it that no inner call owns, in nanoseconds.
    #[schemars(with = "u64")]
    pub self_ns: Nanos,
    /// The time that half of the calls that went well did not exceed, in nanoseconds: to 0.1 %, and to
    /// an eighth where some were only counted. Absent of the C library's calls, and where those
    /// whose time is not known may make it another one.
    #[schemars(with = "Option<u64>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<Nanos>,
    /// The same for 99 of a hundred; absent also of fewer than 100 calls.
    #[schemars(with = "Option<u64>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<Nanos>,
    /// Of calls that were only counted: how many, or more, asked again what the same thread had asked
    /// before, with no call of its process in between that changes answers: a search by its
    /// template, others with the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_again: Option<u64>,
    /// From entry to return, in nanoseconds, all of these together.
    #[schemars(with = "Option<u64>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_again_ns: Option<Nanos>,
}

/// The function of a library that made system calls for the program.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Origin {
    /// Its name, for example `getprotobynumber`.
    pub function: String,
    /// The file name of the library.
    pub module: String,
    /// The program's function that called it; absent on a thread that the library began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// System calls of one kind: the same call on the same object, made by the same functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemCall {
    /// Its name, as in syscalls(2).
    pub call: String,
    /// What it worked on, where that is known: a path, a descriptor's file, a socket's peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Who wanted it; absent where the program made the call itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The functions that were under way, the innermost first. Those of programs without symbols
    /// are addresses.
    pub stack: Vec<String>,
    /// How often it was made.
    pub count: u64,
    /// Calls that failed, by error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, u64>,
    /// From entry to return, in nanoseconds, all calls together. Of calls that do not sleep this is
    /// the tracer's time.
    #[schemars(with = "u64")]
    pub time_ns: Nanos,
}

impl Call {
    /// The name of the case of `results` that the call also is: `C_Sign [opensc-pkcs11.so]`.
    #[must_use]
    pub fn operation(&self) -> String {
        format!("{} [{}]", self.function, self.module)
    }
}

/// One kind of command to the card, all its exchanges together. Of its data only what names the
/// object that it reads or selects is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Apdu {
    /// Its name in ISO 7816-4 or in the specification of the application, for example `SELECT`.
    pub name: String,
    /// What it works on, where that is known: a data object, a file, an application, a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// CLA, INS, P1 and P2, in hexadecimal.
    pub header: String,
    /// How often it was sent.
    pub count: u64,
    /// How often the same command got the same response again while nothing could have changed it.
    pub repeats: u64,
    /// How often it was answered with which status word, in hexadecimal; absent when they were not
    /// looked at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<String, u64>,
    /// From command to response, in nanoseconds, all exchanges together.
    #[schemars(with = "u64")]
    pub time_ns: Nanos,
    /// Bytes to the card, headers included.
    pub sent_bytes: u64,
    /// Bytes from the card, status words included.
    pub received_bytes: u64,
}

impl Apdu {
    /// A command that was not sent yet.
    #[must_use]
    pub fn new(name: impl Into<String>, object: Option<String>, header: String) -> Self {
        Self {
            name: name.into(),
            object,
            header,
            count: 0,
            repeats: 0,
            status: BTreeMap::new(),
            time_ns: Nanos::ZERO,
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Adds an exchange, with so many bytes to the card and from it.
    pub fn add(&mut self, time: Nanos, sent: u32, received: u32) {
        self.count += 1;
        self.time_ns += time;
        self.sent_bytes += u64::from(sent);
        self.received_bytes += u64::from(received);
    }

    /// Adds the status word of an exchange.
    pub fn add_status(&mut self, status: u16) {
        *self.status.entry(format!("{status:04X}")).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_of_a_command_add_up() {
        let mut apdu = Apdu::new("SELECT", None, "00A40400".into());
        apdu.add(Nanos(5_000), 14, 2);
        apdu.add(Nanos(2_000), 14, 40);
        [0x9000, 0x6A82, 0x9000].into_iter().for_each(|status| apdu.add_status(status));
        assert_eq!((apdu.count, apdu.time_ns), (2, Nanos(7_000)));
        assert_eq!((apdu.sent_bytes, apdu.received_bytes), (28, 42));
        let status: Vec<_> = apdu.status.iter().map(|(word, times)| (&word[..], *times)).collect();
        assert_eq!(status, [("6A82", 1), ("9000", 2)]);
    }

    #[test]
    fn a_call_is_a_case_of_its_function_and_module() {
        let call = Call {
            module: "opensc-pkcs11.so".into(),
            layer: "PKCS#11".into(),
            function: "C_Sign".into(),
            count: 1,
            per_operation: None,
            failed: BTreeMap::new(),
            total_ns: Nanos(2),
            timed: None,
            self_ns: Nanos(1),
            p50_ns: None,
            p99_ns: None,
            asked_again: None,
            asked_again_ns: None,
        };
        assert_eq!(call.operation(), "C_Sign [opensc-pkcs11.so]");
    }
}
