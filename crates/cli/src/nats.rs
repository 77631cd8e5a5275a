//! The options of the connection to NATS, which three verbs have.

use std::path::PathBuf;

use clap::Args;
use tapstone_hosts::{Credentials, Enrolment, Server};

/// Where the server is, and who we are to it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "NATS")]
pub(crate) struct NatsArguments {
    /// The NATS server: tls://hub:4222
    #[arg(long, value_name = "URL", env = "TAPSTONE_NATS")]
    pub(crate) nats: Option<String>,
    /// The file with a user's JWT and seed, as nsc writes it
    #[arg(long, value_name = "FILE", requires = "nats", conflicts_with_all = ["nkey", "user_file"])]
    pub(crate) creds: Option<PathBuf>,
    /// The file with an NKEY seed
    #[arg(long, value_name = "FILE", requires = "nats", conflicts_with = "user_file")]
    pub(crate) nkey: Option<PathBuf>,
    /// The file with user:password
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) user_file: Option<PathBuf>,
    /// A certificate that the server's is checked against, besides those of the system
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, for a server that asks for one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Use the network without TLS: everybody on it can read plans and results, and make them
    #[arg(long, requires = "nats")]
    pub(crate) insecure_no_tls: bool,
}

impl NatsArguments {
    /// The server that the options describe.
    pub(crate) fn server(&self) -> anyhow::Result<Server> {
        let Some(url) = self.nats.clone() else {
            anyhow::bail!(
                "--nats is missing\nhint: the address of the NATS server: --nats tls://hub:4222"
            );
        };
        let creds = self.creds.clone().map(Credentials::Creds);
        let nkey = self.nkey.clone().map(Credentials::Nkey);
        let password = self.user_file.clone().map(Credentials::Password);
        Ok(Server {
            url,
            credentials: creds.or(nkey).or(password),
            ca: self.ca.clone(),
            certificate: self.tls_cert.clone().zip(self.tls_key.clone()),
            without_tls: self.insecure_no_tls,
        })
    }
}

/// Who a coordinator is to agents, and which it knows.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "NATS")]
pub(crate) struct EnrolmentArguments {
    /// The file with our packet key and the agents' public ones: coordinator.toml of make-lab
    #[arg(long, value_name = "FILE", env = "TAPSTONE_ENROLMENT")]
    pub(crate) enrolment: Option<PathBuf>,
}

impl EnrolmentArguments {
    /// The enrolment that the option names.
    pub(crate) fn read(&self) -> anyhow::Result<Enrolment> {
        let Some(path) = &self.enrolment else {
            anyhow::bail!(
                "--enrolment is missing\nhint: agents hear only whom they know, and are believed \
                 only by whom knows them: --enrolment coordinator.toml, which deploy/make-lab makes"
            );
        };
        Ok(Enrolment::read(path)?)
    }
}
