//! Ends that nobody can arrange for (SIGKILL), and what the next run makes of what they left.

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tapstone_testing::eventually;

use crate::verbs::Verb;
use crate::workplace::Workplace;

const TRACE: Verb =
    Verb { name: "trace", arguments: "trace --quiet -- sleep 100", outputs: &[], exit: 0 };

/// 16 MiB to 2 GiB of events were left for good.
#[test]
fn what_a_killed_trace_left_goes_with_the_next() {
    let workplace = Workplace::new(&TRACE);
    let tmp = workplace.path("tmp");
    let left = || fs::read_dir(&tmp).unwrap().count();
    let mut killed = workplace.command(&TRACE, "").process_group(0).spawn().unwrap();
    assert!(eventually(Duration::from_secs(30), || left() == 2), "{}", left());
    kill_process_group(Pid::from_child(&killed), Signal::KILL).unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 2);
    let next = Verb { arguments: "trace --quiet -- true", ..TRACE };
    workplace.run(&next, "").holds(&[0]);
}
