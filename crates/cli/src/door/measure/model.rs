//! What a model of the door says of each strategy, held against what it took.

use clap::Args;
use tapstone_door::Scenario;
use tapstone_piv::{AuthenticationMechanism, CommandLengths, Strategy};
use tapstone_record::{ModelPrediction, Record, ScenarioName};

use crate::door::scenario::read_scenario;

/// The model that the measurement is held against.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArguments {
    /// A scenario of `door budget`: what it says of each strategy is set beside what it took
    #[arg(long, value_name = "SCENARIO", help_heading = "Model")]
    model: Option<String>,
    /// The changes that make the scenario's card to the one in the reader: algorithm:ecc-p256
    #[arg(
        long,
        value_name = "CHANGE",
        value_delimiter = ',',
        requires = "model",
        help_heading = "Model"
    )]
    model_with: Vec<String>,
}

/// A scenario, and the changes of its card.
pub(super) struct DoorModel {
    name: String,
    scenario: Scenario,
    card: Vec<String>,
}

impl ModelArguments {
    pub(super) const fn is_named(&self) -> bool {
        self.model.is_some()
    }

    /// The model, if one is named; its changes are known to go together.
    pub(super) fn open(&self) -> anyhow::Result<Option<DoorModel>> {
        let Some(name) = &self.model else { return Ok(None) };
        let scenario = read_scenario(name)?;
        scenario.clone().with_changes(&self.model_with)?;
        Ok(Some(DoorModel { name: name.clone(), scenario, card: self.model_with.clone() }))
    }
}

impl DoorModel {
    /// What it says of each way that was measured and that it can tell, in the order of the cases.
    pub(super) fn predictions(
        &self,
        record: &Record,
        mechanisms: &[AuthenticationMechanism],
    ) -> Vec<ModelPrediction> {
        let one = |mechanism: &AuthenticationMechanism| {
            let AuthenticationMechanism::PkiCak(strategy) = mechanism else { return None };
            let changes = [&self.card[..], &changes_of(*strategy)?].concat();
            let scenario = self.scenario.clone().with_changes(&changes).ok()?;
            let operation = match strategy {
                Strategy::Plain => "door.pki-cak".to_owned(),
                strategy => format!("door.pki-cak [{strategy}]"),
            };
            let case = record.results.iter().find(|case| case.operation == operation)?;
            let executed = case.latency_ns.as_ref()?.mean?;
            let predicted = scenario.path.total_with_self_check().nanos();
            Some(ModelPrediction {
                operation,
                scenario: ScenarioName { name: self.name.clone(), title: scenario.title },
                changes,
                predicted_ns: predicted,
                measured_ns: executed,
                relative_error: predicted / executed.estimate - 1.0,
            })
        };
        mechanisms.iter().filter_map(one).collect()
    }
}

/// A strategy as the model's changes; `None` where the model has none for it.
fn changes_of(strategy: Strategy) -> Option<Vec<String>> {
    let mut changes: Vec<&str> = match strategy.way() {
        Strategy::NoChuid => return None,
        Strategy::KnownCard => vec!["known-card"],
        Strategy::Overlap => vec!["overlap"],
        Strategy::BackgroundValidation => vec!["background-validation"],
        _ => Vec::new(),
    };
    if strategy.lengths() == CommandLengths::Extended {
        changes.push("extended-length");
    }
    Some(changes.into_iter().map(str::to_owned).collect())
}
