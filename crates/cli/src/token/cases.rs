//! The cases of a run: what the options mean together.

use anyhow::{Context, bail};
use tapstone_files::{FileLimit, read_text};
use tapstone_measure::claim::Claim;
use tapstone_measure::clock::Monotonic;
use tapstone_measure::loop_overhead::loop_overhead_ns;
use tapstone_measure::units::Nanos;
use tapstone_token::catalogue::{Catalogue, Shape, Suite, SuiteCase, Variant};
use tapstone_token::controller::{
    CasePlan, CaseStop, Common, KeyCount, KeysPlan, LanePlan, LoadPlan,
};

use super::arguments::{Arguments, Arrivals};

/// Everything that is to be measured.
pub(super) struct TokenCases {
    pub(super) cases: Vec<CasePlan>,
    pub(super) claims: Vec<Claim>,
    /// The user named what to measure: what the token lacks is then an error.
    pub(super) named: bool,
    /// Look for the limit of each case.
    pub(super) find_limit: bool,
}

/// The longest window of a case whose precision is not reached.
const MAX_TIME: Nanos = Nanos::from_secs(60);

/// The same in a suite, which is to be over in three minutes.
const MAX_TIME_IN_SUITE: Nanos = Nanos::from_secs(5);

/// A level of a search for the limit, unless the user says otherwise: there are dozens of them.
const LEVEL_TIME: Nanos = Nanos::from_secs(1);

/// Settles which cases are measured, from arguments, suite and claims.
pub(super) fn token_cases(arguments: &Arguments, clock_step: Nanos) -> anyhow::Result<TokenCases> {
    let claims: Vec<Claim> =
        arguments.what.claim.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let maker =
        CaseFigures { arguments, common: common(arguments, clock_step), keys: keys(arguments)? };
    // A claim without a load is about the limit; with --op or --threads it is about that.
    let limit_by_claim = !claims.is_empty()
        && arguments.load.threads.is_none()
        && arguments.load.rate.is_none()
        && arguments.load.count.is_none();
    let what = &arguments.what;
    let mut cases = if !what.mix.is_empty() {
        vec![maker.mix()?]
    } else if let Some(path) = &what.suite {
        let text = read_text(path, FileLimit::TOML).map_err(|error| {
            anyhow::anyhow!("{}: {error}\nhint: --suite takes a TOML file", path.display())
        })?;
        maker.suite(Suite::parse(&path.display().to_string(), &text)?)
    } else if !what.op.is_empty() {
        maker.operations(&what.op)?
    } else if !claims.is_empty() {
        Vec::new()
    } else {
        maker.suite(Catalogue::builtin().default_suite())
    };
    for claim in &claims {
        if !cases.iter().any(|case| case.name() == claim.case) {
            cases.extend(maker.operations(std::slice::from_ref(&claim.case))?);
        }
    }
    check(&cases)?;
    if arguments.limit.find_limit && claims.is_empty() && what.rounds.is_some() {
        bail!(
            "--rounds repeats a case, and --find-limit looks for one\n\
             hint: with --claim the best level of the search is repeated"
        );
    }
    Ok(TokenCases {
        cases,
        claims,
        named: !what.op.is_empty() || !what.mix.is_empty() || !what.claim.is_empty(),
        find_limit: arguments.limit.find_limit
            || limit_by_claim && what.mix.is_empty() && what.suite.is_none(),
    })
}

struct CaseFigures<'a> {
    arguments: &'a Arguments,
    common: Common,
    keys: KeysPlan,
}

impl CaseFigures<'_> {
    fn operations(&self, names: &[String]) -> anyhow::Result<Vec<CasePlan>> {
        let mut cases = Vec::new();
        for name in names {
            for variant in Catalogue::builtin().select(name)? {
                for variant in self.sized(variant)? {
                    cases.push(
                        self.case_plan(vec![LanePlan { variant, weight: 1 }], self.stop(MAX_TIME)),
                    );
                }
            }
        }
        Ok(cases)
    }

    /// The operation at each size asked for; at its own where none was, or where `.*` named
    /// operations whose size is fixed.
    fn sized(&self, variant: Variant) -> anyhow::Result<Vec<Variant>> {
        let sizes = &self.arguments.what.size;
        if sizes.is_empty() {
            return Ok(vec![variant]);
        }
        let sized = sizes.iter().map(|size| variant.clone().with_message_bytes(*size));
        Ok(sized.collect::<Result<_, _>>()?)
    }

    fn mix(&self) -> anyhow::Result<CasePlan> {
        let mut lanes = Vec::new();
        for part in &self.arguments.what.mix {
            let (name, weight) = part.split_once('=').with_context(|| {
                format!("--mix {part}: no weight\nhint: write NAME=WEIGHT, rsa2048.sign=70")
            })?;
            let weight: u32 = weight
                .parse()
                .ok()
                .filter(|weight| (1..=1_000_000).contains(weight))
                .with_context(|| {
                    format!("--mix {part}: no such weight\nhint: a number from 1 to 1,000,000")
                })?;
            for variant in Catalogue::builtin().select(name)? {
                lanes.push(LanePlan { variant, weight });
            }
        }
        if lanes.len() < 2 {
            bail!("--mix needs at least two operations\nhint: --op measures one");
        }
        Ok(self.case_plan(lanes, self.stop(MAX_TIME)))
    }

    fn suite(&self, suite: Suite) -> Vec<CasePlan> {
        suite.cases.into_iter().flat_map(|case| self.suite_cases(case)).collect()
    }

    /// The command line goes before the file.
    fn suite_cases(&self, case: SuiteCase) -> Vec<CasePlan> {
        let stop = match (self.fixed_stop(), case.window, case.count) {
            (Some(stop), ..) => stop,
            (None, Some(window), _) => CaseStop::Seconds(window),
            (None, None, Some(count)) => CaseStop::Count(count),
            (None, None, None) => self.stop(MAX_TIME_IN_SUITE),
        };
        let threads = match self.arguments.load.threads {
            Some(threads) => vec![threads],
            None => case.threads.iter().map(|threads| threads.get()).collect(),
        };
        let mut cases = Vec::new();
        for variant in case.variants {
            for &threads in &threads {
                let lane = LanePlan { variant: variant.clone(), weight: 1 };
                cases.push(CasePlan { threads, ..self.case_plan(vec![lane], stop) });
            }
        }
        cases
    }

    fn case_plan(&self, lanes: Vec<LanePlan>, stop: CaseStop) -> CasePlan {
        let load = &self.arguments.load;
        CasePlan {
            lanes,
            threads: load.threads.unwrap_or(1),
            processes: load.processes,
            hosts: self.arguments.hosts.hosts.unwrap_or(1),
            load: match load.rate {
                Some(rate) => {
                    LoadPlan::Open { rate, poisson: load.arrivals == Some(Arrivals::Poisson) }
                }
                None if load.chained_clock => LoadPlan::Chained,
                None => LoadPlan::Closed,
            },
            stop,
            keys: self.keys.clone(),
            common: self.common.clone(),
        }
    }

    fn fixed_stop(&self) -> Option<CaseStop> {
        let load = &self.arguments.load;
        load.seconds.or(load.duration).map(CaseStop::Seconds).or(load.count.map(CaseStop::Count))
    }

    fn stop(&self, longest: Nanos) -> CaseStop {
        let load = &self.arguments.load;
        let longest = load.max_time.unwrap_or(longest);
        self.fixed_stop().unwrap_or(CaseStop::Precision { relative: load.precision(), longest })
    }
}

