//! Asking the processes of a state directory over HTTP.
//!
//! A slot's `http` file holds the address of the process that wrote it last. Where nobody answers there, that process
//! is gone; where somebody else answers, it is gone too and the port was given away. The slot's lock is not touched: to
//! try it would turn a starting process away.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tallyflow_core::plan::Plan;
use ureq::Agent;

/// A process that does not answer within this hangs: it only reads its board.
const ANSWER: Duration = Duration::from_secs(2);

/// A slot's process.
#[derive(Debug)]
pub struct Seen {
    /// The slot.
    pub slot: u32,
    /// Where it is said to be.
    pub address: String,
    /// What came back.
    pub probe: Probe,
}

impl Seen {
    /// Its name for people.
    pub fn name(&self) -> String {
        format!("slot {} ({})", self.slot, self.address)
    }
}

/// What came back.
#[derive(Debug)]
pub enum Probe {
    /// It is not there any more.
    Gone(String),
    /// It is there and does not answer as it should.
    Silent(String),
    /// It answered.
    Answer(Answer),
}

/// What a process says of itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Answer {
    /// Why it is not ready; none where it is.
    pub not_ready: Option<String>,
    /// Whether its own tasks are settled.
    pub settled: bool,
    /// The stages it runs.
    pub stages: Vec<String>,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

/// A task of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its stage.
    pub stage: String,
    /// `<topic>-<p>`.
    pub name: String,
    /// The next offset to read; none while it restores.
    pub position: Option<i64>,
}

/// Finds and asks the processes of a state directory.
pub struct Prober {
    app: String,
    state_dir: PathBuf,
    agent: Agent,
}

impl Prober {
    /// For the state directory of this plan.
    pub fn new(plan: &Plan) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // They are on this machine, whatever the environment says of proxies.
            .proxy(None)
            .timeout_global(Some(ANSWER))
            .build();
        Self { app: plan.app.clone(), state_dir: plan.engine.state_dir.clone(), agent: config.new_agent() }
    }

    /// Asks every process, in the order of the slots.
    pub fn look(&self) -> Vec<Seen> {
        let slots = slots(&self.state_dir).into_iter();
        slots.map(|(slot, address)| Seen { slot, probe: self.probe(slot, &address), address }).collect()
    }

    fn probe(&self, slot: u32, address: &str) -> Probe {
        let Ok(address) = address.parse().map(reachable) else {
            return Probe::Gone("its http file holds no address".to_owned());
        };
        let asked = self.get(address, "/status").and_then(|(_, status): (_, Status)| {
            // Asked last: of the two, readiness is what is waited for most.
            let (code, ready): (u16, Ready) = self.get(address, "/ready")?;
            Ok((status, code, ready))
        });
        match asked {
            Ok((status, _, _)) if status.app != self.app || status.slot != slot => Probe::Gone(format!(
                "another process is there, of app {} and slot {}",
                status.app, status.slot
            )),
            Ok((status, code, ready)) => Probe::Answer(answer(status, code, ready)),
            Err(probe) => probe,
        }
    }

    fn get<T: DeserializeOwned>(&self, address: SocketAddr, path: &str) -> Result<(u16, T), Probe> {
        let response = self.agent.get(format!("http://{address}{path}")).call();
        let mut response = response.map_err(|error| judge(&error))?;
        let code = response.status().as_u16();
        let body = response.body_mut().read_to_string().map_err(|error| judge(&error))?;
        match serde_json::from_str(&body) {
            Ok(value) => Ok((code, value)),
            // Not one of ours.
            Err(_) => Err(Probe::Gone("another program is there".to_owned())),
        }
    }
}

fn judge(error: &ureq::Error) -> Probe {
    match error {
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Probe::Gone("nobody answers there any more".to_owned())
        }
        ureq::Error::Timeout(_) => Probe::Silent(format!("no answer within {} s", ANSWER.as_secs())),
        ureq::Error::Protocol(_) => Probe::Gone("another program is there".to_owned()),
        other => Probe::Silent(other.to_string()),
    }
}

/// The slots with an address, by number.
fn slots(state_dir: &Path) -> Vec<(u32, String)> {
    let Ok(folders) = fs::read_dir(state_dir) else {
        return Vec::new();
    };
    let slot = |folder: fs::DirEntry| {
        let number = folder.file_name().to_str()?.strip_prefix("slot-")?.parse().ok()?;
        let address = fs::read_to_string(folder.path().join("http")).ok()?;
        Some((number, address.trim().to_owned()))
    };
    let mut slots: Vec<_> = folders.filter_map(|folder| slot(folder.ok()?)).collect();
    slots.sort();
    slots
}

