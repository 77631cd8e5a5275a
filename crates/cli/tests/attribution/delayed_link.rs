//! A network that the kernel sees, with a delay: a TUN device that gives each packet back after a
//! while, as if it came from the address that it was sent to.
//!
//! Addresses are swapped, which changes no checksum, so that a server of this machine is reached at
//! an address that is none of this machine's. Needs CAP_NET_ADMIN; netem would need a kernel that has
//! it. The device goes with its descriptor.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// While nothing is due, the relay looks so often whether it has been ended.
const LOOK: Duration = Duration::from_millis(20);

/// Holds an IPv4 packet of a TUN device, whose MTU is 1,500.
const PACKET_BYTES: usize = 2048;

/// Where the addresses are in an IPv4 header (RFC 791, 3.1).
const ADDRESSES: std::ops::Range<usize> = 12..20;

/// A link that takes time in each direction and is never full.
pub(crate) struct DelayedLink {
    /// The address of this machine on the link.
    pub(crate) here: IpAddr,
    /// Where the other side sees what this machine's own address serves.
    pub(crate) there: IpAddr,
    ended: Arc<AtomicBool>,
    relay: Option<JoinHandle<()>>,
}

impl DelayedLink {
    /// # Errors
    /// The system gives no TUN device, as to whoever is not root.
    pub(crate) fn open(delay: Duration) -> io::Result<Self> {
        let (device, name) = tun_device()?;
        let number: u8 = name.trim_start_matches("tapstone").parse().map_err(io::Error::other)?;
        // 198.18.0.0/15 is for measuring and in nobody's network (RFC 2544).
        let here = Ipv4Addr::new(198, 18, number, 1);
        let there = Ipv4Addr::new(198, 18, number, 2);
        set_up(&name, here)?;
        let ended = Arc::new(AtomicBool::new(false));
        let relay = {
            let ended = Arc::clone(&ended);
            thread::spawn(move || relay(device, delay, &ended))
        };
        Ok(Self { here: here.into(), there: there.into(), ended, relay: Some(relay) })
    }
}

impl Drop for DelayedLink {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.relay.take().map(JoinHandle::join);
    }
}

/// Gives each packet back after `delay`, in order.
fn relay(mut device: File, delay: Duration, ended: &AtomicBool) {
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut packet = [0; PACKET_BYTES];
    while !ended.load(Ordering::Relaxed) {
        let now = Instant::now();
        while let Some((_, packet)) = under_way.front().filter(|(due, _)| *due <= now) {
            // What the kernel does not take is lost, as on any network.
            let _ = device.write(packet);
            under_way.pop_front();
        }
        let next = under_way.front().map_or(LOOK, |(due, _)| due.duration_since(now).min(LOOK));
        let next = Timespec { tv_sec: 0, tv_nsec: next.subsec_nanos().into() };
        let mut readable = [PollFd::new(&device, PollFlags::IN)];
        if !matches!(poll(&mut readable, Some(&next)), Ok(1..)) {
            continue;
        }
        while let Ok(length) = device.read(&mut packet) {
            // IPv6 asks for neighbours that are not there.
            if packet[0] >> 4 == 4 && length >= ADDRESSES.end {
                packet[ADDRESSES].rotate_left(ADDRESSES.len() / 2);
                under_way.push_back((Instant::now() + delay, packet[..length].to_vec()));
            }
        }
    }
}

/// A new TUN device (the kernel's Documentation/networking/tuntap.rst), and its name.
fn tun_device() -> io::Result<(File, String)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let device = options.open("/dev/net/tun")?;
    let mut request = request_for("tapstone%d");
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    control(&device, libc::TUNSETIFF, &mut request)?;
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
    let name = name.map(|byte| char::from(byte.cast_unsigned())).collect();
    Ok((device, name))
}

/// Gives a device its address, with one neighbour, and switches it on.
fn set_up(name: &str, address: Ipv4Addr) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let set = |what: libc::Ioctl, address: Ipv4Addr| {
        let mut request = request_for(name);
        request.ifr_ifru.ifru_addr = socket_address(address);
        control(&socket, what, &mut request)
    };
    set(libc::SIOCSIFADDR, address)?;
    set(libc::SIOCSIFNETMASK, Ipv4Addr::new(255, 255, 255, 252))?;
    let mut request = request_for(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    control(&socket, libc::SIOCSIFFLAGS, &mut request)
}

fn request_for(name: &str) -> libc::ifreq {
    // SAFETY: all zero is a valid `ifreq`, which is plain numbers.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed();
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: as above.
    let mut generic: libc::sockaddr = unsafe { zeroed() };
    generic.sa_family = libc::AF_INET as libc::sa_family_t;
    // A port of 0, then the address (ip(7), `sockaddr_in`).
    for (place, byte) in generic.sa_data[2..].iter_mut().zip(address.octets()) {
        *place = byte.cast_signed();
    }
    generic
}

fn control(on: &impl AsRawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all of these requests read or write one `ifreq`, which outlives the call.
    let status = unsafe { libc::ioctl(on.as_raw_fd(), what, std::ptr::from_mut(request)) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
