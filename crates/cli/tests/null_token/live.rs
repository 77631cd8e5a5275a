//! A run that tells how it goes, and a page that shows it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tapstone_testing::private_environment;

use crate::run::TIME_LIMIT;
use crate::support::{Running, Tapstone, eventually};

fn signing(socket: &Path, seconds: &str) -> Tapstone {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep")];
    let run = Tapstone::on(&model).args("--op rsa2048.sign --no-verify");
    run.args("--seconds").arg(seconds).arg("--live").arg(socket)
}

/// A program that is ended when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let ended = self.0.wait().unwrap();
        assert_eq!(ended.code(), Some(0), "Ctrl-C ends it in order");
    }
}

/// `tapstone report --serve`, the name of its server and the path of its page.
fn serve(socket: &Path) -> (Server, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    command.args(["report", "--serve"]).arg(socket).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let server = Server(child);
    let (host, page) = url.trim_end().strip_prefix("http://").expect(&url).split_once('/').unwrap();
    (server, host.to_owned(), format!("/{page}"))
}

/// What the server answers, to the end of it.
fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

fn is_there(run: &Running, socket: &Path) {
    assert!(eventually(TIME_LIMIT, || socket.exists()), "{}", run.path("stderr").display());
}

#[test]
fn a_page_shows_the_run_and_then_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("live");
    let run = signing(&socket, "2").start();
    is_there(&run, &socket);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let (_server, host, page) = serve(&socket);
    assert!(get(&host, &page).contains("<title>Tapstone: a run that goes on</title>"));
    let events = get(&host, &format!("{page}events"));
    assert!(events.contains("\"figures\":{\"case\":\"rsa2048.sign\""), "{events}");
    assert!(events.ends_with("event: over\ndata:\n\n"), "{events}");
    let record = run.wait().exits(0).record();
    assert!(!socket.exists());
    let shown = get(&host, &page);
    assert!(shown.contains("rsa2048.sign") && shown.contains("</html>"), "{shown}");
    let [case] = &record.results[..] else { panic!("{:?}", record.results) };
    assert!(case.completed > 0);
}

/// Whoever connects and never reads is not waited for.
#[test]
fn a_run_waits_for_nobody_who_looks() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("live");
    let run = signing(&socket, "2").start();
    is_there(&run, &socket);
    let mut deaf: Vec<UnixStream> =
        (0..4).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
    let record = run.wait().exits(0).record();
    assert!(record.results[0].completed > 0 && !socket.exists());
    // The record is the last line of what it was sent.
    let mut told = String::new();
    deaf.remove(0).read_to_string(&mut told).unwrap();
    assert!(told.lines().last().unwrap().starts_with("{\"record\":"), "{told}");
}

/// An interrupted run tells what it has, too, and leaves no socket.
#[test]
fn an_interrupted_run_leaves_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("live");
    let run = signing(&socket, "60").start();
    is_there(&run, &socket);
    let looks = UnixStream::connect(&socket).unwrap();
    // Until it measures.
    let mut lines = BufReader::new(looks).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("{\"figures\":")));
    run.signal(Signal::INT);
    run.wait().exits(2);
    assert!(!socket.exists());
    assert!(lines.last().unwrap().unwrap().starts_with("{\"record\":"));
}

#[test]
fn a_socket_that_cannot_be_is_one_error_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken");
    File::create(&taken).unwrap();
    let used = folder.path().join("used");
    let _listener = UnixListener::bind(&used).unwrap();
    let long = folder.path().join("x".repeat(200));
    for socket in [taken.as_path(), &used, &long, Path::new("/nowhere/live")] {
        let outcome = signing(socket, "2").without_record().run().exits(2);
        let error = &outcome.stderr;
        assert!(error.contains("the socket of --live") && error.contains("hint: "), "{error}");
        assert!(!outcome.stdout.contains("rsa2048.sign"), "{}", outcome.stdout);
    }
    assert!(taken.is_file() && used.exists());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    let nobody = command.args(["report", "--serve"]).arg(&taken).output().unwrap();
    let error = String::from_utf8_lossy(&nobody.stderr);
    assert!(nobody.status.code() == Some(2) && error.contains("hint: "), "{error}");
}
