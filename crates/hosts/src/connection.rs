//! The connection to NATS: who may be trusted with a plan and its results.
//!
//! Without TLS it goes to this machine only, unless the user says otherwise; a secret is read from
//! a file, never from the command line.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use tapstone_files::{FileLimit, read_text};

use crate::error::HostsError;
use crate::identity::Identity;
use crate::wire::inbox_prefix;

/// A server, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its address: `tls://hub:4222`, `nats://127.0.0.1:4222`.
    pub url: String,
    /// Who we are to it.
    pub credentials: Option<Credentials>,
    /// A certificate that it is checked against, besides those of the system.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key, if it asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The network may be used without TLS.
    pub without_tls: bool,
}

/// Who we are to a server, by a file.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A JWT and an NKEY seed, as `nsc` writes them (`.creds`).
    Creds(PathBuf),
    /// A file with an NKEY seed.
    Nkey(PathBuf),
    /// A file that holds `user:password`.
    Password(PathBuf),
}

/// How long a connection may take to come about.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A silent server is noticed after two of these.
const PING: Duration = Duration::from_secs(2);

impl Server {
    /// Connects; from then on it reconnects by itself for as long as the client lives.
    pub(crate) async fn connect(&self, name: &str, who: Identity) -> Result<Client, HostsError> {
        let address = self.address()?;
        let secure = matches!(address.scheme(), "tls" | "wss") || !self.may_be_plain(&address);
        let mut options = ConnectOptions::new()
            .name(name)
            .custom_inbox_prefix(inbox_prefix(who))
            .require_tls(secure)
            .connection_timeout(TIME_LIMIT)
            .ping_interval(PING)
            .max_reconnects(None)
            .reconnect_delay_callback(|attempt| {
                Duration::from_millis(100 * attempt as u64).min(Duration::from_secs(1))
            });
        if !secure && !self.without_tls {
            // A server can name others of its cluster, which are elsewhere.
            options = options.ignore_discovered_servers();
        }
        options = match &self.credentials {
            None => options,
            Some(credentials) => credentials.add_to(options)?,
        };
        if let Some(path) = &self.ca {
            options = options.add_root_certificates(readable(path)?);
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(readable(certificate)?, readable(key)?);
        }
        let url = self.url.clone();
        options.connect(address).await.map_err(|error| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                if !text.contains(&cause.to_string()) {
                    text = format!("{text}: {cause}");
                }
                source = cause.source();
            }
            let hint = if is_refusal(error.kind()) {
                "the server is there, and does not take these credentials: are they of this \
                 server, of this agent or coordinator, and not expired?"
            } else if secure {
                "is the server there, does it speak TLS, and is its certificate's issuer known \
                 (--ca)? Without TLS only loopback is used, unless --insecure-no-tls says otherwise"
            } else {
                "is `nats-server -c FILE` running there, and do the credentials belong to it?"
            };
            HostsError::Connect { url, text, hint }
        })
    }

    fn address(&self) -> Result<ServerAddr, HostsError> {
        let address: ServerAddr = self.url.parse().map_err(|error: io::Error| HostsError::Url {
            url: self.url.clone(),
            text: error.to_string(),
        })?;
        if address.username().is_some() || address.password().is_some() {
            return Err(HostsError::SecretInUrl);
        }
        Ok(address)
    }

    fn may_be_plain(&self, address: &ServerAddr) -> bool {
        self.without_tls || is_loopback(address.host())
    }
}

/// The server answered, and does not let us in.
const fn is_refusal(kind: ConnectErrorKind) -> bool {
    matches!(kind, ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation)
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Credentials {
    fn add_to(&self, options: ConnectOptions) -> Result<ConnectOptions, HostsError> {
        match self {
            Self::Creds(path) => {
                let text = read(path)?;
                options.credentials(&text).map_err(|error| HostsError::Credentials {
                    path: path.clone(),
                    text: error.to_string(),
                    hint: "a .creds file holds a user's JWT and NKEY seed, as nsc writes it",
                })
            }
            Self::Nkey(path) => Ok(options.nkey(read(path)?.trim().to_owned())),
            Self::Password(path) => {
                let text = read(path)?;
                let (user, password) =
                    text.trim_end_matches('\n').split_once(':').ok_or_else(|| {
                        HostsError::Credentials {
                            path: path.clone(),
                            text: "no colon".to_owned(),
                            hint: "the file holds user:password in one line",
                        }
                    })?;
                Ok(options.user_and_password(user.to_owned(), password.to_owned()))
            }
        }
    }
}

fn read(path: &Path) -> Result<String, HostsError> {
    read_text(path, FileLimit::CREDENTIAL).map_err(|error| unreadable(path, &error))
}

fn readable(path: &Path) -> Result<PathBuf, HostsError> {
    fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(path.to_owned())
}

fn unreadable(path: &Path, error: &io::Error) -> HostsError {
    HostsError::Credentials {
        path: path.to_owned(),
        text: error.to_string(),
        hint: "does the file exist, and may this user read it?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Server {
        Server {
            url: url.into(),
            credentials: None,
            ca: None,
            certificate: None,
            without_tls: false,
        }
    }

    #[test]
    fn only_loopback_is_used_without_tls() {
        for (url, plain) in [
            ("nats://127.0.0.1:4222", true),
            ("localhost", true),
            ("nats://[::1]:4222", true),
            ("nats://10.0.0.1:4222", false),
            ("hub", false),
            ("nats://localhost.example:4222", false),
        ] {
            let server = server(url);
            let address = server.address().unwrap();
            assert_eq!(server.may_be_plain(&address), plain, "{url}");
        }
        let told = Server { without_tls: true, ..server("nats://10.0.0.1") };
        assert!(told.may_be_plain(&told.address().unwrap()));
    }

    #[test]
    fn a_secret_in_the_url_is_refused_and_not_shown() {
        let error = server("nats://user:hunter2@localhost").address().unwrap_err().to_string();
        assert!(error.contains("hint: ") && !error.contains("hunter2"), "{error}");
    }
}
