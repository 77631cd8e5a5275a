//! One run as its agent sees it: the coordinator's packets on one side, the plan's thread on the
//! other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use async_nats::Client;
use tapstone_token::controller::{Relay, TokenOptions, Waker};
use tapstone_token::protocol::Login;
use tokio::sync::mpsc::UnboundedSender;

use super::news::News;
use super::work::Work;
use super::{Options, RefusedPins};
use crate::config::TargetConfig;
use crate::envelope::Dropped;
use crate::identity::{Identity, random};
use crate::peer::{Ends, Peer};
use crate::policy::Policy;
use crate::wire::{Body, Claim, FromAgent, Packet, ToAgent};

/// The longest that a call of the module may take, whatever a claim asks for: so long, at most, a
/// plan that was dropped waits for one that hangs.
const LONGEST_CALL: Duration = Duration::from_secs(300);

fn time_limit(claim: &Claim) -> Duration {
    Duration::from_millis(claim.timeout_ms.max(1)).min(LONGEST_CALL)
}

/// One run: its coordinator and the thread that carries out the plan.
pub(super) struct AgentSession {
    ends: Ends,
    pub(super) coordinator: String,
    peer: Peer,
    /// Orders for the plan's thread; dropped, it ends.
    orders: Option<Sender<ToAgent>>,
    waker: Waker,
    /// Cuts short what the thread waits for.
    abandon: Arc<AtomicBool>,
    backlog: Arc<AtomicUsize>,
    ending: Option<String>,
}

impl AgentSession {
    /// Starts a plan's thread. Nothing is loaded and nobody logs in before a worker is asked for.
    pub(super) fn start(
        client: &Client,
        ends: Ends,
        options: &Options,
        target: &TargetConfig,
        (name, refused): (String, RefusedPins),
        claim: &Claim,
        news: UnboundedSender<(u64, News)>,
    ) -> Result<Self, String> {
        let abandon = Arc::new(AtomicBool::new(false));
        let pin = target.pin().read().map_err(|error| error.to_string())?;
        let controller = TokenOptions {
            worker: options.worker.clone(),
            module: target.module.clone(),
            module_arguments: target.module_args.clone(),
            tokens: vec![target.token()],
            login: pin.map_or(Login::None, Login::Pin),
            accept_low_count: options.config.accept_low_count,
            timeout: time_limit(claim),
            interrupt: Arc::clone(&abandon),
            announce: options.say,
        };
        let relay = Relay::new(controller, ends.run, random);
        let relay = relay.map_err(|error| error.to_string())?;
        let policy = Policy::new(&name, target);
        let waker = relay.waker();
        let (orders, inbox) = mpsc::channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let work = Work::new(
            relay,
            inbox,
            (ends.run, news),
            (Arc::clone(&backlog), Arc::clone(&abandon)),
            (name, refused),
            policy,
        );
        let thread = thread::Builder::new().name("plan".into());
        thread.spawn(move || work.serve()).map_err(|error| error.to_string())?;
        Ok(Self {
            coordinator: claim.coordinator.clone(),
            peer: Peer::new(client, ends.clone()),
            ends,
            orders: Some(orders),
            waker,
            abandon,
            backlog,
            ending: None,
        })
    }

    pub(super) const fn is_for(&self, run: u64) -> bool {
        self.ends.run == run
    }

    pub(super) fn is_of(&self, coordinator: Identity) -> bool {
        self.ends.other == coordinator
    }

    pub(super) const fn ends(&self) -> &Ends {
        &self.ends
    }

    /// A packet of its coordinator for this run, which was not here before.
    pub(super) fn open(&mut self, bytes: &[u8]) -> Result<Packet, Dropped> {
        self.peer.open(bytes)
    }

    /// Why the plan is being dropped, if it is.
    pub(super) fn ending(&self) -> Option<&str> {
        self.ending.as_deref()
    }

    pub(super) fn is_silent(&self) -> bool {
        self.peer.is_silent()
    }

    /// Takes a packet of this run.
    pub(super) async fn take(&mut self, ack: u64, body: Body, client: &Client) {
        let Some(message) = self.peer.take(ack, body) else { return };
        match postcard::from_bytes(&message) {
            Ok(order) => {
                if let Some(orders) = &self.orders {
                    let _ = orders.send(order);
                }
                self.waker.wake();
            }
            Err(_) => {
                self.drop_plan("its coordinator could not be understood");
                self.bye(client, "it could not understand the coordinator").await;
            }
        }
    }

    pub(super) async fn send(&mut self, message: &FromAgent, client: &Client) {
        self.peer.push(message);
        self.look_after(client).await;
    }

    /// Sends what is due.
    pub(super) async fn look_after(&mut self, client: &Client) {
        if self.ending.is_none() {
            self.peer.flush(client).await;
        }
        self.backlog.store(self.peer.backlog_bytes(), Relaxed);
    }

    /// Ends the plan's thread, which lets its workers clean up first.
    pub(super) fn drop_plan(&mut self, why: &str) {
        if self.ending.is_none() {
            self.ending = Some(why.to_owned());
            self.abandon.store(true, Relaxed);
            self.orders = None;
            self.waker.wake();
        }
    }

    pub(super) async fn bye(&mut self, client: &Client, why: &str) {
        self.peer.bye(client, why).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_claim_makes_a_call_last_for_ever() {
        let limit = |timeout_ms| {
            let nonce = String::new();
            time_limit(&Claim { nonce, coordinator: "lab".into(), target: "t".into(), timeout_ms })
        };
        assert_eq!(limit(u64::MAX), LONGEST_CALL);
        assert_eq!(limit(30_000), Duration::from_secs(30));
        assert_eq!(limit(0), Duration::from_millis(1));
    }
}
