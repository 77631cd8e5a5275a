//! Programs that were started by programs that are watched, and those among them in which the probe
//! did not begin: what these do is not seen, which whoever repeats a command has to know.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::ELFMAG;
use tapstone_events::{Blind, Program, UnseenProgram};
use tapstone_measure::units::Nanos;

use crate::blind;
use tapstone_command::command;

/// A program that was about to be started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// When the process was started, on CLOCK_MONOTONIC.
    pub(crate) at: Nanos,
    /// Who called exec(3) or posix_spawn(3).
    pub(crate) process: u32,
    /// In a child of that one.
    pub(crate) in_child: bool,
    /// Its path, or its name where PATH is searched.
    pub(crate) program: Vec<u8>,
}

/// A program in which the probe began, and which found no room to say so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unannounced {
    /// The id of its process.
    pub(crate) process: u32,
    /// Who forked it off.
    pub(crate) parent: u32,
}

impl Unannounced {
    fn may_be(self, start: &Start) -> bool {
        start.process == if start.in_child { self.parent } else { self.process }
    }
}

/// Those of `starts` that none of `processes` is. A start that failed is none of them: shells try
/// one folder after the other.
pub(crate) fn unseen(
    mut starts: Vec<Start>,
    processes: &[Program],
    unannounced: &[Unannounced],
) -> Vec<UnseenProgram> {
    starts.sort_by_key(|start| start.at);
    let programs: Vec<_> = processes.iter().filter(|it| !it.program.is_empty()).collect();
    let (in_children, here): (Vec<_>, Vec<_>) = starts.iter().partition(|start| start.in_child);
    let came_by_exec = |program: &&&Program| {
        here.iter().any(|start| start.process == program.id && start.at <= program.started)
    };
    let spawned = programs.iter().filter(|it| !came_by_exec(it)).copied().collect();
    let of_children = not_begun(in_children, spawned);
    let of_execs = here.iter().enumerate().filter(|(number, start)| {
        let mut later = here[number + 1..].iter().filter(|it| it.process == start.process);
        // Who tries again is still itself.
        let tries_again = later.next().is_some();
        let begins = programs.iter().any(|it| it.id == start.process && it.started >= start.at);
        !tries_again && !begins
    });
    let started = of_children.into_iter().chain(of_execs.map(|(_, start)| *start));
    let with_reason_of_probe = |start: &Start| {
        let found = found(start)?;
        let began = unannounced.iter().any(|it| it.may_be(start));
        let no_room = || Blind::NoRoom(found.program.clone());
        Some(UnseenProgram { reason: if began { Some(no_room()) } else { found.reason }, ..found })
    };
    let mut unseen: Vec<_> = started.filter_map(with_reason_of_probe).collect();
    // Of a program that was started more than once a reason is said, if there is one.
    unseen.sort_by(|one, other| {
        let key = |it: &UnseenProgram| (it.program.clone(), it.reason.is_none());
        key(one).cmp(&key(other))
    });
    unseen.dedup_by(|one, other| one.program == other.program);
    unseen
}

/// `None`: it is not there, and could not start. Where a relative path leads is known only to the
/// program, which may have changed its folder.
fn found(start: &Start) -> Option<UnseenProgram> {
    let program = OsStr::from_bytes(&start.program);
    let is_relative = start.program.contains(&b'/') && !start.program.starts_with(b"/");
    match command::find_program(program) {
        Ok(path) => Some(with_reason(path)),
        Err(_) => is_relative.then(|| with_reason(program.into())),
    }
}

/// With what its file tells now: later it may be another.
fn with_reason(program: PathBuf) -> UnseenProgram {
    UnseenProgram { reason: blind::reason(&program), program }
}

/// Those that are left when each program that began in a child is one of them: the one that its
/// path names, and of what remains any that it could have become.
fn not_begun<'a>(mut starts: Vec<&'a Start>, mut programs: Vec<&Program>) -> Vec<&'a Start> {
    take_away(&mut starts, &mut programs, |program| {
        // A program's own path has no symbolic links (proc_pid_exe(5)), and PATH may be another.
        let whole =
            command::find_program(program).ok().and_then(|path| fs::canonicalize(path).ok());
        let name = Path::new(program).file_name();
        move |begun| begun.file_name() == name || whole.as_deref() == Some(begun)
    });
    take_away(&mut starts, &mut programs, |program| {
        // What is no program itself begins as its interpreter. Where a path leads may be known to
        // whoever takes it only: /proc/self/exe.
        let found = command::find_program(program).ok().filter(|path| !path.starts_with("/proc"));
        let is_program = |path| fs::read(path).is_ok_and(|content| content.starts_with(&ELFMAG));
        let is_open = !found.is_some_and(is_program);
        move |_| is_open
    });
    starts
}

