//! A conversation with real processes: they answer, crash, hang, write what is no report, and are
//! ended. This program is its own worker, so it has no harness that would print into the pipe.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tapstone_worker::{
    Board, Conversation, Heard, Interrupt, Lost, OnInterrupt, RemoteWorker, ReportSender, Timeouts,
    Unanswered, WorkerCommand, WorkerProtocol, private_pipes, receive, send,
};

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Open { board: PathBuf },
    Echo(u32),
    Count(u32),
    Hang { call: u8, thread: usize },
    Crash,
    Babble,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Work,
    Wait,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

enum Toy {}

impl WorkerProtocol for Toy {
    type Order = Order;
    type Task = Order;
    type Report = u32;
    type Call = Call;

    fn call_of_number(number: u8) -> Option<Call> {
        match number {
            1 => Some(Call::Work),
            2 => Some(Call::Wait),
            _ => None,
        }
    }

    fn waits_for_others(call: Call) -> bool {
        call == Call::Wait
    }
}

/// The worker's side.
fn serve() {
    let (mut orders, mut reports) = private_pipes().unwrap();
    let mut board = None;
    while let Some(order) = receive(&mut orders).unwrap() {
        match order {
            Order::Open { board: path } => {
                board = Some(Board::open(&path).unwrap());
                send(&mut reports, &0).unwrap();
            }
            Order::Echo(number) => send(&mut reports, &number).unwrap(),
            Order::Count(to) => (0..=to).for_each(|number| send(&mut reports, &number).unwrap()),
            Order::Hang { call, thread } => {
                board.as_ref().unwrap().cell(thread).enter(call, 1);
                thread::sleep(Duration::from_secs(600));
            }
            Order::Crash => {
                board.as_ref().unwrap().cell(0).enter(1, 1);
                std::process::abort();
            }
            Order::Babble => reports.write_all(&[0xFF; 16]).unwrap(),
        }
    }
}

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);

const PATIENT: Timeouts = Timeouts { call: LONG, waiting_call: LONG, clean_up: LONG };

type Toys = Conversation<Toy>;

fn toys(timeouts: Timeouts) -> Toys {
    interruptible(timeouts, OnInterrupt::GiveUp, &Arc::default())
}

fn interruptible(timeouts: Timeouts, policy: OnInterrupt, flag: &Arc<AtomicBool>) -> Toys {
    Conversation::new(timeouts, Interrupt::new(Arc::clone(flag), policy))
}

/// Starts a worker that is ready for orders.
fn start(toys: &mut Toys) -> usize {
    let program = std::env::current_exe().unwrap();
    let arguments = vec!["worker".to_owned()];
    let number = toys.start(&WorkerCommand { program, arguments, hidden: Vec::new() }).unwrap();
    let board = toys.board(number).unwrap();
    assert_eq!(ask(toys, number, Order::Open { board }), Ok(0));
    number
}

fn ask(toys: &mut Toys, number: usize, order: Order) -> Result<u32, Unanswered<Call>> {
    toys.send_order(number, &order);
    toys.answer(number, Some, || ())
}

/// What is heard next, however long it takes.
fn next(toys: &mut Toys) -> (usize, Heard<u32, Call>) {
    let until = Instant::now() + LONG;
    while Instant::now() < until {
        if let Some(heard) = toys.hear(Duration::from_millis(20)) {
            return heard;
        }
    }
    panic!("nothing was heard");
}

fn workers_answer_in_the_order_of_the_question() {
    let mut toys = toys(PATIENT);
    let numbers = [start(&mut toys), start(&mut toys), start(&mut toys)];
    for number in numbers {
        toys.send_task(number, Order::Echo(10 + number as u32));
    }
    let asked = [numbers[2], numbers[0]];
    let answers = toys.answers(&asked, Some, || ());
    assert_eq!(answers, [Ok(12), Ok(10)]);
    assert_eq!(toys.gone(), 0);
    let mut counted = Vec::new();
    let lost = toys.fetch(numbers[1], Order::Count(3), |number| {
        counted.push(number);
        number == 3
    });
    assert_eq!(lost, None);
    // The answer to the echo, which nobody waited for, may come first or be late.
    assert!(counted.ends_with(&[0, 1, 2, 3]), "{counted:?}");
}

fn a_crash_is_heard_once_with_its_signal_and_call() {
    let mut toys = toys(PATIENT);
    let number = start(&mut toys);
    let other = start(&mut toys);
    let crashed = Lost::Crashed { how: "SIGABRT".to_owned(), call: Some(Call::Work) };
    assert_eq!(ask(&mut toys, number, Order::Crash), Err(Unanswered::Lost(crashed)));
    assert!(!toys.is_alive(number) && toys.is_alive(other));
    assert_eq!(toys.gone(), 1);
    assert!(toys.hear(Duration::from_millis(100)).is_none());
    let gone = Lost::Garbled("the worker process is gone".to_owned());
    assert_eq!(ask(&mut toys, number, Order::Echo(1)), Err(Unanswered::Lost(gone)));
    assert_eq!(ask(&mut toys, other, Order::Echo(2)), Ok(2));
}

