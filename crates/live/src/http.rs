//! One request of HTTP/1.1 (RFC 9112) and its answer: for one page, on this machine.
//!
//! Anybody on the machine can connect, so a request may be no longer than a page's, has to come
//! soon, has no body, and is the last of its connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A head with more bytes is none of a browser's.
const LONGEST_HEAD: usize = 8 << 10;
/// Lines of a head, at most.
const MOST_HEADERS: usize = 64;
/// How long a request may take to come, and each part of an answer to go.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How often it is looked whether all is to end.
const SLICE: Duration = Duration::from_millis(200);

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, with its query.
    pub(crate) target: String,
    /// Whom it is meant for: the one Host that it names (RFC 9112, 3.2).
    pub(crate) host: Option<String>,
}

/// Reads a request, unless `ends` is set meanwhile.
///
/// # Errors
/// When it is no request, too long, or does not come in time.
pub(crate) fn read_request(stream: &mut TcpStream, ends: &AtomicBool) -> io::Result<Request> {
    let until = Instant::now() + TIME_LIMIT;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while Instant::now() < until && !ends.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => head.extend_from_slice(&buffer[..read]),
            Err(why) if is_pause(&why) => continue,
            Err(why) => return Err(why),
        }
        if let Some(request) = parse(&head)? {
            return Ok(request);
        }
        if head.len() > LONGEST_HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Err(ErrorKind::TimedOut.into())
}

fn is_pause(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// `None`: more is to come.
fn parse(head: &[u8]) -> io::Result<Option<Request>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let status = parsed.parse(head).map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
    if status.is_partial() {
        return Ok(None);
    }
    let mut hosts = parsed.headers.iter().filter(|it| it.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|host| str::from_utf8(host.value).ok()).map(str::to_owned);
    Ok(Some(Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        host: host.filter(|_| hosts.next().is_none()),
    }))
}

/// Writes a whole answer. `HEAD` gets no body.
pub(crate) fn respond(
    stream: &mut TcpStream,
    request: &Request,
    status: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<()> {
    let length = body.len().to_string();
    let mut head = head(status, headers);
    head.push_str(&format!("Content-Length: {length}\r\n\r\n"));
    stream.write_all(head.as_bytes())?;
    if request.method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The head of an answer, without the empty line at its end.
pub(crate) fn head(status: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_when_it_is_whole() {
        let whole = b"GET /a?b HTTP/1.1\r\nhOst: 127.0.0.1:7\r\nX: y\r\n\r\n";
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]).unwrap(), None, "{length}");
        }
        let request = parse(whole).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.target), ("GET", "/a?b"));
        assert_eq!(request.host.as_deref(), Some("127.0.0.1:7"));
    }

    #[test]
    fn two_names_of_the_server_are_none() {
        let host = |head: &str| parse(head.as_bytes()).unwrap().unwrap().host;
        assert_eq!(host("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), None);
        assert_eq!(host("GET / HTTP/1.1\r\n\r\n"), None);
        assert!(parse(b"\x16\x03\x01\r\n\r\n").is_err());
    }
}
