//! The way to OCSP responders and to CAs' certificates: plain HTTP, as RFC 6960 and RFC 5280 have it
//! (what comes is signed), with limits on time and size, no redirections, and no proxy that an
//! environment variable names.

use std::time::Duration;

use tapstone_piv::{IssuerSource, OcspSource};
use ureq::Agent;

/// An answer with its signer's certificates has 2 to 5 KB.
const LARGEST_ANSWER_BYTES: u64 = 65_536;

/// Files with the cross-certificates of a bridge have some dozens of KB.
const LARGEST_ISSUERS_BYTES: u64 = 262_144;

/// So many addresses of one certificate are tried.
const MOST_ADDRESSES: usize = 4;

/// OCSP responders (RFC 6960), asked by HTTP POST, and issuers, fetched by HTTP GET.
#[derive(Debug)]
pub(crate) struct HttpResponders {
    agent: Agent,
    /// Whom to ask instead of those that a certificate names.
    instead: Option<String>,
}

impl HttpResponders {
    pub(crate) fn new(timeout: Duration, instead: Option<String>) -> Self {
        Self { agent: agent(timeout), instead }
    }

    fn post(&self, address: &str, request: &[u8]) -> Result<Vec<u8>, String> {
        is_plain_http(address)?;
        let failed = |error: ureq::Error| format!("{address}: {error}");
        let sent = self.agent.post(address).content_type("application/ocsp-request").send(request);
        let mut response = sent.map_err(failed)?;
        let body = response.body_mut().with_config().limit(LARGEST_ANSWER_BYTES);
        body.read_to_vec().map_err(failed)
    }
}

impl OcspSource for HttpResponders {
    fn ask(&self, addresses: &[String], request: &[u8]) -> Result<Vec<u8>, String> {
        let named = addresses.iter().take(MOST_ADDRESSES);
        let instead = self.instead.as_ref();
        let all: Vec<&String> = instead.map_or_else(|| named.collect(), |one| vec![one]);
        let mut why = "the certificate names no responder".to_owned();
        for address in all {
            match self.post(address, request) {
                Ok(answer) => return Ok(answer),
                Err(error) => why = error,
            }
        }
        Err(why)
    }
}

/// CAs' certificates over HTTP.
#[derive(Debug)]
pub(crate) struct HttpIssuers {
    agent: Agent,
}

impl HttpIssuers {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { agent: agent(timeout) }
    }
}

impl IssuerSource for HttpIssuers {
    fn fetch(&self, address: &str) -> Result<Vec<u8>, String> {
        is_plain_http(address)?;
        let failed = |error: ureq::Error| format!("{address}: {error}");
        let mut response = self.agent.get(address).call().map_err(failed)?;
        let body = response.body_mut().with_config().limit(LARGEST_ISSUERS_BYTES);
        body.read_to_vec().map_err(failed)
    }
}

fn agent(timeout: Duration) -> Agent {
    let config = Agent::config_builder().timeout_global(Some(timeout)).max_redirects(0).proxy(None);
    config.build().into()
}

fn is_plain_http(address: &str) -> Result<(), String> {
    match address.starts_with("http://") {
        true => Ok(()),
        false => Err(format!("{address}: only http:// is asked")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// A responder that gives one answer, and what it was sent.
    fn responder(answer: Vec<u8>) -> (String, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/ocsp", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut sent = Vec::new();
            let mut part = [0; 1024];
            while !is_whole(&sent) {
                let read = stream.read(&mut part).unwrap();
                sent.extend_from_slice(&part[..read]);
            }
            // Whoever had enough has gone.
            let _ = stream.write_all(&answer);
            sent
        });
        (address, served)
    }

    /// The tests' question has been posted, or something is to be got.
    fn is_whole(sent: &[u8]) -> bool {
        sent.ends_with(b"question") || sent.starts_with(b"GET") && sent.ends_with(b"\r\n\r\n")
    }

    fn http(status: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    fn ask(instead: Option<&str>, named: &[&str]) -> Result<Vec<u8>, String> {
        let named: Vec<String> = named.iter().map(ToString::to_string).collect();
        let timeout = Duration::from_millis(1500);
        HttpResponders::new(timeout, instead.map(str::to_owned)).ask(&named, b"question")
    }

    #[test]
    fn a_request_is_posted_as_rfc_6960_has_it() {
        let (address, served) = responder(http("200 OK", b"answer"));
        assert_eq!(ask(None, &["http://127.0.0.1:1/nobody", &address]).unwrap(), b"answer");
        let sent = String::from_utf8(served.join().unwrap()).unwrap().to_ascii_lowercase();
        assert!(sent.starts_with("post /ocsp http/1.1\r\n"), "{sent}");
        assert!(sent.contains("content-type: application/ocsp-request\r\n"), "{sent}");
    }

    #[test]
    fn the_named_responder_is_asked_instead() {
        let (address, served) = responder(http("200 OK", b"answer"));
        assert_eq!(ask(Some(&address), &["http://127.0.0.1:1/"]).unwrap(), b"answer");
        served.join().unwrap();
    }

    #[test]
    fn answers_that_are_none() {
        let large = http("200 OK", &vec![0; LARGEST_ANSWER_BYTES as usize + 1]);
        let elsewhere = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n".to_vec();
        for answer in [large, elsewhere, http("500 No", b"answer"), b"no HTTP\r\n\r\n".to_vec()] {
            let (address, served) = responder(answer);
            let found = ask(None, &[&address]);
            assert!(!matches!(&found, Ok(body) if !body.is_empty()), "{found:?}");
            served.join().unwrap();
        }
    }

    #[test]
    fn only_plain_http_and_only_for_so_long() {
        assert!(ask(None, &["https://127.0.0.1/"]).unwrap_err().contains("only http://"));
        assert!(ask(None, &[]).unwrap_err().contains("names no responder"));
        // Somebody who never answers.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = format!("http://{}/", listener.local_addr().unwrap());
        assert!(ask(None, &[&silent]).is_err());
    }
    fn fetch(address: &str) -> Result<Vec<u8>, String> {
        HttpIssuers::new(Duration::from_millis(1500)).fetch(address)
    }

    #[test]
    fn a_certificate_is_fetched_and_nothing_else() {
        let (address, served) = responder(http("200 OK", b"certificate"));
        assert_eq!(fetch(&address).unwrap(), b"certificate");
        assert!(served.join().unwrap().starts_with(b"GET /ocsp HTTP/1.1\r\n"));
        let largest = http("200 OK", &vec![0; LARGEST_ISSUERS_BYTES as usize]);
        let large = http("200 OK", &vec![0; LARGEST_ISSUERS_BYTES as usize + 1]);
        let elsewhere = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n".to_vec();
        for (answer, good) in [(largest, true), (large, false), (elsewhere, false)] {
            let (address, served) = responder(answer);
            let found = fetch(&address);
            assert_eq!(found.is_ok_and(|body| !body.is_empty()), good);
            served.join().unwrap();
        }
        for address in ["https://127.0.0.1/", "ldap://127.0.0.1/", "file:///etc/passwd"] {
            assert!(fetch(address).unwrap_err().contains("only http://"));
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(fetch(&format!("http://{}/", listener.local_addr().unwrap())).is_err());
    }
}
