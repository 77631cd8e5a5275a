//! Existing keys of a real token, SoftHSM2's, and an enrolled coordinator that asks for more than the
//! agent's configuration allows.

#[path = "../softhsm/support/hsm.rs"]
#[allow(dead_code, reason = "tests on SoftHSM2 without hosts need more of it")]
mod hsm;

use std::fs;

use tapstone_record::{Outcome as CaseOutcome, Verifier};

use self::hsm::Hsm;
use crate::laboratory::{Agent, Home};
use crate::run::{Outcome, Tapstone};
use crate::support::{Nats, skip};

/// A token with keys that were there before any run.
fn token() -> Option<Hsm> {
    let hsm = Hsm::new()?;
    hsm.pkcs11_tool("--keypairgen --key-type rsa:2048 --label payroll --id 01")?;
    hsm.pkcs11_tool("--keypairgen --key-type rsa:2048 --label root-ca --id 02")?;
    hsm.pkcs11_tool("--keypairgen --key-type EC:prime256v1 --label exchange --id 03")?;
    hsm.pkcs11_tool("--keygen --key-type AES:32 --label kek --id 04")?;
    Some(hsm)
}

/// An agent that offers this token, with more lines for its target.
fn agent(hsm: &Hsm, nats: &Nats, more: &str) -> Agent {
    let home = Home::new("bank", "");
    let file = home.path("agent.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (keys, _) = text.split_once("[targets.null]").unwrap();
    let target = format!(
        "[targets.null]\nmodule = '{}'\ntoken-label = '{}'\npin-file = '{}'\n{more}",
        hsm.module().display(),
        hsm.label(),
        hsm.path("pin").display()
    );
    fs::write(&file, format!("{keys}{target}")).unwrap();
    Agent::start_as(home, &nats.url(), &[], |command| {
        command.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"))
    })
}

fn ask(nats: &Nats, label: &str, operation: &str) -> Outcome {
    let lab = Tapstone::on_hosts(1, &nats.url()).args("--count 20 --warm-up 0.01");
    lab.arg("--key-label").arg(label).arg("--op").arg(operation).run()
}

#[test]
fn an_existing_key_does_what_the_agent_allows_and_nothing_else() {
    let Some(nats) = Nats::open() else { return };
    let Some(hsm) = token() else { return };
    let before = hsm.objects();
    let listed = "existing-keys = ['payroll', 'exchange', 'kek']\n";
    let bank = agent(&hsm, &nats, listed);
    // Listed keys sign and encrypt.
    for (label, operation, by) in [
        ("payroll", "rsa2048.sign", Verifier::Agent),
        ("exchange", "ecdsa-p256.sign", Verifier::Agent),
        ("kek", "aes256-cbc.encrypt", Verifier::Token),
    ] {
        let row = ask(&nats, label, operation).exits(0).row();
        assert_eq!((row.status.outcome, row.completed), (CaseOutcome::Ok, 20), "{operation}");
        let verification = row.verification.unwrap();
        assert_eq!((verification.by, verification.wrong), (by, 0), "{operation}");
        // By the public half the coordinator can judge; a secret value it is never told.
        let own = verification.own_sample.map(|own| (own.checked, own.wrong, own.unproven));
        assert_eq!(own, (by == Verifier::Agent).then_some((20, 0, 0)), "{operation}");
    }
    // They do nothing else, and others nothing at all; each refusal tells the line.
    let more =
        |label: &str, what: &str| format!("would: key-operations.\"{label}\" = [\"{what}\"]");
    for (label, operation, line) in [
        ("payroll", "rsa2048.decrypt", more("payroll", "decrypt")),
        ("kek", "aes256-cbc.decrypt", more("kek", "decrypt")),
        ("kek", "aes256.wrap", more("kek", "wrap")),
        ("kek", "aes256.unwrap", more("kek", "unwrap")),
        ("exchange", "ecdh-p256.derive", more("exchange", "derive")),
        (
            "root-ca",
            "rsa2048.sign",
            "would: existing-keys = [\"exchange\", \"kek\", \"payroll\", \"root-ca\"]".into(),
        ),
    ] {
        let outcome = ask(&nats, label, operation).exits(2);
        assert!(outcome.stderr.contains(&line), "{operation}: {}", outcome.stderr);
        assert_eq!(outcome.row().completed, 0, "{operation}");
    }
    drop(bank);
    // The line that was told allows it, and that alone.
    let more = format!("{listed}key-operations.\"payroll\" = [\"decrypt\"]\n");
    let bank = agent(&hsm, &nats, &more);
    assert_eq!(ask(&nats, "payroll", "rsa2048.decrypt").exits(0).row().completed, 20);
    ask(&nats, "kek", "aes256-cbc.decrypt").exits(2);
    drop(bank);
    assert!(hsm.objects() == before, "every attribute is as it was");
}
