//! The run's side: a socket that whoever measures never waits for.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::connect::connect;
use crate::frame::{Figures, LiveFrame};

/// Frames on their way from the run to the thread that writes them.
const QUEUE: usize = 64;
/// Who looks at a time.
const MOST_READERS: usize = 8;
/// Bytes that may wait for one who looks; a few hundred frames.
const BACKLOG: usize = 64 << 10;
/// How long the last frame, which holds the record, may take to everybody.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often somebody new is looked for.
const PERIOD: Duration = Duration::from_millis(50);

/// A socket of mode 600 on which a run tells how it goes. It is gone when this is dropped.
#[derive(Debug)]
pub struct LiveSocket {
    frames: Option<SyncSender<LiveFrame>>,
    missed: AtomicU64,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
    /// Which file it is, of which file system: another one at its path is somebody else's.
    file: Option<(u64, u64)>,
}

impl LiveSocket {
    /// Makes the socket, and a thread that writes to whoever connects.
    ///
    /// # Errors
    /// When the path is taken (by anything but a socket that nobody listens on any more, which is
    /// replaced), too long for an address (unix(7)), or not to be written.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let listener = {
            let _turn = turn(path)?;
            remove_deserted(path)?;
            listener(path)?
        };
        let (frames, queue) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("live".into())
            .spawn(move || Readers { listener, readers: Vec::new() }.pass_on(&queue));
        let thread = match thread {
            Ok(thread) => Some(thread),
            Err(why) => {
                fs::remove_file(path)?;
                return Err(why);
            }
        };
        let missed = AtomicU64::new(0);
        let file = file_at(path);
        Ok(Self { frames: Some(frames), missed, thread, path: path.to_owned(), file })
    }

    /// Hands on how a case stands, or drops it where the last ones are still on their way. Returns
    /// at once.
    pub fn figures(&self, figures: Figures) {
        let missed = self.missed.swap(0, Ordering::Relaxed);
        self.send(LiveFrame::Figures(Figures { missed, ..figures }), missed + 1);
    }

    /// Hands on what is being done, or drops it, as [`figures`](Self::figures).
    pub fn stage(&self, case: &str, text: &str) {
        self.send(LiveFrame::Stage { case: case.to_owned(), text: text.to_owned() }, 1);
    }

    fn send(&self, frame: LiveFrame, frames: u64) {
        let Some(to) = &self.frames else { return };
        if let Err(TrySendError::Full(_)) = to.try_send(frame) {
            self.missed.fetch_add(frames, Ordering::Relaxed);
        }
    }

    /// Hands on the record, for which this waits up to two seconds, and closes the socket.
    pub fn finish(mut self, record: &impl Serialize) {
        let record = to_raw_value(record);
        if let (Some(frames), Ok(record)) = (&self.frames, record) {
            // The thread takes what is in the queue within a period.
            let _ = frames.send(LiveFrame::Record(record));
        }
        self.close();
    }

    fn close(&mut self) {
        self.frames = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for LiveSocket {
    fn drop(&mut self) {
        self.close();
        if file_at(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The folder of the socket, locked (flock(2)): of two runs that find the same deserted socket
/// neither removes the new one of the other.
fn turn(path: &Path) -> io::Result<File> {
    const LONGEST: Duration = Duration::from_secs(1);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")))?;
    let until = Instant::now() + LONGEST;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            // Somebody else locks this folder for good, or its file system knows no locks.
            _ => return Ok(folder),
        }
    }
}

/// A socket whose owner has died stays: nobody answers there.
fn remove_deserted(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = || connect(path).is_err_and(|why| why.kind() == ErrorKind::ConnectionRefused);
    if is_socket && refused() { fs::remove_file(path) } else { Ok(()) }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The mode is the socket's before it has a name: nobody else can connect in between.
fn listener(path: &Path) -> io::Result<UnixListener> {
    const WAITING: i32 = 4;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, WAITING)?;
    Ok(UnixListener::from(socket))
}

/// All who look at the run, and where new ones come.
struct Readers {
    listener: UnixListener,
    readers: Vec<Reader>,
}

/// One who looks, and what waits for it.
struct Reader {
    stream: UnixStream,
    backlog: Vec<u8>,
    missed: u64,
}

impl Readers {
    /// Until the run is over.
    fn pass_on(mut self, queue: &Receiver<LiveFrame>) {
        loop {
            let frame = queue.recv_timeout(PERIOD);
            self.welcome();
            match frame {
                Ok(LiveFrame::Record(record)) => return self.farewell(&LiveFrame::Record(record)),
                Ok(frame) => self.readers.retain_mut(|reader| reader.take(&frame)),
                Err(RecvTimeoutError::Timeout) => self.readers.retain_mut(Reader::write_on),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn welcome(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // One too many is told by the end of what it reads.
            if self.readers.len() < MOST_READERS && stream.set_nonblocking(true).is_ok() {
                self.readers.push(Reader { stream, backlog: Vec::new(), missed: 0 });
            }
        }
    }

    /// The last frame may be as long as it is; whoever takes it too slowly goes without.
    fn farewell(mut self, last: &LiveFrame) {
        let until = Instant::now() + FAREWELL;
        let Ok(line) = line(last) else { return };
        for reader in &mut self.readers {
            reader.backlog.extend_from_slice(&line);
        }
        while Instant::now() < until {
            self.readers.retain_mut(|reader| reader.write_on() && !reader.backlog.is_empty());
            if self.readers.is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Reader {
    /// Takes a frame, or counts it as missed where too much waits already. False: nobody is there
    /// any more.
    fn take(&mut self, frame: &LiveFrame) -> bool {
        if self.backlog.len() > BACKLOG {
            self.missed += 1;
            return self.write_on();
        }
        let told = match frame {
            LiveFrame::Figures(figures) => {
                let missed = figures.missed + std::mem::take(&mut self.missed);
                line(&LiveFrame::Figures(Figures { missed, ..figures.clone() }))
            }
            other => line(other),
        };
        self.backlog.extend(told.unwrap_or_default());
        self.write_on()
    }

    /// Writes as much of what waits as goes at once. False: nobody is there any more.
    fn write_on(&mut self) -> bool {
        while !self.backlog.is_empty() {
            match self.stream.write(&self.backlog) {
                Ok(0) => return false,
                Ok(written) => drop(self.backlog.drain(..written)),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return why.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }
}

fn line(frame: &LiveFrame) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;

    use tapstone_measure::units::{Nanos, PerSecond};

    use super::*;

    fn figures(completed: u64) -> Figures {
        Figures {
            case: "rsa2048.sign".into(),
            level: None,
            elapsed_ns: Nanos(1_000),
            completed,
            failed: 0,
            rate: PerSecond(5.0),
            p50_ns: Some(Nanos(7)),
            p99_ns: None,
            missed: 0,
        }
    }

    fn all(stream: UnixStream) -> Vec<LiveFrame> {
        let lines = BufReader::new(stream).lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    /// Until somebody who has connected is looked after.
    fn a_period() {
        thread::sleep(3 * PERIOD);
    }

    #[test]
    fn whoever_connects_sees_the_figures_and_at_last_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live");
        let socket = LiveSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let seen = UnixStream::connect(&path).unwrap();
        a_period();
        socket.stage("rsa2048.sign", "makes a key");
        socket.figures(figures(3));
        let late = UnixStream::connect(&path).unwrap();
        socket.finish(&serde_json::json!({"a": [1.5, "two\nlines"]}));
        assert!(!path.exists());
        let frames = all(seen);
        assert!(matches!(&frames[0], LiveFrame::Stage { text, .. } if text == "makes a key"));
        assert!(matches!(&frames[1], LiveFrame::Figures(it) if *it == figures(3)));
        let LiveFrame::Record(record) = &frames[2] else { panic!("{frames:?}") };
        assert_eq!(record.get(), r#"{"a":[1.5,"two\nlines"]}"#);
        assert!(matches!(all(late)[..], [.., LiveFrame::Record(_)]));
    }

    /// Somebody who connects and never reads.
    #[test]
    fn nobody_is_waited_for_and_what_is_missed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live");
        let socket = LiveSocket::bind(&path).unwrap();
        let slow = UnixStream::connect(&path).unwrap();
        a_period();
        // More than a backlog, a socket's buffers and the queue hold together.
        let long = "x".repeat(8 << 10);
        for number in 0..2_000 {
            socket.figures(Figures { case: long.clone(), ..figures(number) });
        }
        let begun = Instant::now();
        let reading = thread::spawn(move || all(slow));
        // What was missed is told with the next that has room, once enough was read.
        const LATER: u64 = 20;
        for number in 0..LATER {
            a_period();
            socket.figures(figures(2_000 + number));
        }
        a_period();
        socket.finish(&());
        assert!(begun.elapsed() < FAREWELL + Duration::from_secs(5));
        let frames = reading.join().unwrap();
        let figures = |frame: &LiveFrame| match frame {
            LiveFrame::Figures(figures) => Some(figures.clone()),
            _ => None,
        };
        let seen: Vec<Figures> = frames.iter().filter_map(figures).collect();
        let missed: u64 = seen.iter().map(|it| it.missed).sum();
        assert!(missed > 0, "{}", seen.len());
        assert_eq!(seen.len() as u64 + missed, 2_000 + LATER);
    }

    /// As a run leaves it that was killed.
    fn desert(path: &Path) {
        drop(UnixListener::bind(path).unwrap());
        assert!(path.exists());
    }

    #[test]
    fn of_two_that_find_a_deserted_socket_one_gets_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live");
        for _ in 0..200 {
            desert(&path);
            let sockets: Vec<_> = thread::scope(|scope| {
                let bind = || scope.spawn(|| LiveSocket::bind(&path));
                let bound = [bind(), bind(), bind(), bind()];
                bound.into_iter().map(|socket| socket.join().unwrap()).collect()
            });
            assert_eq!(sockets.iter().filter(|socket| socket.is_ok()).count(), 1);
        }
    }

    #[test]
    fn a_path_that_is_taken_is_an_error_unless_its_owner_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live");
        let one = LiveSocket::bind(&path).unwrap();
        assert_eq!(LiveSocket::bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(one);
        desert(&path);
        drop(LiveSocket::bind(&path).unwrap());
        fs::write(&path, "mine").unwrap();
        assert!(LiveSocket::bind(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        // What somebody has put in its place is not removed.
        fs::remove_file(&path).unwrap();
        let socket = LiveSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(socket);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
