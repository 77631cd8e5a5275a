//! The card's model, fitted over the plain dialogues, and what follows from it: transfer apart from
//! processing, and what the other strategies should gain.

use tapstone_measure::interval::Estimate;
use tapstone_measure::linear::{FitPoint, fit};
use tapstone_piv::{ApduExchange, CommandLengths, DialogueLog, DialogueStep, Strategy};
use tapstone_record as record;

/// Bytes of the answer to GET DATA for the start of a CHUID: 65 and a status word.
const CHUID_START: f64 = 67.0;

/// What a command and a byte cost, by the commands that only move bytes: GET RESPONSE and the
/// first parts of a chain.
pub(crate) struct Model {
    fixed: Estimate,
    byte: Option<Estimate>,
    worst_residual: f64,
    observations: usize,
}

/// The time of a step, taken apart.
#[derive(Clone, Copy, Default)]
pub(crate) struct Parts {
    pub(crate) commands: f64,
    pub(crate) transfer: f64,
    pub(crate) processing: f64,
}

impl Model {
    /// `None` where nothing was only moved, or in fewer than two dialogues.
    pub(crate) fn fitted(logs: &[&DialogueLog]) -> Option<Self> {
        let moved = |log: &DialogueLog| -> Vec<FitPoint> {
            let all = log.exchanges.iter().filter(|exchange| exchange.is_transfer());
            all.map(|exchange| FitPoint {
                amounts: vec![1.0, f64::from(exchange.bytes())],
                value: exchange.time.0 as f64,
            })
            .collect()
        };
        let mut rounds: Vec<Vec<FitPoint>> = logs.iter().map(|log| moved(log)).collect();
        // The length of a signature may vary by a byte, and nothing else; a dialogue with another
        // number of commands was another one.
        let usual = rounds.first()?.len();
        rounds.retain(|round| round.len() == usual && usual > 0);
        let fitted = fit(&rounds)?;
        let [fixed, byte] = fitted.coefficients[..] else { return None };
        // A cost below nothing is no cost: then the bytes are in the commands.
        let byte = byte.filter(|byte| byte.low > 0.0);
        let fixed = match (fixed, byte) {
            (Some(fixed), Some(_)) if fixed.estimate >= 0.0 => fixed,
            _ => return None,
        };
        let observations = usual * rounds.len();
        Some(Self { fixed, byte, worst_residual: fitted.worst_residual, observations })
    }

    fn byte(&self) -> f64 {
        self.byte.map_or(0.0, |byte| byte.estimate)
    }

    fn parts(&self, exchange: &ApduExchange) -> Parts {
        let time = exchange.time.0 as f64;
        let commands = self.fixed.estimate.min(time);
        let transfer = (self.byte() * f64::from(exchange.bytes())).min(time - commands);
        Parts { commands, transfer, processing: time - commands - transfer }
    }

    /// The parts of a step of one dialogue.
    pub(crate) fn step(&self, log: &DialogueLog, step: DialogueStep) -> Parts {
        let of_step = log.exchanges.iter().filter(|exchange| exchange.step == step);
        of_step.map(|exchange| self.parts(exchange)).fold(Parts::default(), |sum, parts| Parts {
            commands: sum.commands + parts.commands,
            transfer: sum.transfer + parts.transfer,
            processing: sum.processing + parts.processing,
        })
    }

    /// As the record has it.
    pub(crate) fn cost(&self, operation: &str, logs: &[&DialogueLog]) -> record::Cost {
        let processing: Vec<f64> = logs
            .iter()
            .map(|log| log.exchanges.iter().map(|one| self.parts(one).processing).sum())
            .collect();
        let commands = logs.first().map_or(0, |log| log.exchanges.len() as u64);
        let n = commands as f64;
        let Estimate { estimate, low, high } = self.fixed;
        record::Cost {
            operation: operation.to_owned(),
            fixed_ns: record::Estimate { estimate: estimate * n, low: low * n, high: high * n },
            commands,
            byte_ns: self.byte.map(Into::into),
            set_up_ns: None,
            operation_ns: Estimate::mean_of(&processing).map(Into::into),
            operation_byte_ns: None,
            n: self.observations as u64,
            worst_residual: record::Fraction(self.worst_residual),
            method: "least squares over GET RESPONSE and chained commands of each round; what the \
                     others take beyond it is processing"
                .to_owned(),
        }
    }
}

/// Bytes that a command costs which only continues another: its header and Le, or its header and Lc,
/// and a status word.
const CONTINUATION: f64 = 5.0 + 2.0;

/// What a strategy should save, by one plain dialogue, in nanoseconds.
pub(crate) fn predicted(strategy: Strategy, log: &DialogueLog, model: Option<&Model>) -> f64 {
    let time = |step| log.step(step).unwrap_or_default().0 as f64;
    let [certificate, chuid, challenge, validate] = [
        DialogueStep::ReadCertificate,
        DialogueStep::ReadChuid,
        DialogueStep::Challenge,
        DialogueStep::Validate,
    ]
    .map(time);
    let whole = |steps: &[DialogueStep]| match strategy.lengths() {
        CommandLengths::Short => 0.0,
        CommandLengths::Extended => {
            steps.iter().map(|step| not_chained(*step, log, model)).sum::<f64>()
        }
    };
    let signing = [DialogueStep::Challenge, DialogueStep::ReadChuid];
    match strategy.way() {
        Strategy::NoChuid => chuid,
        // Of the CHUID only a start is read, which is whole as it is; validation is a look at what
        // is stored, so that there is nothing left to hide behind the card.
        Strategy::KnownCard => {
            certificate + chuid + validate - start_of_chuid(log, model)
                + whole(&[DialogueStep::Select, DialogueStep::Challenge])
        }
        Strategy::Overlap => {
            let read = whole(&[DialogueStep::Select, DialogueStep::ReadCertificate]);
            let sign = whole(&signing);
            read + sign + validate.min(challenge + chuid - sign)
        }
        Strategy::BackgroundValidation => validate,
        _ => whole(&[
            DialogueStep::Select,
            DialogueStep::ReadCertificate,
            DialogueStep::Challenge,
            DialogueStep::ReadChuid,
        ]),
    }
}

/// What a step takes for commands that only continue another: their own cost and the bytes around
/// their data, which travels all the same.
fn not_chained(step: DialogueStep, log: &DialogueLog, model: Option<&Model>) -> f64 {
    let Some(model) = model else { return 0.0 };
    let continues = |exchange: &&ApduExchange| exchange.step == step && exchange.is_transfer();
    let count = log.exchanges.iter().filter(continues).count() as f64;
    count * (model.fixed.estimate + CONTINUATION * model.byte())
}

/// The first command that reads the CHUID, with fewer bytes in its answer.
pub(crate) fn start_of_chuid(log: &DialogueLog, model: Option<&Model>) -> f64 {
    let first = log.exchanges.iter().find(|exchange| exchange.step == DialogueStep::ReadChuid);
    let byte = model.map_or(0.0, Model::byte);
    first.map_or(0.0, |first| {
        let fewer = (f64::from(first.received) - CHUID_START).max(0.0);
        first.time.0 as f64 - byte * fewer
    })
}
