//! OpenSSL as the CA of a card: CRLs, OCSP answers, a responder, and certificates made anew.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::people::Holder;
use crate::support::skip;

const CONFIGURATION: &str = "[ca]\ndefault_ca = own\n[own]\ndatabase = index\ncertificate = ca.pem\n\
                             private_key = ca.p8\ndefault_md = sha256\ncrlnumber = crlnumber\n";

/// What became of the card's certificate, as the CA's index has it.
#[derive(Clone, Copy)]
pub(crate) enum Status {
    Good,
    Revoked,
    NobodyKnows,
}

/// The CA of a card, in a folder of its own.
pub(crate) struct Authority {
    folder: TempDir,
    serial: String,
}

impl Authority {
    /// `None` without OpenSSL.
    pub(crate) fn of(holder: &Holder) -> Option<Self> {
        match Command::new("openssl").arg("version").output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip("openssl");
                return None;
            }
            output => assert!(output.unwrap().status.success()),
        }
        let folder = tempfile::tempdir().unwrap();
        let card = holder.folder();
        let copy = |from: &str, to: &str| {
            std::fs::copy(card.join(from), folder.path().join(to)).unwrap();
        };
        copy("ca.der", "ca.der");
        copy("ca.p8", "ca.p8");
        copy("card_authentication_9e.der", "card.der");
        copy("card_authentication_9e.p8", "card.p8");
        let mut own = Self { folder, serial: String::new() };
        own.openssl("x509 -inform DER -in ca.der -out ca.pem");
        own.openssl("x509 -inform DER -in card.der -out card.pem");
        let serial = own.openssl("x509 -in card.pem -noout -serial");
        own.serial = serial.trim().trim_start_matches("serial=").to_owned();
        own.write("ca.cnf", CONFIGURATION);
        own.write("crlnumber", "01\n");
        own.write("index.attr", "");
        Some(own)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn openssl(&self, arguments: &str) -> String {
        let output = Command::new("openssl")
            .current_dir(self.folder.path())
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn set(&self, status: Status) {
        let serial = &self.serial;
        self.write(
            "index",
            &match status {
                Status::Good => format!("V\t401231000000Z\t\t{serial}\tunknown\t/CN=card\n"),
                Status::Revoked => {
                    format!("R\t401231000000Z\t260101000000Z\t{serial}\tunknown\t/CN=card\n")
                }
                Status::NobodyKnows => String::new(),
            },
        );
    }

    /// A CRL, in PEM.
    pub(crate) fn list(&self, status: Status) -> PathBuf {
        self.set(status);
        self.openssl("ca -config ca.cnf -gencrl -crldays 10 -out list.pem");
        self.path("list.pem")
    }

    /// An OCSP answer that is fetched beforehand.
    pub(crate) fn answer(&self, status: Status) -> PathBuf {
        self.set(status);
        self.openssl(
            "ocsp -index index -rsigner ca.pem -rkey ca.p8 -CA ca.pem -CAfile ca.pem -issuer ca.pem \
             -cert card.pem -ndays 2 -respout answer.der",
        );
        self.path("answer.der")
    }

    /// OpenSSL's responder, which ends after so many answers.
    pub(crate) fn responder(&self, status: Status, answers: u32) -> Responder {
        self.set(status);
        let mut child = Command::new("openssl")
            .current_dir(self.folder.path())
            .args(["ocsp", "-index", "index", "-port", "0", "-rsigner", "ca.pem", "-rkey", "ca.p8"])
            .args(["-CA", "ca.pem", "-ndays", "1", "-nrequest", &answers.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // ACCEPT [::]:44551 PID=8757
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split_whitespace().nth(1).and_then(|at| at.rsplit(':').next()).unwrap();
        Responder { address: format!("http://127.0.0.1:{port}/"), child }
    }

    /// A root above the CA, and the card's certificate once more, with the address of its CA's. The
    /// CA's own certificate is in `between.der`.
    pub(crate) fn below_a_root(&self, holder: &Holder, address: &str) -> PathBuf {
        self.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout root.key -subj \
             /CN=Root -days 100 -out root.pem",
        );
        let again = |from: &str, key: &str, by: &str, by_key: &str, to: &str, more: &str| {
            self.openssl(&format!(
                "x509 -x509toreq -in {from} -signkey {key} -copy_extensions copy -out request"
            ));
            self.openssl(&format!(
                "x509 -req -in request -CA {by} -CAkey {by_key} -copy_extensions copyall -days 50 \
                 -outform DER -out {to} {more}"
            ));
        };
        again("ca.pem", "ca.p8", "root.pem", "root.key", "between.der", "-set_serial 2");
        self.write("access.cnf", &format!("authorityInfoAccess = caIssuers;URI:{address}\n"));
        let more = "-set_serial 0x4711 -extfile access.cnf";
        again("card.pem", "card.p8", "ca.pem", "ca.p8", "below.der", more);
        let to = holder.folder().join("card_authentication_9e.der");
        std::fs::copy(self.path("below.der"), to).unwrap();
        self.path("root.pem")
    }
}

/// A responder, until it goes out of scope.
pub(crate) struct Responder {
    pub(crate) address: String,
    child: Child,
}

impl Drop for Responder {
    fn drop(&mut self) {
        // One that gave all its answers has ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Gives one file to everybody who asks, and counts them.
pub(crate) struct FileServer {
    pub(crate) address: String,
    served: Arc<AtomicUsize>,
    listener: TcpListener,
}

impl FileServer {
    /// It gives nothing yet: what it is to give may have its address in it.
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/issuer.cer", listener.local_addr().unwrap());
        Self { address, served: Arc::default(), listener }
    }

    /// The thread ends with the program of the tests.
    pub(crate) fn serve(&self, file: &Path) {
        let body = std::fs::read(file).unwrap();
        let listener = self.listener.try_clone().unwrap();
        let served = Arc::clone(&self.served);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).unwrap();
                served.fetch_add(1, Ordering::SeqCst);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                // Whoever had enough has gone.
                let _ = stream.write_all(&[head.as_bytes(), &body].concat());
            }
        });
    }

    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }
}
