//! What a user of the application waits for.
//!
//! Four rules, the first that fits: what the user called one; a thread's calls between two waits
//! outside; one session; one operation.

use std::collections::BTreeMap;
use std::fmt;

use tapstone_measure::units::Nanos;

use crate::model::Workload;
use crate::operations::{TokenOperation, operations};

/// By which rule a workload was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionRule {
    /// The operation that the user named when it was recorded.
    Named(String),
    /// A thread's calls between two waits outside.
    BetweenWaits,
    /// All calls of a session.
    Session,
    /// Each operation is one.
    Operation,
}

impl fmt::Display for TransactionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "one {name}, as --operation said"),
            Self::BetweenWaits => f.write_str("a thread's calls between two waits outside"),
            Self::Session => f.write_str("all calls of one session"),
            Self::Operation => f.write_str("one operation"),
        }
    }
}

/// A stretch of a thread, or of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// A place among the workload's threads.
    pub thread: usize,
    /// When its first call began, since the program's start.
    pub start: Nanos,
    /// When its last call ended.
    pub end: Nanos,
    /// How many calls are in it.
    pub calls: u32,
    /// False: it is an operation that was begun, and never came to a result or a failure.
    pub is_ended: bool,
    /// A call of it failed in a replay, and not when it was recorded: its time is none of such a
    /// transaction's.
    pub fails_anew: bool,
}

/// A workload that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transactions {
    /// By which rule it was.
    pub rule: TransactionRule,
    /// Those that came to their end, in the order of their beginnings within each thread.
    pub list: Vec<Transaction>,
}

/// Cuts a workload into transactions by the first rule that gives any.
#[must_use]
pub fn transactions(workload: &Workload) -> Transactions {
    if let Some(name) = &workload.head.transaction {
        let rule = TransactionRule::Named(name.clone());
        return Transactions { list: ended(&rule, workload), rule };
    }
    for rule in [TransactionRule::BetweenWaits, TransactionRule::Session] {
        let list = transactions_by(&rule, workload);
        // One session is the whole program.
        if list.len() > usize::from(rule == TransactionRule::Session) {
            return Transactions { rule, list };
        }
    }
    let rule = TransactionRule::Operation;
    Transactions { list: ended(&rule, workload), rule }
}

fn ended(rule: &TransactionRule, workload: &Workload) -> Vec<Transaction> {
    transactions_by(rule, workload).into_iter().filter(|it| it.is_ended).collect()
}

/// Cuts a workload by a rule, such as the one by which another was cut that it is compared with. All
/// are in it, whatever came of them.
#[must_use]
pub fn transactions_by(rule: &TransactionRule, workload: &Workload) -> Vec<Transaction> {
    match rule {
        TransactionRule::Named(name) => {
            let all = operations(workload);
            all.iter().filter(|it| it.kind.function == name).map(of_operation).collect()
        }
        TransactionRule::BetweenWaits => between_waits(workload),
        TransactionRule::Session => by_session(workload),
        TransactionRule::Operation => operations(workload).iter().map(of_operation).collect(),
    }
}

fn of_operation(operation: &TokenOperation) -> Transaction {
    let TokenOperation { thread, start, end, calls, is_ended, fails_anew, .. } = *operation;
    Transaction { thread, start, end, calls, is_ended, fails_anew }
}

/// Stretches that begin after a wait. What a thread does before its first wait is its preparation.
fn between_waits(workload: &Workload) -> Vec<Transaction> {
    let mut list: Vec<Transaction> = Vec::new();
    for (thread, known) in workload.threads.iter().enumerate() {
        let mut is_within = false;
        for (begin, call) in known.timed_calls() {
            let end = Nanos(begin.0.saturating_add(call.duration.0));
            if call.after_wait {
                let (start, fails_anew) = (begin - call.held_up, call.fails_anew);
                list.push(Transaction { thread, start, end, calls: 1, is_ended: true, fails_anew });
                is_within = true;
            } else if let Some(last) = list.last_mut().filter(|_| is_within) {
                last.end = end;
                last.calls += 1;
                last.fails_anew |= call.fails_anew;
            }
        }
    }
    list
}

/// Sessions that did an operation's work: more than being opened, asked about and closed.
fn by_session(workload: &Workload) -> Vec<Transaction> {
    let mut sessions: BTreeMap<u32, (Transaction, bool)> = BTreeMap::new();
    for (thread, known) in workload.threads.iter().enumerate() {
        for (begin, call) in known.timed_calls().filter(|(_, call)| call.session != 0) {
            let end = Nanos(begin.0.saturating_add(call.duration.0));
            let none = Transaction {
                thread,
                start: begin,
                end,
                calls: 0,
                is_ended: true,
                fails_anew: false,
            };
            let new = (none, false);
            let (one, works) = sessions.entry(call.session).or_insert(new);
            one.start = one.start.min(begin - call.held_up);
            one.end = one.end.max(end);
            one.calls += 1;
            one.fails_anew |= call.fails_anew;
            *works |= call.mechanism.is_some();
        }
    }
    sessions.into_values().filter(|(_, works)| *works).map(|(one, _)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{WorkloadCall, WorkloadThread};

    fn sign(session: u32, after_wait: bool) -> [WorkloadCall; 2] {
        let begin = WorkloadCall {
            session,
            mechanism: Some(1),
            after_wait,
            waiting: Nanos(u64::from(after_wait) * 500),
            duration: Nanos(10),
            ..WorkloadCall::named("C_SignInit")
        };
        let work = WorkloadCall { session, duration: Nanos(90), ..WorkloadCall::named("C_Sign") };
        [begin, work]
    }

    fn workload(calls: Vec<WorkloadCall>) -> Workload {
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        Workload { threads, ..Workload::default() }
    }

    #[test]
    fn what_lies_between_waits_is_one_and_what_comes_before_is_none() {
        let calls = [sign(1, false), sign(1, true), sign(1, false), sign(1, true)].concat();
        let cut = transactions(&workload(calls));
        assert_eq!(cut.rule, TransactionRule::BetweenWaits);
        let times: Vec<u64> = cut.list.iter().map(|it| it.end.0 - it.start.0).collect();
        assert_eq!(times, [200, 100]);
    }

    #[test]
    fn without_waits_it_is_the_session_and_with_one_session_the_operation() {
        let two = workload([sign(1, false), sign(2, false), sign(2, false)].concat());
        let cut = transactions(&two);
        assert_eq!((cut.rule, cut.list.len()), (TransactionRule::Session, 2));
        let one = workload([sign(1, false), sign(1, false)].concat());
        let cut = transactions(&one);
        assert_eq!((cut.rule, cut.list.len()), (TransactionRule::Operation, 2));
    }

    #[test]
    fn what_the_user_named_goes_before_all() {
        let mut named = workload([sign(1, true), sign(2, true)].concat());
        named.head.transaction = Some("C_Sign".to_owned());
        let cut = transactions(&named);
        assert_eq!((cut.rule, cut.list.len()), (TransactionRule::Named("C_Sign".into()), 2));
    }
}
