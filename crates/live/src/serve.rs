//! The side of whoever looks: a web server on this machine alone, for one page.
//!
//! It listens on a loopback address and a random port. Requests need the secret of the URL and name
//! the server as the page does, so that no other page of the browser reads it (DNS rebinding), and
//! change nothing.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::connect::connect;
use crate::frame::LiveFrame;
use crate::http::{Request, head, read_request, respond};
use crate::page::{POLICY_OF_RECORD, live_page, policy_of_live_page};

/// Frames that a page gets that is opened late.
const HISTORY: usize = 2_000;
/// The longest frame: a record.
const LONGEST: u64 = 64 << 20;
/// Pages that look at the same time.
const MOST_PAGES: usize = 8;
/// Connections at the same time, also of others on this machine, who do not know the secret.
const MOST_CONNECTIONS: usize = 64;
/// The longest line that is no record.
const LONGEST_FIGURES: usize = 16 << 10;
/// How often it is looked who connects.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a page is asked whether it is still there.
const PERIOD: Duration = Duration::from_millis(500);

/// Why a run cannot be shown.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Nobody answers on the socket.
    #[error(
        "{}: {why}\nhint: `tapstone token --live SOCKET …` makes one, and removes it when it is over; \
         eight can look at a run",
        socket.display()
    )]
    Socket {
        /// The path of the socket.
        socket: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// There is no port to listen on.
    #[error("no page can be offered on this machine: {0}\nhint: is there a loopback interface?")]
    Listen(io::Error),
}

/// Makes the page of a record from its JSON; the text says why there is none.
pub type Render<'a> = dyn Fn(&str) -> Result<String, String> + Sync + 'a;

/// A run that is shown.
pub struct LiveServer {
    listener: TcpListener,
    run: UnixStream,
    host: String,
    secret: String,
}

/// What is known of the run.
#[derive(Debug, Default)]
struct Run {
    /// Lines of JSON and when each came, in milliseconds; without the first `gone` of them.
    lines: VecDeque<(u128, String)>,
    gone: usize,
    page: Option<String>,
    is_over: bool,
}

/// What the server's threads share.
#[derive(Debug, Default)]
struct Shared {
    run: Mutex<Run>,
    news: Condvar,
    /// Pages that look, and connections of anybody.
    pages: AtomicUsize,
    connections: AtomicUsize,
    /// The name of this server, and what a URL has to know.
    host: String,
    secret: String,
}

impl Shared {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl LiveServer {
    /// Connects to a run's socket, and listens.
    ///
    /// # Errors
    /// When nobody answers on the socket, or there is no port.
    pub fn start(socket: &Path) -> Result<Self, ServeError> {
        let run =
            connect(socket).map_err(|why| ServeError::Socket { socket: socket.to_owned(), why })?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(ServeError::Listen)?;
        let host = listener.local_addr().map_err(ServeError::Listen)?.to_string();
        let secret = secret().map_err(ServeError::Listen)?;
        listener.set_nonblocking(true).map_err(ServeError::Listen)?;
        Ok(Self { listener, run, host, secret })
    }

    /// Where the page is. Whoever has the URL may look.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.host, self.secret)
    }

    /// Answers until `ends` is set: while the run goes on with the page of it, then with that of its
    /// record, which `render` makes.
    pub fn serve(self, render: &Render<'_>, ends: &AtomicBool) {
        let Self { listener, run, host, secret } = self;
        let shared = Shared { host, secret, ..Shared::default() };
        thread::scope(|scope| {
            let hung_up = run.try_clone();
            scope.spawn(|| read_run(run, &shared, render));
            while !ends.load(Ordering::Relaxed) {
                // Without a descriptor or a thread for somebody, others are waited for.
                let Ok((stream, _)) = listener.accept() else {
                    thread::sleep(PAUSE);
                    continue;
                };
                if shared.connections.fetch_add(1, Ordering::Relaxed) < MOST_CONNECTIONS {
                    let answer = || answer(stream, &shared, ends);
                    if thread::Builder::new().spawn_scoped(scope, answer).is_ok() {
                        continue;
                    }
                }
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            }
            // Who reads the run and who waits for news of it end, too.
            let _ = hung_up.map(|run| run.shutdown(std::net::Shutdown::Both));
            shared.run().is_over = true;
            shared.news.notify_all();
        });
    }
}

