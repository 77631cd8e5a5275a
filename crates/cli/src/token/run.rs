//! A run: its cases one after the other, and a record whatever happens.

use jiff::Timestamp;
use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::rounds::FEWEST_ROUNDS;
use tapstone_record as record;
use tapstone_record::Record;
use tapstone_text::Foreign;
use tapstone_token::catalogue::Catalogue;
use tapstone_token::controller::{
    CaseOutcome, CasePlan, LimitPlan, RoundsPlan, SampleSink, TokenController, TokenMeasureError,
    WithinSearchPlan, not_measured,
};

use super::arguments::{Arguments, Arrivals};
use super::cases::{TokenCases, token_cases};
use super::host_list::HostsOfRun;
use super::judge::{AskedClaim, Evidence, judge};
use super::leftovers;
use super::target::{self, NoHosts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::machine_load::LoadWatch;
use crate::print::{outln, say};
use crate::progress::Live;
use crate::samples::SamplesFile;
use crate::{command_line, environment, interrupt};

/// A search for the limit ends after this even where the rate still grows.
const LIMIT_TIME: std::time::Duration = std::time::Duration::from_secs(600);

/// Half the interval over the rate of a search within a bound: at a quantile it costs more arrivals
/// than a mean does.
const WITHIN_PRECISION: f64 = 0.03;

pub(super) fn measure_token(arguments: Arguments) -> anyhow::Result<Exit> {
    if arguments.what.list_operations {
        list();
        return Ok(Exit::Done);
    }
    // The environment may name a module for runs on this machine; who types one means it.
    let typed = arguments.target.module.is_some() && std::env::var_os("TAPSTONE_MODULE").is_none();
    if arguments.hosts.hosts.is_some() && typed {
        anyhow::bail!(
            "--module is of no use with --hosts\nhint: each agent's configuration names its module"
        );
    }
    let precision = Precision::measure(&Monotonic);
    let cases = token_cases(&arguments, precision.step)?;
    let samples = samples_file(&arguments, &cases)?;
    arguments.output.shared.check()?;
    let socket = arguments.output.live.bind()?;
    let interrupt = interrupt::flag_on_signals()?;
    let environment = environment::observe(precision);
    let started_at = Timestamp::now();
    let nothing = record::Target::new(record::TargetKind::Token);
    let tool =
        record::Tool { name: "tapstone".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let mut record = Record::new(tool, started_at, environment, nothing);
    // No secret is ever an argument.
    record.command = command_line::words();
    let (controller, watch) = match arguments.hosts.hosts {
        None => {
            let mut controller = target::open(&arguments, interrupt)?;
            leftovers::remove_keys_of_dead_runs(&mut controller)?;
            (controller, None)
        }
        Some(count) => match target::open_on_hosts(&arguments, count, interrupt) {
            Ok((controller, watch)) => (controller, Some(watch)),
            Err(why) => return without_hosts(&arguments, &cases, record, why),
        },
    };
    record.target = target::describe(&controller, watch.as_ref());
    let live = Live::new(arguments.output.shared.quiet, socket);
    let mut session = Session {
        arguments: &arguments,
        controller,
        record,
        live,
        samples,
        machine: LoadWatch::start(),
        exit: Exit::Done,
        hosts: watch.map(HostsOfRun::new),
    };
    session.measure(&cases)?;
    session.end()
}

/// A run that could not begin says in a record who was missing.
fn without_hosts(
    arguments: &Arguments,
    cases: &TokenCases,
    mut record: Record,
    why: NoHosts,
) -> anyhow::Result<Exit> {
    if why.hosts.is_empty() {
        return Err(why.error);
    }
    say!("error: {}", Failure(&why.error));
    record.hosts = why.hosts;
    for case in &cases.cases {
        let host = arguments.hosts.target.clone().unwrap_or_default();
        let error = TokenMeasureError::Host { host, text: why.error.to_string() };
        record.results.extend(not_measured(case, error).cases);
    }
    arguments.output.shared.put(&record)?;
    Ok(Exit::NotMeasured)
}

fn list() {
    for variant in Catalogue::builtin().variants() {
        outln!("{:32}  {}", variant.name, variant.description);
    }
}

fn samples_file(arguments: &Arguments, cases: &TokenCases) -> anyhow::Result<Option<SamplesFile>> {
    let Some(path) = arguments.output.samples.clone() else { return Ok(None) };
    let lanes = cases.cases.iter().flat_map(|case| &case.lanes);
    let names = lanes.map(|lane| lane.variant.name.clone()).collect();
    SamplesFile::create(path, names).map(Some)
}

struct Session<'a> {
    arguments: &'a Arguments,
    controller: TokenController,
    record: Record,
    live: Live,
    samples: Option<SamplesFile>,
    machine: LoadWatch,
    exit: Exit,
    hosts: Option<HostsOfRun>,
}

impl Session<'_> {
    fn measure(&mut self, cases: &TokenCases) -> anyhow::Result<()> {
        for (index, case) in cases.cases.iter().enumerate() {
            let later = cases.longest_after(index, self.arguments.what.rounds.is_some());
            self.live.begin_case(index + 1, cases.cases.len(), later);
            let in_rounds = cases.claims_about(case) || self.arguments.what.rounds.is_some();
            let outcome = match (cases.find_limit, in_rounds) {
                (true, true) => self.search_and_judge(cases, case)?,
                (true, false) => match self.arguments.limit.within {
                    Some(bound) => self.find_rate_within(cases, case, bound),
                    None => self.search(&cases.level(case)),
                },
                (false, true) => self.measure_in_rounds(cases, case)?,
                (false, false) => {
                    let samples = self.samples.as_mut().map(|file| file as &mut dyn SampleSink);
                    self.controller.measure(case, &mut self.live, samples)
                }
            };
            let interrupted = outcome.interrupted;
            self.take(outcome, cases.named);
            if interrupted {
                self.record
                    .warnings
                    .push("the run was interrupted: later cases were not measured".into());
                self.exit = Exit::NotMeasured;
                break;
            }
        }
        Ok(())
    }

    /// A claim about the most that the device gives: the best level of a search is measured again,
    /// because the luckiest of many levels promises too much.
    fn search_and_judge(
        &mut self,
        cases: &TokenCases,
        case: &CasePlan,
    ) -> anyhow::Result<CaseOutcome> {
        let level = cases.level(case);
        let mut shown = self.search(&level);
        let best = shown.cases.first().filter(|_| shown.is_clean() && !shown.interrupted);
        let best = best.map(|case| CasePlan {
            threads: case.concurrency.threads,
            processes: case.concurrency.processes,
            hosts: case.concurrency.hosts,
            ..level
        });
        let plan = self.rounds_plan(cases, case);
        let rounds =
            best.map(|best| self.controller.measure_rounds(&best, plan, &mut self.live, None));
        let evidence = Evidence { shown: &shown, rounds: rounds.as_ref(), searched: true };
        self.judge_claims(cases, case, &evidence)?;
        if let Some(rounds) = rounds {
            shown.interrupted |= rounds.shown.interrupted;
            shown.trouble.extend(rounds.shown.trouble);
        }
        Ok(shown)
    }

    fn measure_in_rounds(
        &mut self,
        cases: &TokenCases,
        case: &CasePlan,
    ) -> anyhow::Result<CaseOutcome> {
        let plan = self.rounds_plan(cases, case);
        let round = cases.round(case, plan.fewest);
        let samples = self.samples.as_mut().map(|file| file as &mut dyn SampleSink);
        let rounds = self.controller.measure_rounds(&round, plan, &mut self.live, samples);
        let evidence = Evidence { shown: &rounds.shown, rounds: Some(&rounds), searched: false };
        self.judge_claims(cases, case, &evidence)?;
        Ok(rounds.shown)
    }

    fn rounds_plan(&self, cases: &TokenCases, case: &CasePlan) -> RoundsPlan {
        RoundsPlan {
            fewest: self.arguments.what.rounds.unwrap_or(FEWEST_ROUNDS),
            precision: self.arguments.load.precision(),
            ends_when_disturbed: cases.claims_about(case),
        }
    }

    fn search(&mut self, level: &CasePlan) -> CaseOutcome {
        let limits = LimitPlan {
            max_threads: self.arguments.limit.max_threads,
            max_processes: self.arguments.limit.max_processes,
            max_hosts: self.arguments.hosts.hosts.unwrap_or(1),
            time: self.arguments.load.max_time.map_or(LIMIT_TIME, Into::into),
        };
        let limit = self.controller.find_limit(level, limits, &mut self.live);
        match limit.knee {
            Some(knee) if self.record.knee.is_none() => self.record.knee = Some(knee),
            Some(knee) => self.record.warnings.push(format!(
                "the levels of {} are not in this record, which holds one search: run it alone",
                knee.operation
            )),
            None => {}
        }
        limit.outcome
    }

    /// The highest rate whose latency stays within the bound.
    fn find_rate_within(
        &mut self,
        cases: &TokenCases,
        case: &CasePlan,
        bound: LatencyBound,
    ) -> CaseOutcome {
        let load = &self.arguments.load;
        let search = WithinSearchPlan {
            bound,
            precision: load.precision.unwrap_or(WITHIN_PRECISION),
            poisson: load.arrivals != Some(Arrivals::Constant),
            threads: self.arguments.limit.max_threads,
            time: load.max_time.map(Into::into),
        };
        let plan = CasePlan { processes: load.processes, ..cases.level(case) };
        let found = self.controller.find_rate_within(&plan, search, &mut self.live);
        if let Some(within) = found.within {
            if within.outcome == record::RateWithinOutcome::Unknown {
                self.exit = Exit::NotMeasured;
            }
            match &self.record.rate_within {
                None => self.record.rate_within = Some(within),
                Some(_) => self.record.warnings.push(format!(
                    "the levels of {} are not in this record, which holds one search: run it alone",
                    within.operation
                )),
            }
        }
        found.outcome
    }

    fn judge_claims(
        &mut self,
        cases: &TokenCases,
        case: &CasePlan,
        evidence: &Evidence<'_>,
    ) -> anyhow::Result<()> {
        for (claim, text) in cases.claims.iter().zip(&self.arguments.what.claim) {
            if claim.case == case.name() {
                let judged = judge(&AskedClaim { text, claim }, case, evidence)?;
                self.exit = self.exit.max(match judged.verdict {
                    record::Verdict::Met => Exit::Done,
                    record::Verdict::Missed | record::Verdict::Undecided => Exit::Missed,
                    record::Verdict::Void => Exit::NotMeasured,
                });
                self.record.claims.push(judged);
            }
        }
        Ok(())
    }

    fn take(&mut self, outcome: CaseOutcome, named: bool) {
        for trouble in &outcome.trouble {
            self.live.say(&format!("error: {trouble}"));
        }
        // A suite asks what a token can do: what it cannot is an answer.
        let answered = outcome.is_unsupported() && !named && outcome.trouble.is_empty();
        if !outcome.is_clean() && !answered {
            self.exit = Exit::NotMeasured;
        }
        self.record.results.extend(outcome.cases);
        if let Some(hosts) = &mut self.hosts {
            hosts.take(outcome.hosts, &outcome.trouble);
        }
    }

    fn end(mut self) -> anyhow::Result<Exit> {
        self.live.end();
        // Hosts clean up as they leave, and can be lost at that, too.
        self.controller.close();
        if let Some(hosts) = self.hosts.take() {
            for error in hosts.lost_untold() {
                say!("error: {}", Foreign::with_lines(error.to_string()));
            }
            self.record.hosts = hosts.for_record();
            if self.record.hosts.iter().any(|host| host.state == record::HostState::Lost) {
                self.exit = Exit::NotMeasured;
            }
        }
        self.machine.add_to(&mut self.record.environment.load);
        if let Some(samples) = self.samples.take() {
            match samples.finish() {
                Ok(file) => self.record.samples = Some(file),
                Err(error) => {
                    say!("error: {}", Failure(&error));
                    self.exit = Exit::NotMeasured;
                }
            }
        }
        // Whoever looks on may take the record slowly: it is written first.
        let put = self.arguments.output.shared.put(&self.record);
        self.live.finish(&self.record);
        put?;
        Ok(self.exit)
    }
}
