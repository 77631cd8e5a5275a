//! The way to OCSP responders: plain HTTP, as RFC 6960 has it (the answers are signed), with limits
//! on time and size, no redirections, and no proxy that an environment variable names.

use std::time::Duration;

use tapstone_piv::OcspSource;
use ureq::Agent;

/// An answer with its signer's certificates has 2 to 5 KB.
const LARGEST_ANSWER_BYTES: u64 = 65_536;

/// So many addresses of one certificate are tried.
const MOST_ADDRESSES: usize = 4;

/// Responders over HTTP.
#[derive(Debug)]
pub(crate) struct HttpResponders {
    agent: Agent,
    /// Whom to ask instead of those that a certificate names.
    instead: Option<String>,
}

impl HttpResponders {
    pub(crate) fn new(timeout: Duration, instead: Option<String>) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .proxy(None)
            .build();
        Self { agent: config.into(), instead }
    }

    fn post(&self, address: &str, request: &[u8]) -> Result<Vec<u8>, String> {
        if !address.starts_with("http://") {
            return Err(format!("{address}: only http:// is asked"));
        }
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