/// 128 bits that nobody can guess (random(4)), in hexadecimal.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Takes the run's frames until it is over.
fn read_run(run: UnixStream, shared: &Shared, render: &Render<'_>) {
    let begun = Instant::now();
    let mut lines = BufReader::new(run);
    loop {
        let mut line = String::new();
        let read = lines.by_ref().take(LONGEST).read_line(&mut line);
        let frame = match read {
            Ok(1..) => serde_json::from_str(&line),
            _ => break,
        };
        match frame {
            Ok(LiveFrame::Record(record)) => {
                let page = render(record.get()).unwrap_or_else(|why| plain_page(&why));
                shared.run().page = Some(page);
                break;
            }
            Ok(_) if line.len() > LONGEST_FIGURES => break,
            Ok(_) => {
                let mut run = shared.run();
                if run.lines.len() == HISTORY {
                    run.lines.pop_front();
                    run.gone += 1;
                }
                let at = begun.elapsed().as_millis();
                run.lines.push_back((at, line.trim_end().to_owned()));
            }
            // Another version, or somebody else's socket.
            Err(_) => break,
        }
        shared.news.notify_all();
    }
    let mut run = shared.run();
    run.is_over = true;
    run.page.get_or_insert_with(|| plain_page("the run ended without a record"));
    drop(run);
    shared.news.notify_all();
}

fn plain_page(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html><html lang=\"en\"><title>Tapstone</title><main><p>{text}</p></main></html>"
    )
}

/// Answers one request. One that comes too late, or is none, gets no answer, and what becomes of a
/// page that is gone is nothing to the run.
fn answer(mut stream: TcpStream, shared: &Shared, ends: &AtomicBool) {
    if let Ok(request) = read_request(&mut stream, ends) {
        let _ = answer_request(&mut stream, &request, shared);
    }
    shared.connections.fetch_sub(1, Ordering::Relaxed);
}

fn answer_request(stream: &mut TcpStream, request: &Request, shared: &Shared) -> io::Result<()> {
    let is_for_us = request.host.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(&shared.host));
    let page = format!("/{}/", shared.secret);
    let events = format!("{page}events");
    let mut refuse = |status: &str, text: &str| respond(stream, request, status, &[], text);
    match &request.target {
        _ if !is_for_us => refuse("421 Misdirected Request", "this server has another name"),
        target if *target != page && *target != events => {
            refuse("404 Not Found", "there is nothing here")
        }
        _ if !["GET", "HEAD"].contains(&&*request.method) => {
            refuse("405 Method Not Allowed", "this page can only be read")
        }
        target if *target == page => send_page(stream, request, shared),
        // Each page has a thread for as long as it looks.
        _ if shared.pages.fetch_add(1, Ordering::Relaxed) >= MOST_PAGES => {
            shared.pages.fetch_sub(1, Ordering::Relaxed);
            refuse("503 Service Unavailable", "too many pages look at this run")
        }
        _ => {
            let sent = write_events(stream, shared);
            shared.pages.fetch_sub(1, Ordering::Relaxed);
            sent
        }
    }
}