/// A process that listens everywhere is asked on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// What is needed of `/ready`.
#[derive(Deserialize)]
struct Ready {
    #[serde(default)]
    reason: Option<String>,
}

/// What is needed of `/status`.
#[derive(Deserialize)]
struct Status {
    app: String,
    slot: u32,
    settled: bool,
    stages: Vec<StageStatus>,
}

#[derive(Deserialize)]
struct StageStatus {
    stage: String,
    tasks: Vec<TaskStatus>,
}

#[derive(Deserialize)]
struct TaskStatus {
    task: String,
    position: Option<i64>,
}

fn answer(status: Status, code: u16, ready: Ready) -> Answer {
    let stages = status.stages.iter().map(|stage| stage.stage.clone()).collect();
    let tasks = status.stages.into_iter().flat_map(|StageStatus { stage, tasks }| {
        let of =
            move |task: TaskStatus| Task { stage: stage.clone(), name: task.task, position: task.position };
        tasks.into_iter().map(of)
    });
    let unknown = || format!("/ready answers {code}");
    Answer {
        not_ready: (code != 200).then(|| ready.reason.unwrap_or_else(unknown)),
        settled: status.settled,
        stages,
        tasks: tasks.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::topics::tests::deployment;

    /// A server that gives these bodies one after the other.
    fn server(answers: Vec<(u16, String)>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for (code, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {code} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all((head + &body).as_bytes()).unwrap();
            }
        });
        address
    }

    fn status(app: &str) -> String {
        format!(
            r#"{{"app":"{app}","slot":3,"version":"1","settled":true,"stages":[{{"stage":"intake","tasks":[
            {{"task":"events-0","state":"running","position":7,"end":7}},{{"task":"events-1","position":null}}]}}]}}"#
        )
    }

    fn look(http: &str) -> Vec<Seen> {
        let folder = tempfile::tempdir().unwrap();
        for slot in ["slot-3", "slot-x", "other"] {
            fs::create_dir(folder.path().join(slot)).unwrap();
            fs::write(folder.path().join(slot).join("http"), http).unwrap();
        }
        fs::create_dir(folder.path().join("slot-1")).unwrap();
        let mut plan = deployment().plan;
        plan.engine.state_dir = folder.path().to_path_buf();
        Prober::new(&plan).look()
    }

    #[test]
    fn a_process_is_asked_for_readiness_and_tasks() {
        let address =
            server(vec![(200, status("shop")), (503, r#"{"ready":false,"reason":"restoring"}"#.to_owned())]);
        let seen = look(&format!("{address}\n"));
        assert_eq!((seen.len(), seen[0].slot), (1, 3));
        let Probe::Answer(answer) = &seen[0].probe else { panic!("{seen:?}") };
        assert_eq!(answer.not_ready.as_deref(), Some("restoring"));
        assert!(answer.settled && answer.stages == ["intake"]);
        let positions: Vec<_> = answer.tasks.iter().map(|task| (task.name.as_str(), task.position)).collect();
        assert_eq!(positions, [("events-0", Some(7)), ("events-1", None)]);
    }

    #[test]
    fn somebody_else_at_the_address_means_gone() {
        let ready = (200, r#"{"ready":true}"#.to_owned());
        let address = server(vec![(200, status("other")), ready]);
        assert!(matches!(&look(&address)[0].probe, Probe::Gone(why) if why.contains("app other")));
        let address = server(vec![(200, "<html>".to_owned())]);
        assert!(matches!(look(&address)[0].probe, Probe::Gone(_)));
        let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(matches!(&look(&unused.to_string())[0].probe, Probe::Gone(why) if why.contains("nobody")));
        assert!(matches!(look("")[0].probe, Probe::Gone(_)));
    }

    #[test]
    fn without_a_state_directory_there_is_nobody() {
        assert!(slots(Path::new("does-not-exist")).is_empty());
    }

    #[test]
    fn everywhere_is_asked_on_loopback() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()), "127.0.0.1:80".parse().unwrap());
        assert_eq!(reachable("[::]:80".parse().unwrap()), "[::1]:80".parse().unwrap());
        assert_eq!(reachable("10.0.0.1:80".parse().unwrap()), "10.0.0.1:80".parse().unwrap());
    }
}