/// Takes away starts, and for each a program that `fits` it.
fn take_away<'a, F: Fn(&Path) -> bool>(
    starts: &mut Vec<&'a Start>,
    programs: &mut Vec<&Program>,
    fits: impl Fn(&'a OsStr) -> F,
) {
    starts.retain(|&start| {
        let fits = fits(OsStr::from_bytes(&start.program));
        let is_it = |program: &&Program| {
            let follows = program.parent == start.process && program.started >= start.at;
            follows && fits(Path::new(&program.program))
        };
        let at = programs.iter().position(is_it);
        at.map(|at| programs.remove(at)).is_none()
    });
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn start(at: u64, process: u32, in_child: bool, program: &str) -> Start {
        Start { at: Nanos(at), process, in_child, program: program.as_bytes().to_vec() }
    }

    fn process(id: u32, parent: u32, program: &str, started: u64) -> Program {
        Program { id, parent, program: program.to_owned(), started: Nanos(started) }
    }

    #[test]
    fn a_program_that_does_not_begin_is_unseen() {
        let shell = process(1, 0, "/bin/sh", 0);
        let of = |starts: &[Start], others: &[Program]| {
            let processes: Vec<_> = [&shell].into_iter().chain(others).cloned().collect();
            unseen(starts.to_vec(), &processes, &[])
        };
        let seen = process(2, 1, "/bin/ls", 20);
        let forked = process(2, 1, "", 5);
        let seen = slice::from_ref(&seen);
        // By exec(3) in a child, and by posix_spawn(3).
        assert_eq!(of(&[start(10, 2, false, "/bin/ls")], seen), []);
        assert_eq!(of(&[start(10, 1, true, "ls")], seen), []);
        let env = [with_reason(PathBuf::from("/usr/bin/env"))];
        let forked = slice::from_ref(&forked);
        assert_eq!(of(&[start(10, 2, false, "/usr/bin/env")], forked), env);
        assert_eq!(of(&[start(10, 1, true, "/usr/bin/env")], forked), env);
        let two = [start(10, 1, true, "/bin/ls"), start(15, 1, true, "/usr/bin/env")];
        assert_eq!(of(&two, seen), env);
        let in_turn = [start(10, 1, true, "/usr/bin/env"), start(15, 1, true, "/bin/ls")];
        assert_eq!(of(&in_turn, seen), env);
        // One script, and one path that leads each program elsewhere.
        for path in ["/usr/bin/ldd", "/proc/self/exe"] {
            assert_eq!(of(&[start(10, 1, true, path)], seen), []);
        }
        // Another child came by fork(2) and exec(3).
        let beside = [start(10, 1, true, "/usr/bin/env"), start(15, 2, false, "/usr/bin/env")];
        assert_eq!(of(&beside, &[process(2, 1, "/usr/bin/env", 20)]), env);
        // It began, and became something else.
        assert_eq!(of(&[start(30, 2, false, "/usr/bin/env")], seen), env);
    }

    #[test]
    fn a_program_that_found_no_room_is_told_apart() {
        let shell = [process(1, 0, "/bin/sh", 0)];
        let env = PathBuf::from("/usr/bin/env");
        let no_room = Some(Blind::NoRoom(env.clone()));
        let reason = |starts: &[Start], process, parent| {
            let unannounced = [Unannounced { process, parent }];
            let unseen = unseen(starts.to_vec(), &shell, &unannounced);
            assert_eq!(unseen.len(), 1, "{unseen:?}");
            assert_eq!(unseen[0].program, env);
            unseen[0].reason.clone()
        };
        // By exec(3) in a child, and by posix_spawn(3).
        assert_eq!(reason(&[start(10, 2, false, "/usr/bin/env")], 2, 1), no_room);
        assert_eq!(reason(&[start(10, 1, true, "/usr/bin/env")], 2, 1), no_room);
        // It was another one.
        assert_eq!(reason(&[start(10, 2, false, "/usr/bin/env")], 3, 2), None);
        assert_eq!(reason(&[start(10, 2, true, "/usr/bin/env")], 2, 1), None);
        let twice = [start(10, 3, false, "/usr/bin/env"), start(20, 2, false, "/usr/bin/env")];
        assert_eq!(reason(&twice, 2, 1), no_room);
    }

    #[test]
    fn what_failed_to_start_is_not() {
        let seen = [process(2, 1, "/bin/ls", 20)];
        let tries = ["/usr/local/bin/ls", "/usr/bin/env", "/bin/ls"];
        let starts: Vec<_> =
            tries.iter().zip(10..).map(|(path, at)| start(at, 2, false, path)).collect();
        assert_eq!(unseen(starts, &seen, &[]), []);
        assert_eq!(unseen(vec![start(10, 3, false, "/no/such/program")], &seen, &[]), []);
        // It may be in the folder where the program is now.
        let relative = unseen(vec![start(10, 3, false, "./program")], &seen, &[]);
        assert_eq!(relative, [with_reason(PathBuf::from("./program"))]);
    }
}
