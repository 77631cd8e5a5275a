//! The options of `tapstone trial`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use tapstone_events::Fix;

use crate::command_line::RecordArguments;
use crate::output::OutputArguments;
use crate::values;

/// Try a fix on the unmodified program, and measure what it brings.
///
/// The program runs many times: with the fix off, with the fix on, and without a probe, interleaved
/// in an order that is drawn for each round.
/// Its output and its calls are compared too: a fix that changes them is not safe.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The fix; several are tried together
    #[arg(long = "fix", value_name = "FIX", required_unless_present = "from")]
    pub(crate) fixes: Vec<Fix>,
    /// Try the fixes that the findings of this trace name, one after the other
    #[arg(long, value_name = "RECORD", conflicts_with = "fixes")]
    pub(crate) from: Option<PathBuf>,
    /// Rounds that count; a verdict needs 20
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) rounds: u32,
    /// Rounds before them that do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) warm_up_rounds: u32,
    /// What decides the order within each round and the pauses between rounds
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Repeat a command that writes to a token or card, or starts programs that cannot be seen
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Start this daemon for all rounds, with the fix inside: 'pcscd --foreground' (root)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) with_daemon: Option<String>,
    /// The largest size of the events of one run
    #[arg(long, value_name = "BYTES", default_value = "2G", value_parser = values::bytes)]
    pub(crate) events_size: usize,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", help_heading = "Program")]
    pub(crate) command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Fixes:
  no-sleep[:FUNCTION]           sleeps inside the function return at once
  no-sleep:program              sleeps of the program between its calls return at once
  no-busy-wait[:FUNCTION]       the clock hurries while the function asks again and again
  no-busy-wait:program          the program waits for what it asks for again and again
  memoise:FUNCTION              a lookup's first answer is given again: getprotobynumber, getpwuid …
  cache-apdu                    a reading command's first answer is given again
  cache-find                    a search for objects is answered again as the first time
  cache-attributes              public attributes of an object are answered again as the first time
  keep-login                    a login stays over C_Logout, for the next C_Login with the same PIN
  keep-session                  a session stays over C_CloseSession, for the next C_OpenSession
  whole-read                    a length probe reads all there is
  tcp-nodelay                   small segments do not wait for an acknowledgement
  delay:FUNCTION=1ms..10ms      the reverse: the function takes so much longer

Examples:
  tapstone trial --fix no-busy-wait -- pkcs11-tool --list-objects
  tapstone trial --from trace.json -- pkcs11-tool --list-objects

Exit codes: 0 done, 2 could not measure.";

#[cfg(test)]
mod tests {
    use super::{EXAMPLES, Fix};

    #[test]
    fn the_help_lists_every_fix() {
        let error = "none".parse::<Fix>().unwrap_err().to_string();
        let (_, list) = error.split_once("fixes are ").unwrap();
        for fix in list.split(", ") {
            assert!(EXAMPLES.contains(&format!("\n  {fix} ")), "{fix}");
        }
    }
}
