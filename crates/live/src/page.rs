//! The page that shows a run while it goes on. It asks for nothing but its own events.

/// Where the page's secret goes, without which no script runs in it.
const NONCE: &str = "{nonce}";

/// The page, whose script carries this nonce (CSP Level 3, 2.3.1).
pub(crate) fn live_page(nonce: &str) -> String {
    include_str!("page.html").replace(NONCE, nonce)
}

/// What the page may do: run its own script, and ask this server.
pub(crate) fn policy_of_live_page(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// What the page of a record may do. It is one file that has all its scripts inside.
pub(crate) const POLICY_OF_RECORD: &str = "default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";
