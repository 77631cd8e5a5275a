//! What a controller and its workers say to each other, as types: one protocol for tokens, one for
//! cards, one for doors.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A protocol between a controller and workers of one kind.
pub trait WorkerProtocol: 'static {
    /// What a worker is told by whoever started its process: it may name paths and hold a PIN.
    type Order: Serialize + From<Self::Task>;
    /// What a worker is told by any controller, on another machine too. The same as `Order` where
    /// all workers are processes of this machine.
    type Task;
    /// What a worker says.
    type Report: DeserializeOwned + Send + 'static;
    /// A call that can hang or crash.
    type Call: Copy + Display;

    /// The call that has this number on the [`Board`](crate::Board).
    fn call_of_number(number: u8) -> Option<Self::Call>;

    /// Whether this call makes or removes something that outlives its process. After an interrupt,
    /// and while a worker cleans up, it has all the time of [`Timeouts::call`](crate::Timeouts):
    /// who is killed in the middle of it leaves something behind.
    fn outlives_process(call: Self::Call) -> bool {
        let _ = call;
        false
    }

    /// Whether this call returns late because another program has the device, and not because
    /// anything hangs: [`Timeouts::waiting_call`](crate::Timeouts) is its limit.
    fn waits_for_others(call: Self::Call) -> bool {
        let _ = call;
        false
    }
}
