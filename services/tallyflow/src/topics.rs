//! The app's topics in the cluster: what is there, what is missing, what is wrong. For `topics` and for `run`.
//!
//! ```text
//!  specs ──► survey (asks the cluster) ──► missing ──► create
//!                                    └───► problems: each with the command that mends it
//! ```
//!
//! What a topic has to be like is decided by the topology, not here.

use std::collections::BTreeMap;
use std::time::Duration;

use tallyflow_kafka::{ConfigValue, KafkaAdmin, NewTopic};
use tallyflow_runtime::ports::{Admin, PortError, Reaction};
use tallyflow_topology::topics::{FoundTopic, Role, TopicProblem, TopicSpec, check, specs};
use tallyflow_topology::{Code, Deployment};

use crate::context::Context;
use crate::patience::Patience;

/// `run` asks again after so long at most: it has a person to tell meanwhile.
const ENSURE: Duration = Duration::from_secs(5);

/// What the cluster has of what the app needs.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Every topic that is needed, the inputs first.
    pub specs: Vec<TopicSpec>,
    /// Those that are there.
    pub found: Vec<FoundTopic>,
    /// What is wrong with those that are there.
    pub problems: Vec<TopicProblem>,
    /// What to do about those that are not.
    pub absent: Vec<TopicProblem>,
}

impl Survey {
    /// Asks the cluster.
    ///
    /// # Errors
    /// Where it does not answer while there is patience, or does not permit it.
    pub fn take(
        deployment: &Deployment,
        admin: &mut KafkaAdmin,
        patience: &Patience,
    ) -> Result<Self, PortError> {
        let specs = specs(deployment);
        let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
        let infos = patience.ask(|| admin.topics(&names))?;
        let mut found = Vec::new();
        for info in infos.into_iter().flatten() {
            let configs = patience.ask(|| configs(admin, &info.name))?;
            found.push(FoundTopic { name: info.name, partitions: info.partitions, configs });
        }
        Ok(Self::of(deployment, specs, found))
    }

    fn of(deployment: &Deployment, specs: Vec<TopicSpec>, found: Vec<FoundTopic>) -> Self {
        let (absent, problems) =
            check(deployment, &found).into_iter().partition(|problem| problem.code == Code::TopicMissing);
        Self { specs, found, problems, absent }
    }

    /// A topic that is there.
    pub fn found(&self, name: &str) -> Option<&FoundTopic> {
        self.found.iter().find(|topic| topic.name == name)
    }

    /// The needed ones that are not there.
    pub fn missing(&self) -> impl Iterator<Item = &TopicSpec> {
        self.specs.iter().filter(|spec| self.found(&spec.name).is_none())
    }

    /// Creates the missing ones with explicit settings; another process may have been faster.
    ///
    /// # Errors
    /// The first one that could not be created.
    pub fn create_missing(
        &self,
        deployment: &Deployment,
        admin: &mut KafkaAdmin,
        patience: &Patience,
    ) -> Result<(), PortError> {
        let new: Vec<NewTopic> =
            self.missing().map(|spec| new_topic(spec, deployment.kafka.replication)).collect();
        patience.ask(|| admin.create_topics(&new).map(drop))
    }

    fn partitions(&self, role: Role) -> u32 {
        let spec = self.specs.iter().find(|spec| spec.role == role);
        let found = spec.and_then(|spec| self.found(&spec.name));
        found.map_or(0, |topic| topic.partitions)
    }
}

/// How many partitions the topics have to which stages choose the partition themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partitions {
    /// Of `ledger`.
    pub ledger: u32,
    /// Of `dlq`.
    pub dlq: u32,
    /// Of `late`.
    pub late: u32,
}

/// Why the topics cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnsureError {
    /// The cluster does not answer: waiting may help.
    #[error("{0}")]
    NotThere(String),
    /// The topics are not what the app needs, all problems at once, or the cluster refuses: a person has to act.
    #[error("{0}")]
    Wrong(String),
}

impl From<PortError> for EnsureError {
    fn from(error: PortError) -> Self {
        match error.reaction {
            Reaction::Retry => Self::NotThere(error.message),
            _ => Self::Wrong(error.message),
        }
    }
}