fn a_loss_while_another_is_fetched_from_is_told() {
    let mut toys = toys(PATIENT);
    let number = start(&mut toys);
    let other = start(&mut toys);
    toys.send_order(other, &Order::Crash);
    thread::sleep(SHORT);
    let lost = toys.fetch(number, Order::Echo(5), |_| true);
    assert!(matches!(lost, Some(Lost::Crashed { call: Some(Call::Work), .. })), "{lost:?}");
    assert!(toys.is_alive(number) && !toys.is_alive(other));
}

fn a_call_that_hangs_is_named_on_any_watched_thread() {
    let mut toys = toys(Timeouts { call: SHORT, ..PATIENT });
    for thread in [0, 3] {
        let number = start(&mut toys);
        toys.watch_threads(number, 3);
        toys.send_order(number, &Order::Hang { call: 1, thread });
        let (from, heard) = next(&mut toys);
        assert_eq!(from, number);
        let Heard::Lost(lost) = heard else { panic!("{heard:?}") };
        assert_eq!(lost, Lost::Hung { after: SHORT, call: Some(Call::Work) });
        assert!(!toys.is_alive(number));
    }
}

fn a_thread_that_is_not_watched_may_hang() {
    let mut toys = toys(Timeouts { call: SHORT, ..PATIENT });
    let number = start(&mut toys);
    toys.watch_threads(number, 2);
    toys.send_order(number, &Order::Hang { call: 1, thread: 3 });
    let until = Instant::now() + 3 * SHORT;
    while Instant::now() < until {
        assert!(toys.hear(Duration::from_millis(20)).is_none());
    }
    toys.kill(number, Lost::Garbled("enough".to_owned()));
}

fn a_call_that_waits_for_others_has_a_limit_of_its_own_and_is_told_once() {
    let limit = Duration::from_millis(1500);
    let mut toys = toys(Timeouts { call: SHORT, waiting_call: limit, clean_up: LONG });
    let number = start(&mut toys);
    let begun = Instant::now();
    let mut told = 0;
    toys.send_order(number, &Order::Hang { call: 2, thread: 0 });
    let answer = toys.answer(number, Some, || told += 1);
    assert_eq!(answer, Err(Unanswered::Lost(Lost::Hung { after: limit, call: Some(Call::Wait) })));
    assert!(begun.elapsed() >= limit);
    assert_eq!(told, 1);
}

fn what_is_no_report_ends_its_worker() {
    let mut toys = toys(PATIENT);
    let number = start(&mut toys);
    let answer = ask(&mut toys, number, Order::Babble);
    let Err(Unanswered::Lost(Lost::Garbled(why))) = answer else { panic!("{answer:?}") };
    assert!(why.contains("impossible length"), "{why}");
    assert!(!toys.is_alive(number));
}

fn an_interrupt_ends_a_question_where_the_policy_is_to_give_up() {
    let flag = Arc::new(AtomicBool::new(false));
    // It hangs outside any call: only the interrupt ends the question.
    let timeouts = Timeouts { clean_up: Duration::from_millis(50), ..PATIENT };
    let mut toys = interruptible(timeouts, OnInterrupt::GiveUp, &flag);
    let number = start(&mut toys);
    flag.store(true, Relaxed);
    let answer = ask(&mut toys, number, Order::Hang { call: 0xFF, thread: 0 });
    assert_eq!(answer, Err(Unanswered::Interrupted));
    assert!(toys.is_interrupted() && !toys.is_alive(number));
}

fn an_interrupt_shortens_a_call_where_the_policy_is_to_wait() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut toys = interruptible(PATIENT, OnInterrupt::Shorten(SHORT), &flag);
    let number = start(&mut toys);
    flag.store(true, Relaxed);
    let answer = ask(&mut toys, number, Order::Hang { call: 1, thread: 0 });
    let hung = Lost::Hung { after: SHORT, call: Some(Call::Work) };
    assert_eq!(answer, Err(Unanswered::Lost(hung)));
}

fn a_worker_that_does_not_end_is_killed() {
    let clean_up = Duration::from_millis(200);
    let mut toys = toys(Timeouts { clean_up, ..PATIENT });
    let quick = start(&mut toys);
    let begun = Instant::now();
    toys.end(quick);
    assert!(begun.elapsed() < LONG / 2 && toys.gone() == 1);
    let slow = start(&mut toys);
    toys.send_order(slow, &Order::Hang { call: 0xFF, thread: 0 });
    thread::sleep(SHORT);
    let begun = Instant::now();
    toys.end_all();
    assert!(begun.elapsed() >= clean_up);
    assert_eq!(toys.gone(), 2);
}

