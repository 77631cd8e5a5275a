//! The server with the shipped configuration: who gets in, how far, and what a relay does to it.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectOptions, Event, RequestErrorKind};
use futures_util::StreamExt;

use crate::support::{Machine, Nats, Relay, eventually};

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The client's sockets belong to the calling thread's network.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TIME_LIMIT, future).await.expect("an end") })
}

/// Connects, and hears what becomes of the connection.
async fn connect(
    url: &str,
    ca: Option<&Path>,
    user: Option<&Path>,
) -> Result<(Client, Receiver<Event>), ConnectError> {
    let (sender, events) = channel();
    let mut options = ConnectOptions::new()
        // What was under way when a connection broke is not answered.
        .request_timeout(Some(Duration::from_secs(2)))
        .event_callback(move |event| {
            let _ = sender.send(event);
            async {}
        });
    if let Some(ca) = ca {
        options = options.add_root_certificates(ca.to_owned());
    }
    if let Some(user) = user {
        options = options.credentials_file(user).await.unwrap();
    }
    Ok((options.connect(url).await?, events))
}

/// Whether a question of a coordinator reaches the server: it says that nobody is there to answer.
async fn is_heard(client: &Client) -> bool {
    let answer = client.request("tapstone.agent.0.claim", "there?".into()).await;
    answer.is_err_and(|error| error.kind() == RequestErrorKind::NoResponders)
}

#[test]
fn agents_are_asked_and_coordinators_ask() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let ca = Some(made.ca.as_path());
    block_on(async {
        let (agent, at_agent) = connect(&nats.url(), ca, Some(&made.agent)).await.unwrap();
        let mut questions = agent.subscribe("tapstone.agent.1.claim").await.unwrap();
        // Neither may do what is the other's; the server has refused before it hears the rest.
        agent.publish("tapstone.agent.2.claim", "mine".into()).await.unwrap();
        agent.flush().await.unwrap();
        let (lab, at_lab) = connect(&nats.url(), ca, Some(&made.coordinator)).await.unwrap();
        lab.publish("tapstone.run.1", "result".into()).await.unwrap();
        let asked = tokio::spawn({
            let lab = lab.clone();
            async move { lab.request("tapstone.agent.1.claim", "free?".into()).await }
        });
        let question = questions.next().await.unwrap();
        agent.publish(question.reply.unwrap(), "yes".into()).await.unwrap();
        assert_eq!(asked.await.unwrap().unwrap().payload.as_ref(), b"yes");
        let refused = |events: &Receiver<Event>, subject: &str| {
            events.try_iter().any(|event| match event {
                Event::ServerError(error) => {
                    let text = error.to_string().to_lowercase();
                    text.contains("permissions violation") && text.contains(subject)
                }
                _ => false,
            })
        };
        assert!(refused(&at_agent, "tapstone.agent.2.claim"));
        assert!(refused(&at_lab, "tapstone.run.1"));
    });
}

#[test]
fn nobody_else_gets_in() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let strangers = Nats::secured().unwrap();
    let strange = strangers.credentials().unwrap();
    let ca = Some(made.ca.as_path());
    let url = nats.url();
    block_on(async {
        assert!(connect(&url, ca, None).await.is_err(), "no credentials");
        assert!(connect(&url, ca, Some(&strange.agent)).await.is_err(), "another laboratory's");
        let agent = Some(made.agent.as_path());
        assert!(connect(&url, Some(&strange.ca), agent).await.is_err(), "another server's");
        assert!(connect(&url, None, agent).await.is_err(), "a server that nobody vouches for");
        assert!(connect(&url, ca, agent).await.is_ok());
    });
}

#[test]
fn what_is_secret_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let Some(nats) = Nats::secured() else { return };
    let lab = nats.credentials().unwrap().ca.parent().unwrap().to_owned();
    let mut looked_at = 0;
    for entry in fs::read_dir(&lab).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        looked_at += 1;
    }
    assert!(looked_at >= 8, "{looked_at}");
    // Made once: nothing is overwritten.
    let again = crate::support::command(Path::new(crate::support::DEPLOY).join("make-lab"))
        .arg(&lab)
        .output()
        .unwrap();
    let stderr = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success());
    assert!(stderr.starts_with("error: ") && stderr.contains("\nhint: "), "{stderr}");
}

#[test]
fn a_machine_comes_in_through_its_relay_and_again_after_a_break() {
    let Some(machine) = Machine::new(0) else { return };
    let Some(mut nats) = Nats::secured() else { return };
    let relay =
        Relay::from_within(machine.network(), nats.address()).delay(Duration::from_millis(20));
    let made = nats.credentials().unwrap().clone();
    let url = nats.url_at(relay.address());
    let (restart, wanted) = channel();
    let (restarted, back) = channel();
    let relay = &relay;
    thread::scope(|scope| {
        // The server is started from this thread, which is not in the machine's network.
        scope.spawn(move || {
            wanted.recv().unwrap();
            nats.stop();
            nats.start_again();
            restarted.send(nats).unwrap();
        });
        machine.network().within(move || {
            block_on(async {
                let (client, _) =
                    connect(&url, Some(&made.ca), Some(&made.coordinator)).await.unwrap();
                assert!(is_heard(&client).await);
                relay.break_connections();
                while !is_heard(&client).await {}
                assert_eq!(relay.connections_ever(), 2);
                restart.send(()).unwrap();
                let _nats = back.recv().unwrap();
                while !is_heard(&client).await {}
                assert!(relay.connections_ever() > 2);
            });
        });
    });
}

#[test]
fn a_server_without_tls_is_an_ordinary_one() {
    let Some(mut nats) = Nats::open() else { return };
    assert!(nats.credentials().is_none());
    let url = nats.url();
    block_on(async {
        let (client, _) = connect(&url, None, None).await.unwrap();
        assert!(is_heard(&client).await);
    });
    let [address, pid] = [nats.address().to_string(), format!("{:?}", nats.pid())];
    nats.kill();
    assert!(block_on(connect(&url, None, None)).is_err());
    nats.start_again();
    assert_eq!(nats.address().to_string(), address);
    assert_ne!(format!("{:?}", nats.pid()), pid);
    assert!(eventually(TIME_LIMIT, || block_on(connect(&url, None, None)).is_ok()));
    assert!(nats.log().contains("Server is ready"), "{}", nats.log());
}
