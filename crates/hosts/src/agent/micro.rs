//! An agent as NATS's service protocol shows it (ADR-32), for `nats micro ls`. A hint and no more:
//! nothing of it is signed, nobody rests on it, and it names no target, module or token.

use serde_json::json;

use crate::identity::Identity;
use crate::wire::VERSION;

/// Where services are asked for.
pub(super) const SERVICE_SUBJECT: &str = "$SRV.>";

const NAME: &str = "tapstone-agent";

/// The answer to a question about services; `None` if another service is meant.
pub(super) fn service_answer(subject: &str, me: Identity, agent: &str) -> Option<Vec<u8>> {
    let mut tokens = subject.split('.').skip(1);
    let verb = tokens.next()?;
    let id = me.to_string();
    let is_meant = tokens.next().is_none_or(|name| name == NAME)
        && tokens.next().is_none_or(|wanted| wanted == id);
    let kind = match verb {
        "PING" => "ping",
        "INFO" => "info",
        "STATS" => "stats",
        _ => return None,
    };
    let mut answer = json!({
        "type": format!("io.nats.micro.v1.{kind}_response"),
        "name": NAME,
        "id": id,
        "version": VERSION,
        "metadata": { "agent": agent },
    });
    match kind {
        "info" => {
            answer["description"] = "an agent of tapstone token --hosts".into();
            answer["endpoints"] = json!([]);
        }
        "stats" => answer["endpoints"] = json!([]),
        _ => {}
    }
    is_meant.then(|| answer.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_meant_for_it_is_answered() {
        let me = Identity([7; 32]);
        let answered = |subject: &str| service_answer(subject, me, "client-1").is_some();
        assert!(answered("$SRV.PING") && answered("$SRV.INFO.tapstone-agent"));
        assert!(answered(&format!("$SRV.STATS.tapstone-agent.{me}")));
        assert!(!answered("$SRV.PING.other") && !answered("$SRV.INFO.tapstone-agent.other"));
        assert!(!answered("$SRV.MORE") && !answered("$SRV"));
    }
}
