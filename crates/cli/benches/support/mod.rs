//! a controller on the null module, and the case that is measured on it.

mod rounds;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_measure::loop_overhead::loop_overhead_ns;
use tapstone_measure::summary::Summary;
use tapstone_measure::units::Nanos;
use tapstone_pin::Pin;
use tapstone_token::catalogue::Catalogue;
use tapstone_token::controller::{
    CasePlan, CaseProgress, CaseStop, Common, KeyCount, KeysPlan, LanePlan, LoadPlan, TokenChoice,
    TokenController, TokenObserver, TokenOptions, WorkerCommand,
};
use tapstone_token::protocol::Login;

pub(crate) use self::rounds::rounds;

/// The operation that is measured.
pub(crate) const OPERATION: &str = "rsa2048.sign";

/// The null module, built for this target by Cargo, beside it.
pub(crate) fn module() -> PathBuf {
    let own = std::env::current_exe().expect("a running program has a file");
    let mut places = own.ancestors().skip(1).take(2).map(|folder| folder.join("libnull_module.so"));
    places.find(|path| path.exists()).expect("cargo build -p null-module in the same profile")
}

/// a controller whose workers see these variables, `NAME=value`.
pub(crate) fn open(module: &Path, variables: &[&str]) -> TokenController {
    let program = env!("CARGO_BIN_EXE_tapstone");
    let arguments = variables.iter().copied().chain([program, "worker"]).map(str::to_owned);
    let options = TokenOptions {
        worker: WorkerCommand {
            program: "env".into(),
            arguments: arguments.collect(),
            hidden: Vec::new(),
        },
        module: module.to_owned(),
        module_arguments: None,
        tokens: vec![TokenChoice::Only],
        login: Login::Pin(Pin::new(b"1234".to_vec())),
        accept_low_count: false,
        timeout: Duration::from_secs(10),
        interrupt: Arc::default(),
        announce: |_| {},
    };
    TokenController::open(options).expect("the null module opens")
}

/// Measures one case with so many threads for so long.
pub(crate) fn measure(controller: &mut TokenController, threads: u32, window: Nanos) -> Summary {
    measure_told(controller, threads, window, &mut Nobody)
}

/// The same, of which somebody is told how it goes.
pub(crate) fn measure_told(
    controller: &mut TokenController,
    threads: u32,
    window: Nanos,
    observer: &mut dyn TokenObserver,
) -> Summary {
    let variant = Catalogue::builtin().select(OPERATION).expect("it is in the catalogue").remove(0);
    let plan = CasePlan {
        lanes: vec![LanePlan { variant, weight: 1 }],
        threads,
        processes: 1,
        hosts: 1,
        load: LoadPlan::Closed,
        stop: CaseStop::Seconds(window),
        keys: KeysPlan::Own { count: KeyCount::Shared, on_token: false },
        common: Common {
            verify: false,
            phases: false,
            samples: false,
            warm_up: Nanos::from_millis(50),
            max_failures: 1,
            reconnect: false,
            extra_objects: 0,
            idle_sessions: 0,
            seed: 1,
            clock_step: Precision::measure(&Monotonic).step,
            loop_cost_ns: loop_overhead_ns(&Monotonic),
        },
    };
    let outcome = controller.measure(&plan, observer, None);
    assert!(outcome.is_clean(), "{outcome:?}");
    outcome.summary.expect("a clean row has figures")
}

struct Nobody;

impl TokenObserver for Nobody {
    fn stage(&mut self, _: &str, _: &str) {}
    fn progress(&mut self, _: &str, _: &CaseProgress) {}
}
