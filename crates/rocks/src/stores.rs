//! The cold stores of a process: opens, locks and discards the directories of tasks.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tallyflow_state::cold::{ColdError, ColdStore, ColdStores};

use crate::errors;
use crate::options::Memory;
use crate::slot::{read_line, write_line};
use crate::store::RocksStore;

/// The cold stores in a slot. Clones share memory and know of each other's tasks: one clone for each worker.
#[derive(Clone)]
pub struct RocksStores {
    tasks_dir: PathBuf,
    memory: Memory,
    open: OpenTasks,
}

impl RocksStores {
    /// Opens the stores in a slot's directory, for this app. `memory_bytes` is for RocksDB's cache and write buffers
    /// together, of all tasks of the process.
    ///
    /// # Errors
    ///
    /// [`ColdError::Foreign`] where the directory holds another app's state, and whatever the disk says.
    pub fn open(slot_dir: &Path, app: &str, memory_bytes: u64) -> Result<Self, ColdError> {
        let tasks_dir = slot_dir.join("count");
        fs::create_dir_all(&tasks_dir).map_err(|error| errors::of_io(&tasks_dir, &error))?;
        let marker = slot_dir.join("app");
        match read_line(&marker)? {
            Some(owner) if owner == app => {}
            Some(owner) => {
                return Err(ColdError::Foreign(format!(
                    "{} holds the state of app \"{owner}\", and this is \"{app}\": choose another state_dir, or \
                     remove that directory if \"{owner}\" is gone",
                    slot_dir.display()
                )));
            }
            None => write_line(&marker, app)?,
        }
        Ok(Self { tasks_dir, memory: Memory::new(memory_bytes), open: OpenTasks::default() })
    }

    /// The directory of a task. Names of topics and numbers of partitions are safe in a path; nothing else is taken.
    fn dir(&self, task: &str) -> Result<PathBuf, ColdError> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if task.is_empty() || task.starts_with('.') || !task.bytes().all(safe) {
            return Err(ColdError::Invariant(format!("\"{task}\" is no name of a task")));
        }
        Ok(self.tasks_dir.join(task))
    }
}

impl ColdStores for RocksStores {
    fn open(&mut self, task: &str) -> Result<Arc<dyn ColdStore>, ColdError> {
        let dir = self.dir(task)?;
        let guard = self.open.claim(task, &dir)?;
        Ok(Arc::new(RocksStore::open(&dir, &self.memory, guard)?))
    }

    fn discard(&mut self, task: &str) -> Result<(), ColdError> {
        let dir = self.dir(task)?;
        let _guard = self.open.claim(task, &dir)?;
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(errors::of_io(&dir, &error)),
            _ => Ok(()),
        }
    }
}

/// The tasks that this process has open.
#[derive(Clone, Default)]
struct OpenTasks {
    tasks: Arc<Mutex<BTreeSet<String>>>,
}

impl OpenTasks {
    fn claim(&self, task: &str, dir: &Path) -> Result<OpenGuard, ColdError> {
        if self.lock().insert(task.to_owned()) {
            return Ok(OpenGuard { open: self.clone(), task: task.to_owned() });
        }
        Err(ColdError::Locked(format!(
            "local state in {} is in use by another worker of this process: close it there first",
            dir.display()
        )))
    }

    /// A panic elsewhere leaves the set as it is, which is right.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a task's name taken.
pub(crate) struct OpenGuard {
    open: OpenTasks,
    task: String,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.open.lock().remove(&self.task);
    }
}

#[cfg(test)]
#[path = "stores_tests.rs"]
mod tests;
