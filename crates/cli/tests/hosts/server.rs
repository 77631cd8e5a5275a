//! The server with the shipped configuration: who gets in, how far, and what a relay does to it.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectOptions, Event};
use futures_util::StreamExt;

use crate::support::{Credentials, Machine, Nats, Relay, eventually, is_heard};

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

/// A client of the secured laboratory, whose inbox is its own.
async fn member(nats: &Nats, creds: &Path, identity: &str) -> (Client, Receiver<Event>) {
    connect_member(&nats.url(), nats.credentials().unwrap(), creds, identity).await
}

/// A coordinator, by way of a relay.
async fn member_at(url: &str, made: &Credentials, name: &str) -> (Client, Receiver<Event>) {
    let identity = made.identity_of_coordinator(name);
    connect_member(url, made, &made.coordinator(name), &identity).await
}

async fn connect_member(
    url: &str,
    made: &Credentials,
    creds: &Path,
    identity: &str,
) -> (Client, Receiver<Event>) {
    let (sender, events) = channel();
    let options = ConnectOptions::new()
        // What was under way when a connection broke is not answered.
        .request_timeout(Some(Duration::from_secs(2)))
        .custom_inbox_prefix(format!("_INBOX.{identity}"))
        .add_root_certificates(made.ca.clone())
        .event_callback(move |event| {
            let _ = sender.send(event);
            async {}
        });
    let options = options.credentials_file(creds).await.unwrap();
    (options.connect(url).await.unwrap(), events)
}

#[test]
fn each_hears_and_says_what_is_its_own() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let [one, two] = ["client-1", "client-2"].map(|name| made.identity_of(name));
    let lab = made.identity_of_coordinator("lab");
    let other = made.identity_of_coordinator("other");
    block_on(async {
        let (agent, at_agent) = member(&nats, &made.agent("client-1"), &one).await;
        let (coordinator, at_lab) = member(&nats, &made.coordinator("lab"), &lab).await;
        let mut questions = agent.subscribe(format!("tapstone.agent.{one}.ask")).await.unwrap();
        let mut told =
            coordinator.subscribe(format!("tapstone.coordinator.{lab}.1.*")).await.unwrap();
        assert!(is_heard(&coordinator).await);
        // The server has refused all this before it hears the rest.
        let not_the_agents = [
            format!("tapstone.agent.{two}.ask"),
            format!("tapstone.coordinator.{lab}.1.{two}"),
            format!("_INBOX.{lab}.1"),
        ];
        for subject in &not_the_agents {
            agent.publish(subject.clone(), "mine".into()).await.unwrap();
        }
        let not_the_agents_ears = [
            format!("tapstone.agent.{two}.run"),
            "tapstone.coordinator.>".into(),
            "_INBOX.>".into(),
        ];
        for subject in &not_the_agents_ears {
            let _ = agent.subscribe(subject.clone()).await.unwrap();
        }
        // An agent has no inbox: what arrives here shows that the server has heard all before it.
        let result = format!("tapstone.coordinator.{lab}.1.{one}");
        agent.publish(result.clone(), "result".into()).await.unwrap();
        assert_eq!(told.next().await.unwrap().payload.as_ref(), b"result");
        let not_the_labs = result.clone();
        coordinator.publish(not_the_labs.clone(), "result".into()).await.unwrap();
        let not_the_labs_ears =
            [format!("tapstone.coordinator.{other}.>"), format!("_INBOX.{other}.>")];
        for subject in &not_the_labs_ears {
            let _ = coordinator.subscribe(subject.clone()).await.unwrap();
        }
        let asked = tokio::spawn({
            let coordinator = coordinator.clone();
            let subject = format!("tapstone.agent.{one}.ask");
            async move { coordinator.request(subject, "free?".into()).await }
        });
        let question = questions.next().await.unwrap();
        let reply = question.reply.unwrap();
        agent.publish(reply.clone(), "yes".into()).await.unwrap();
        assert_eq!(asked.await.unwrap().unwrap().payload.as_ref(), b"yes");
        // One question, one answer.
        agent.publish(reply.clone(), "no".into()).await.unwrap();
        agent.publish(result, "another".into()).await.unwrap();
        assert_eq!(told.next().await.unwrap().payload.as_ref(), b"another");
        assert!(is_heard(&coordinator).await);
        // What the server refused is told by a task of its own.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let refused = |events: &Receiver<Event>| -> String {
            let texts = events.try_iter().filter_map(|event| match event {
                Event::ServerError(error) => Some(error.to_string().to_lowercase()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        };
        let at_agent = refused(&at_agent);
        let at_lab = refused(&at_lab);
        for subject in not_the_agents.iter().chain(&not_the_agents_ears) {
            assert!(at_agent.contains(&subject.to_lowercase()), "{subject}: {at_agent}");
        }
        assert!(at_agent.contains(&reply.to_lowercase()), "{at_agent}");
        for subject in not_the_labs_ears.iter().chain([&not_the_labs]) {
            assert!(at_lab.contains(&subject.to_lowercase()), "{subject}: {at_lab}");
        }
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
    let [agent, anothers] = [made, strange].map(|made| made.agent("client-1"));
    block_on(async {
        assert!(connect(&url, ca, None).await.is_err(), "no credentials");
        assert!(connect(&url, ca, Some(&anothers)).await.is_err(), "another laboratory's");
        assert!(connect(&url, Some(&strange.ca), Some(&agent)).await.is_err(), "another server's");
        assert!(
            connect(&url, None, Some(&agent)).await.is_err(),
            "a server that nobody vouches for"
        );
        assert!(connect(&url, ca, Some(&agent)).await.is_ok());
    });
}

#[test]
fn what_is_secret_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let Some(nats) = Nats::secured() else { return };
    let lab = nats.credentials().unwrap().lab.clone();
    let mut looked_at = 0;
    let mut folders = vec![lab.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
            looked_at += 1;
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    assert!(looked_at >= 6 + 5 * 4, "{looked_at}");
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
                let (client, _) = member_at(&url, &made, "lab").await;
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
