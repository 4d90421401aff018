//! What the tests of this crate share.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Deployment, Environment, Problems, Source, compile};

/// Variables and files in memory.
#[derive(Default)]
pub(crate) struct FakeEnvironment {
    pub variables: BTreeMap<String, String>,
    pub files: BTreeMap<String, String>,
}

impl Environment for FakeEnvironment {
    fn variable(&self, name: &str) -> Result<String, String> {
        self.variables.get(name).cloned().ok_or_else(|| "is not set".to_owned())
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        let found = self.files.get(path.to_str().unwrap());
        found.cloned().ok_or_else(|| "cannot be read: no such file".to_owned())
    }
}

/// The least that is a topology, with lines in front of it and behind it.
pub(crate) fn minimal(head: &str, tail: &str) -> String {
    format!(
        "{head}\n[kafka]\nbrokers = \"localhost:9092\"\n[input.events]\n\
         [stage.count.window.minute]\nsize = \"1m\"\n{tail}\n"
    )
}

/// Compiles a text as topology.toml.
pub(crate) fn compiled(text: &str) -> Result<Deployment, Problems> {
    compile(text.as_bytes(), Source::of(Path::new("topology.toml")), &FakeEnvironment::default())
}

/// Compiles a text that has no problems.
pub(crate) fn deployment(text: &str) -> Deployment {
    compiled(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The problems of a text, each as `line:column code`.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let Err(problems) = compiled(text) else { panic!("no problem in\n{text}") };
    let all = problems.as_slice().iter();
    all.map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.code)).collect()
}