/// A worker of another machine, played by this test.
struct Far {
    tasks: mpsc::Sender<Order>,
}

impl RemoteWorker<Toy> for Far {
    fn send_task(&mut self, task: Order) {
        let _ = self.tasks.send(task);
    }

    fn machine(&self) -> &'static str {
        "far"
    }

    fn post_mortem(&mut self) -> Lost<Call> {
        Lost::Unreachable("far was lost".to_owned())
    }

    fn kill(&mut self) {}
}

fn a_remote_worker_that_never_answers_is_lost_by_name() {
    let mut toys = toys(PATIENT);
    toys.set_remote_timeout(SHORT);
    let (tasks, _told) = mpsc::channel();
    for question in [0, 1] {
        let number = toys.next_number();
        toys.add_remote(Box::new(Far { tasks: tasks.clone() }));
        // What it says meanwhile is no answer.
        toys.report_sender().report(number, 7);
        let lost = match question {
            0 => match toys.answer(number, |_| None::<u32>, || ()) {
                Err(Unanswered::Lost(lost)) => Some(lost),
                other => panic!("{other:?}"),
            },
            _ => toys.fetch(number, Order::Echo(1), |_| false),
        };
        let told = lost.unwrap().to_string();
        assert!(told.starts_with("far was lost: it did not answer within"), "{told}");
        assert!(!toys.is_alive(number));
    }
}

fn a_remote_worker_is_heard_like_any_other() {
    let mut toys = toys(PATIENT);
    toys.add_missing();
    let number = toys.next_number();
    let (tasks, told) = mpsc::channel();
    toys.add_remote(Box::new(Far { tasks }));
    assert_eq!((number, toys.gone(), toys.board(number)), (1, 1, None));
    let reports: ReportSender<u32> = toys.report_sender();
    let far = thread::spawn(move || {
        while let Ok(Order::Echo(value)) = told.recv() {
            reports.report(number, value);
            reports.report(0, value);
        }
        reports.end(number);
    });
    toys.send_task(number, Order::Echo(7));
    assert_eq!(toys.answer(number, Some, || ()), Ok(7));
    // No order of its own, which may name a path, reaches another machine.
    toys.send_order(number, &Order::Echo(8));
    toys.send_task(number, Order::Crash);
    let lost = Lost::Unreachable("far was lost".to_owned());
    assert_eq!(toys.answer(number, Some, || ()), Err(Unanswered::Lost(lost)));
    far.join().unwrap();
}

fn a_controller_can_be_woken() {
    let mut toys = toys(PATIENT);
    let sender = toys.report_sender();
    sender.wake();
    let begun = Instant::now();
    assert!(toys.hear(LONG).is_none());
    assert!(begun.elapsed() < LONG / 2);
}

const TESTS: [(&str, fn()); 13] = [
    ("workers_answer_in_the_order_of_the_question", workers_answer_in_the_order_of_the_question),
    (
        "a_crash_is_heard_once_with_its_signal_and_call",
        a_crash_is_heard_once_with_its_signal_and_call,
    ),
    ("a_loss_while_another_is_fetched_from_is_told", a_loss_while_another_is_fetched_from_is_told),
    (
        "a_call_that_hangs_is_named_on_any_watched_thread",
        a_call_that_hangs_is_named_on_any_watched_thread,
    ),
    ("a_thread_that_is_not_watched_may_hang", a_thread_that_is_not_watched_may_hang),
    (
        "a_call_that_waits_for_others_has_a_limit_of_its_own_and_is_told_once",
        a_call_that_waits_for_others_has_a_limit_of_its_own_and_is_told_once,
    ),
    ("what_is_no_report_ends_its_worker", what_is_no_report_ends_its_worker),
    (
        "an_interrupt_ends_a_question_where_the_policy_is_to_give_up",
        an_interrupt_ends_a_question_where_the_policy_is_to_give_up,
    ),
    (
        "an_interrupt_shortens_a_call_where_the_policy_is_to_wait",
        an_interrupt_shortens_a_call_where_the_policy_is_to_wait,
    ),
    ("a_worker_that_does_not_end_is_killed", a_worker_that_does_not_end_is_killed),
    (
        "a_remote_worker_that_never_answers_is_lost_by_name",
        a_remote_worker_that_never_answers_is_lost_by_name,
    ),
    ("a_remote_worker_is_heard_like_any_other", a_remote_worker_is_heard_like_any_other),
    ("a_controller_can_be_woken", a_controller_can_be_woken),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "worker") {
        serve();
        return ExitCode::SUCCESS;
    }
    let listed = arguments.iter().any(|word| word == "--list");
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    for (name, test) in TESTS {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(*filter)) {
            continue;
        }
        if listed {
            println!("{name}: test");
            continue;
        }
        // A panic ends the program, as a failed test does.
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}