/// Makes sure at the start of `run` that all topics are as they have to be; creates missing ones where the topology
/// says `create_topics = true`. Blocks for some seconds at most.
///
/// # Errors
/// [`EnsureError::NotThere`] where the cluster does not answer, [`EnsureError::Wrong`] with all problems.
pub fn ensure(context: &Context) -> Result<Partitions, EnsureError> {
    let deployment = &context.deployment;
    let patience = Patience::new(context.timeout.min(ENSURE));
    let mut admin = context.kafka.admin()?;
    admin.check(patience.left())?;
    let mut survey = Survey::take(deployment, &mut admin, &patience)?;
    if deployment.create_topics && !survey.absent.is_empty() {
        survey.create_missing(deployment, &mut admin, &patience)?;
        survey = Survey::take(deployment, &mut admin, &patience)?;
    }
    usable(&survey)
}

fn usable(survey: &Survey) -> Result<Partitions, EnsureError> {
    if survey.absent.is_empty() && survey.problems.is_empty() {
        return Ok(Partitions {
            ledger: survey.partitions(Role::Ledger),
            dlq: survey.partitions(Role::Dlq),
            late: survey.partitions(Role::Late),
        });
    }
    let problems = survey.absent.iter().chain(&survey.problems);
    let lines: String = problems.map(|problem| format!("\n{problem}")).collect();
    Err(EnsureError::Wrong(format!("the topics are not as they have to be{lines}")))
}

/// The settings in force. A topic that was seen a moment ago has some.
fn configs(admin: &mut KafkaAdmin, topic: &str) -> Result<BTreeMap<String, String>, PortError> {
    let value = |(name, config): (String, ConfigValue)| Some((name, config.value?));
    match admin.topic_configs(topic)? {
        Some(configs) => Ok(configs.into_iter().filter_map(value).collect()),
        None => Err(PortError::new(Reaction::Retry, format!("the settings of {topic} are not visible"))),
    }
}

fn new_topic(spec: &TopicSpec, replication: u16) -> NewTopic {
    let configs = spec.configs.iter();
    NewTopic {
        name: spec.name.to_string(),
        partitions: spec.partitions,
        replication,
        configs: configs.map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use tallyflow_topology::{Source, SystemEnvironment, compile};

    use super::*;

    pub(crate) fn deployment() -> Deployment {
        let text = "app = \"shop\"\nkafka.brokers = \"localhost:9092\"\n[input.events]\n\
            [stage.count.window.minute]\nsize = \"1m\"\n";
        let source = Source::of(Path::new("topology.toml"));
        compile(text.as_bytes(), source, &SystemEnvironment).unwrap()
    }

    pub(crate) fn survey(change: impl FnOnce(&mut Vec<FoundTopic>)) -> Survey {
        let deployment = deployment();
        let specs = specs(&deployment);
        let as_wanted = |spec: &TopicSpec| FoundTopic {
            name: spec.name.to_string(),
            partitions: spec.partitions,
            configs: new_topic(spec, 1).configs.into_iter().collect(),
        };
        let mut found = specs.iter().map(as_wanted).collect();
        change(&mut found);
        Survey::of(&deployment, specs, found)
    }

    #[test]
    fn what_is_missing_is_told_apart_from_what_is_wrong() {
        let survey = survey(|found| {
            found.retain(|topic| topic.name != "shop.dlq");
            found[1].partitions = 3;
        });
        let missing: Vec<&str> = survey.missing().map(|spec| &*spec.name).collect();
        assert_eq!(missing, ["shop.dlq"]);
        assert_eq!(survey.absent.len(), 1);
        assert!(survey.problems.iter().any(|problem| problem.topic == "shop.entries"));
        let text = usable(&survey).unwrap_err().to_string();
        assert!(text.starts_with("the topics are not as they have to be\ntopic shop."), "{text}");
        assert_eq!(text.matches("help: ").count(), survey.absent.len() + survey.problems.len());
    }

    #[test]
    fn partitions_are_those_of_the_cluster() {
        let survey = survey(|found| {
            found.iter_mut().for_each(|topic| {
                if topic.name == "shop.dlq" {
                    topic.partitions = 7;
                }
            })
        });
        let right = Partitions { ledger: 4, dlq: 7, late: 4 };
        assert_eq!(usable(&survey).unwrap(), right);
    }
}
