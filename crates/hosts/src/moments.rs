//! Moments in tasks and reports, from our clock to an agent's and back. Everything else in them
//! counts from the window's opening, which is one of these moments.

use tapstone_measure::units::Nanos;
use tapstone_token::protocol::{Report, Task};

use crate::clock::{here, there};

/// A task with its moments on the agent's clock.
pub(crate) fn to_agent(task: Task, offset_ns: i64) -> Task {
    match task {
        Task::Start { at } => Task::Start { at: there(at, offset_ns) },
        Task::Open { at, closes } => Task::Open {
            at: there(at, offset_ns),
            closes: closes.map(|closes| there(closes, offset_ns)),
        },
        Task::Close { at } => Task::Close { at: there(at, offset_ns) },
        task => task,
    }
}

/// A report with its moments on our clock.
pub(crate) fn from_agent(mut report: Report, offset_ns: i64) -> Report {
    let back = |moment: &mut Nanos| *moment = here(*moment, offset_ns);
    match &mut report {
        Report::Opened { from } => back(from),
        Report::Samples(samples) => samples.iter_mut().for_each(|sample| back(&mut sample.start)),
        Report::Done(done) => {
            for thread in &mut done.threads {
                for lane in &mut thread.lanes {
                    lane.first_end.iter_mut().chain(&mut lane.last_end).for_each(back);
                }
                thread.outages.iter_mut().for_each(|outage| back(&mut outage.start));
            }
        }
        _ => {}
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_go_ahead_and_reports_come_back() {
        let task = Task::Open { at: Nanos(100), closes: Some(Nanos(300)) };
        let Task::Open { at, closes } = to_agent(task, 50) else { unreachable!("it stays one") };
        assert_eq!((at, closes), (Nanos(150), Some(Nanos(350))));
        let report = from_agent(Report::Opened { from: Nanos(150) }, 50);
        assert!(matches!(report, Report::Opened { from: Nanos(100) }));
    }
}