impl TokenCases {
    /// Whether something is claimed about a case.
    pub(super) fn claims_about(&self, case: &CasePlan) -> bool {
        self.claims.iter().any(|claim| claim.case == case.name())
    }

    /// The longest that the cases after this one take together; `None` where that is not known
    /// beforehand, as with a search.
    pub(super) fn longest_after(&self, index: usize, in_rounds: bool) -> Option<Nanos> {
        if self.find_limit || in_rounds {
            return None;
        }
        let longest = |case: &CasePlan| match case.stop {
            _ if self.claims_about(case) => None,
            CaseStop::Seconds(window) => Some(window + case.common.warm_up),
            CaseStop::Precision { longest, .. } => Some(longest + case.common.warm_up),
            CaseStop::Count(_) => None,
        };
        let later = self.cases.iter().skip(index + 1);
        later.map(longest).try_fold(Nanos::ZERO, |sum, one| Some(sum + one?))
    }

    /// The same case as a level of a search for the limit.
    pub(super) fn level(&self, case: &CasePlan) -> CasePlan {
        let stop = match case.stop {
            CaseStop::Seconds(window) => CaseStop::Seconds(window),
            CaseStop::Precision { .. } | CaseStop::Count(_) => CaseStop::Seconds(LEVEL_TIME),
        };
        CasePlan { stop, threads: 1, processes: 1, hosts: 1, ..case.clone() }
    }

    /// The same case as one of `rounds`, which share the time that it would have.
    pub(super) fn round(&self, case: &CasePlan, rounds: usize) -> CasePlan {
        let stop = match case.stop {
            CaseStop::Precision { relative, longest } => {
                CaseStop::Precision { relative, longest: Nanos(longest.0 / rounds as u64) }
            }
            fixed => fixed,
        };
        CasePlan { stop, ..case.clone() }
    }
}

fn common(arguments: &Arguments, clock_step: Nanos) -> Common {
    Common {
        verify: !arguments.keys.no_verify,
        phases: arguments.output.phases,
        samples: arguments.output.samples.is_some(),
        warm_up: arguments.load.warm_up,
        max_failures: arguments.endurance.max_failures,
        reconnect: arguments.endurance.reconnect,
        extra_objects: arguments.keys.key_count,
        idle_sessions: arguments.keys.idle_sessions,
        seed: arguments.load.seed,
        clock_step,
        loop_cost_ns: loop_overhead_ns(&Monotonic),
    }
}

fn keys(arguments: &Arguments) -> anyhow::Result<KeysPlan> {
    let keys = &arguments.keys;
    if keys.key_label.is_some() || keys.key_id.is_some() {
        let id = keys.key_id.clone().map(|id| id.0);
        return Ok(KeysPlan::Existing { label: keys.key_label.clone(), id });
    }
    let count = match keys.keys.as_str() {
        "shared" => KeyCount::Shared,
        "per-worker" => KeyCount::PerWorker,
        number => match number.parse() {
            Ok(number @ 1..=10_000) => KeyCount::Number(number),
            _ => bail!("--keys {number}\nhint: shared, per-worker, or a number from 1 to 10,000"),
        },
    };
    Ok(KeysPlan::Own { count, on_token: keys.token_keys })
}

/// What cannot be measured in the way that was asked for.
fn check(cases: &[CasePlan]) -> anyhow::Result<()> {
    for case in cases {
        let login = case.lanes.iter().any(|lane| lane.variant.shape == Shape::Login);
        if login && (case.threads > 1 || case.lanes.len() > 1) {
            bail!(
                "login is measured alone, with one thread in a process: a login belongs to the \
                 whole process\nhint: use --processes"
            );
        }
        if let CaseStop::Count(count) = case.stop
            && count < u64::from(case.threads * case.processes * case.hosts)
        {
            bail!(
                "--count {count} is less than one operation for each worker\n\
                 hint: fewer threads or processes, or a larger count"
            );
        }
    }
    Ok(())
}
