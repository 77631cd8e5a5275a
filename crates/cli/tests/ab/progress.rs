//! The line that a person at a terminal sees: never wider than the terminal, and gone at the end.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{Winsize, tcsetwinsize};
use tapstone_testing::eventually;

use crate::support::{Folder, TIME_LIMIT};

/// Starts it with standard error on a terminal of so many columns; the thread gives what is written
/// there until nobody has it open.
fn start_at_terminal(
    folder: &Folder,
    columns: u16,
    arguments: &[&str],
) -> (Child, JoinHandle<Vec<u8>>) {
    let ours = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&ours).unwrap();
    pty::unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = pty::ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_tapstone"))
        .arg("ab")
        .args(arguments)
        .current_dir(folder.path("."))
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .unwrap();
    let reader = thread::spawn(move || {
        let mut written = Vec::new();
        // It ends with EIO when the last one who has the other side open is gone.
        let _ = File::from(ours).read_to_end(&mut written);
        written
    });
    (child, reader)
}

/// What a terminal of unlimited width shows: the widest line that ever stood there, and the lines at
/// the end.
fn shown(written: &[u8]) -> (usize, String) {
    let text = String::from_utf8_lossy(written);
    let mut widest = 0;
    let mut lines = vec![String::new()];
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let line = lines.last_mut().unwrap();
        match letter {
            '\u{1b}' => {
                let command = letters.find(|letter| letter.is_ascii_alphabetic());
                if command == Some('K') {
                    line.clear();
                }
            }
            '\n' => lines.push(String::new()),
            '\r' => {}
            letter => line.push(letter),
        }
        widest = widest.max(lines.last().unwrap().chars().count());
    }
    (widest, lines.join("\n"))
}

#[test]
fn the_line_fits_every_terminal_and_is_gone_at_the_end() {
    let folder = Folder::new();
    let a = folder.work("a", 2000);
    for columns in [100, 30, 9] {
        let arguments = ["--rounds", "4", "--name", "a-long-name-of-a-side", "--name", "b", &a, &a];
        let (mut child, reader) = start_at_terminal(&folder, columns, &arguments);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let written = reader.join().unwrap();
        let (widest, left) = shown(&written);
        let all = String::from_utf8_lossy(&written);
        assert!(widest <= usize::from(columns), "{widest} in {columns}: {all:?}");
        assert!(all.contains("round"), "{all:?}");
        assert_eq!(left.trim(), "", "{all:?}");
    }
}

#[test]
fn the_line_is_gone_after_ctrl_c() {
    let folder = Folder::new();
    let a = folder.script("a", "echo run >> log; sleep 0.1");
    let (mut child, reader) = start_at_terminal(&folder, 80, &[&a, &a]);
    let runs = eventually(TIME_LIMIT, || folder.log().len() > 3);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let written = reader.join().unwrap();
    let (_, left) = shown(&written);
    let all = String::from_utf8_lossy(&written);
    assert!(runs && all.contains(" left"), "{all:?}");
    assert!(!left.contains("round 1, ") && !left.contains(" left"), "{left}");
}