fn send_page(stream: &mut TcpStream, request: &Request, shared: &Shared) -> io::Result<()> {
    let record = shared.run().page.clone();
    let (page, policy) = match record {
        Some(page) => (page, POLICY_OF_RECORD.to_owned()),
        None => {
            let nonce = secret()?;
            (live_page(&nonce), policy_of_live_page(&nonce))
        }
    };
    let headers =
        [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", &*policy)];
    respond(stream, request, "200 OK", &headers, &page)
}

/// Server-sent events (HTML, 9.2), for as long as the page is there.
fn write_events(mut to: impl Write, shared: &Shared) -> io::Result<()> {
    let head = head("200 OK", &[("Content-Type", "text/event-stream")]);
    write!(to, "{head}\r\n")?;
    let mut sent = 0;
    loop {
        let (lines, is_over) = {
            let run = shared.run();
            let has_none = |run: &mut Run| run.gone + run.lines.len() <= sent && !run.is_over;
            let waited = shared.news.wait_timeout_while(run, PERIOD, has_none);
            let (run, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            let new = run.lines.iter().skip(sent.saturating_sub(run.gone));
            let lines: Vec<(u128, String)> = new.cloned().collect();
            sent = run.gone + run.lines.len();
            (lines, run.is_over)
        };
        for (at, line) in &lines {
            write!(to, "id: {at}\ndata: {line}\n\n")?;
        }
        if is_over {
            to.write_all(b"event: over\ndata:\n\n")?;
            return to.flush();
        }
        if lines.is_empty() {
            // A comment, by which a page that is gone is noticed.
            to.write_all(b":\n\n")?;
        }
        to.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use tapstone_measure::units::{Nanos, PerSecond};

    use super::*;
    use crate::{Figures, LiveSocket};

    /// The answer to a request, until the server has no more to say.
    fn answer_to(server: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all
    }

    fn get(server: &str, host: &str, path: &str) -> String {
        answer_to(
            server,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        )
    }

    fn figures(case: &str) -> Figures {
        Figures {
            case: case.into(),
            level: Some("2 threads".into()),
            elapsed_ns: Nanos(5),
            completed: 1,
            failed: 0,
            rate: PerSecond(2.0),
            p50_ns: None,
            p99_ns: None,
            missed: 0,
        }
    }

    /// With a run on a socket and a server of it: what is asked of the server, its name and the
    /// path of its page.
    fn with_server(ask: impl FnOnce(LiveSocket, &str, &str)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live");
        let socket = LiveSocket::bind(&path).unwrap();
        let server = LiveServer::start(&path).unwrap();
        let url = server.url();
        let (host, page) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let ends = AtomicBool::new(false);
        let render = |record: &str| match record {
            "\"bad\"" => Err("<no record>".to_owned()),
            record => Ok(format!("the page of {record}")),
        };
        thread::scope(|scope| {
            scope.spawn(|| server.serve(&render, &ends));
            ask(socket, host, &format!("/{page}"));
            ends.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn the_page_is_there_for_whoever_has_its_url_alone() {
        with_server(|_socket, host, page| {
            let port = host.rsplit_once(':').unwrap().1;
            let found = get(host, host, page);
            assert!(found.starts_with("HTTP/1.1 200 ") && found.contains("EventSource"), "{found}");
            let nonce =
                found.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
            assert!(nonce.len() == 32 && found.contains(&format!("nonce=\"{nonce}\"")), "{found}");
            for (other, path, status) in [
                ("evil.example", page, 421),
                (&format!("evil.example:{port}"), page, 421),
                (host, "/", 404),
                (host, "/events", 404),
                (host, &page[..page.len() - 2], 404),
                (host, &format!("{page}../etc/passwd"), 404),
            ] {
                let found = get(host, other, path);
                assert!(found.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {found}");
            }
            let posted = answer_to(
                host,
                &format!("POST {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
            );
            assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
            let unnamed = answer_to(host, &format!("GET {page} HTTP/1.0\r\n\r\n"));
            assert!(unnamed.starts_with("HTTP/1.1 421 ") || unnamed.starts_with("HTTP/1.0 421 "));
        });
    }

    #[test]
    fn events_come_as_the_run_tells_them_and_end_with_it() {
        with_server(|socket, host, page| {
            socket.figures(figures("one"));
            socket.stage("two", "makes a key");
            thread::scope(|scope| {
                let early = scope.spawn(|| get(host, host, &format!("{page}events")));
                thread::sleep(Duration::from_millis(300));
                socket.figures(figures("three"));
                socket.finish(&"whole");
                let early = early.join().unwrap();
                let of = |text| early.find(text).unwrap_or_else(|| panic!("no {text} in {early}"));
                assert!(of("\"one\"") < of("makes a key") && of("makes a key") < of("\"three\""));
                assert!(early.ends_with("event: over\ndata:\n\n"), "{early}");
            });
            // Whoever comes late has all of it.
            let late = get(host, host, &format!("{page}events"));
            assert!(late.contains("\"one\"") && late.contains("\"three\""), "{late}");
            assert!(get(host, host, page).ends_with("the page of \"whole\""));
        });
    }

    #[test]
    fn a_run_without_a_record_says_so() {
        with_server(|socket, host, page| {
            drop(socket);
            get(host, host, &format!("{page}events"));
            assert!(get(host, host, page).contains("ended without a record"));
        });
        with_server(|socket, host, page| {
            socket.finish(&"bad");
            get(host, host, &format!("{page}events"));
            assert!(get(host, host, page).contains("&lt;no record>"));
        });
    }

    /// Anybody on the machine can connect, and need not know the secret for that.
    #[test]
    fn nobody_keeps_others_from_the_page() {
        with_server(|_socket, host, page| {
            let send = |text: &str| {
                let mut stream = TcpStream::connect(host).unwrap();
                // The server may have closed it already.
                let _ = stream.write_all(text.as_bytes());
                stream
            };
            let head = format!("POST {page} HTTP/1.1\r\nHost: {host}\r\n");
            let slow = [
                send("GE"),
                send(&format!("{head}Content-Length: 5000\r\n\r\nab")),
                send(&format!("{head}Content-Length: 18446744073709551615\r\n\r\nab")),
                send(&format!("GET {page} HTTP/1.1\r\nX: {}", "x".repeat(1 << 20))),
                send(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(10_000)),
            ];
            assert!(get(host, host, page).contains("EventSource"));
            drop(slow);
            // More than there is room for, until they are too late.
            let idle: Vec<TcpStream> = (0..2 * MOST_CONNECTIONS).map(|_| send("")).collect();
            thread::sleep(Duration::from_secs(3));
            assert!(get(host, host, page).contains("EventSource"));
            drop(idle);
        });
    }

    #[test]
    fn without_a_run_there_is_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let Err(why) = LiveServer::start(&folder.path().join("nothing")) else { panic!() };
        assert!(why.to_string().contains("hint: "), "{why}");
    }
}
