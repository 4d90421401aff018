//! The `tallyflow` binary as a process: a folder with its topology.toml, its output in files, its signals.
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::wait::{PATIENCE, wait_until};
use crate::worker::Worker;

/// How much of a process's log a failing test shows.
const SHOWN_LINES: usize = 60;

/// A folder with a topology.toml, in which the binary is run: several workers, commands, the same state again.
///
/// The folder is removed when this is dropped; keep it alive for as long as its processes.
#[derive(Debug)]
pub struct Tallyflow {
    dir: TempDir,
    binary: PathBuf,
    started: AtomicU32,
}

impl Tallyflow {
    /// A fresh folder with this text as its topology.toml. The text should leave `state_dir` at `state`.
    ///
    /// # Panics
    /// When the binary was not built.
    #[must_use]
    pub fn new(topology: &str) -> Self {
        Self::with_binary(binary(), topology)
    }

    /// The same with another program in the place of the binary.
    ///
    /// # Panics
    /// When the folder cannot be made.
    #[must_use]
    pub fn with_binary(binary: impl Into<PathBuf>, topology: &str) -> Self {
        let dir = TempDir::with_prefix("tallyflow-test-").expect("a temporary folder");
        let tallyflow = Self { dir, binary: binary.into(), started: AtomicU32::new(0) };
        tallyflow.write_topology(topology);
        tallyflow
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The state folder of the topology: `state` in the folder.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.dir().join("state")
    }

    /// Replaces topology.toml, for the next process.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_topology(&self, topology: &str) {
        fs::write(self.dir().join("topology.toml"), topology).expect("topology.toml is written");
    }

    /// Throws the state of all slots away, as a lost disk would.
    ///
    /// # Panics
    /// When it cannot be removed.
    pub fn lose_state(&self) {
        if self.state_dir().exists() {
            fs::remove_dir_all(self.state_dir()).expect("the state is removed");
        }
    }

    /// Starts `tallyflow run --slot SLOT`.
    #[must_use]
    pub fn run(&self, slot: u32) -> Worker {
        self.run_with(slot, &[])
    }

    /// Starts `tallyflow run --slot SLOT` with further arguments.
    #[must_use]
    pub fn run_with(&self, slot: u32, arguments: &[&str]) -> Worker {
        let http = self.state_dir().join(format!("slot-{slot}")).join("http");
        // A killed predecessor leaves the address of a port that somebody else may have by now.
        let _ = fs::remove_file(&http);
        let slot = slot.to_string();
        let mut all = vec!["run", "--slot", &slot];
        all.extend_from_slice(arguments);
        Worker::new(self.spawn(&all), http)
    }

    /// Starts `tallyflow ARGUMENTS…` in the folder and leaves it running.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(&self, arguments: &[&str]) -> Process {
        self.spawn_with(arguments, b"")
    }

    /// Runs `tallyflow ARGUMENTS…` to its end.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn call(&self, arguments: &[&str]) -> Finished {
        self.call_with(arguments, b"")
    }

    /// Runs `tallyflow ARGUMENTS…` to its end with this on its standard input.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn call_with(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let mut process = self.spawn_with(arguments, input);
        let status = process.wait(PATIENCE);
        Finished { code: status.code(), stdout: process.stdout(), stderr: process.stderr() }
    }

    fn spawn_with(&self, arguments: &[&str], input: &[u8]) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let stdout = self.dir().join(format!("{number}.stdout"));
        let stderr = self.dir().join(format!("{number}.stderr"));
        let mut child = Command::new(&self.binary)
            .args(arguments)
            .current_dir(self.dir())
            .stdin(Stdio::piped())
            .stdout(File::create(&stdout).expect("a file for the output"))
            .stderr(File::create(&stderr).expect("a file for the log"))
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be run: {error}", self.binary.display()));
        let mut pipe = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        // A thread, since a program that does not read must not block the test; one that ends early is no error here.
        thread::spawn(move || pipe.write_all(&input).ok());
        Process { what: format!("tallyflow {}", arguments.join(" ")), child, stdout, stderr }
    }
}

/// Where the binary is: `TALLYFLOW_BIN`, or beside the test's own `deps` folder.
fn binary() -> PathBuf {
    let path = env::var_os("TALLYFLOW_BIN").map_or_else(built_beside_us, PathBuf::from);
    assert!(
        path.is_file(),
        "{} does not exist: start the tests with `scripts/test.sh [FILTER…]`",
        path.display()
    );
    path
}

fn built_beside_us() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    profile.join("tallyflow")
}

/// What a command that has ended left.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its data.
    pub stdout: String,
    /// Its talk.
    pub stderr: String,
}

impl Finished {
    /// The output, after making sure that the exit code is 0.
    ///
    /// # Panics
    /// When it is another one.
    #[must_use]
    pub fn success(self) -> String {
        assert_eq!(self.code, Some(0), "stderr: {}", self.stderr);
        self.stdout
    }
}

/// A running process. It is killed and waited for when this is dropped; a failing test shows the end of its log.
#[derive(Debug)]
pub struct Process {
    what: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        read_text(&self.stdout)
    }

    /// Its standard error so far: the log.
    #[must_use]
    pub fn stderr(&self) -> String {
        read_text(&self.stderr)
    }

    /// SIGSTOP: a frozen process, as a long pause of the machine makes it.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// SIGTERM: asks it to drain and end.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill(); // an error says that it has ended already
        let _ = self.child.wait();
    }

    /// The exit status if it has ended.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of a child")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When the deadline has passed.
    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let what = format!("`{}` has ended", self.what);
        wait_until(deadline, &what, || self.exited())
    }

    /// Asks it to end with SIGTERM and waits.
    ///
    /// # Panics
    /// When it does not end within the harness's patience.
    pub fn stop(&mut self) -> ExitStatus {
        self.terminate();
        self.wait(PATIENCE)
    }

    #[allow(unsafe_code, reason = "kill(2) has no safe form for other signals than SIGKILL")]
    fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.pid()).expect("a process id");
        // SAFETY: plain system call; the child is ours and not yet waited for, or `kill` reports that it is gone.
        let sent = unsafe { libc::kill(pid, signal) };
        assert_eq!(sent, 0, "`{}` cannot be signalled", self.what);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.stderr();
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            eprintln!("the log of `{}` ends with:\n{}", self.what, tail.join("\n"));
        }
    }
}

fn read_text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
