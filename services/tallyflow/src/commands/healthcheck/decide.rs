//! What the answers of all processes amount to. Pure.

use super::probe::{Answer, Probe, Seen};

/// The end of a partition, by the name of its task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// `<topic>-<p>`.
    pub task: String,
    /// Past its last record.
    pub offset: i64,
}

/// Every stage has to be somewhere.
const STAGES: [&str; 2] = ["intake", "count"];

/// Whether every process that is there is ready. One that is gone left its file behind; it is passed over if another
/// one is there.
///
/// # Errors
/// The reason, in one line.
pub fn ready(seen: &[Seen]) -> Result<(), String> {
    for process in seen {
        match &process.probe {
            Probe::Silent(why) => return Err(format!("{}: {why}", process.name())),
            Probe::Answer(Answer { not_ready: Some(why), .. }) => {
                return Err(format!("{}: {why}", process.name()));
            }
            Probe::Answer(_) | Probe::Gone(_) => {}
        }
    }
    if answers(seen).next().is_some() {
        return Ok(());
    }
    let gone = seen.iter().filter_map(|process| match &process.probe {
        Probe::Gone(why) => Some(format!("{}: {why}", process.name())),
        _ => None,
    });
    let gone: Vec<String> = gone.collect();
    if gone.is_empty() {
        Err("no process has been started with this state directory".to_owned())
    } else {
        Err(format!("no process is there: {}", gone.join("; ")))
    }
}

/// Whether every process is ready and settled, and every stage is among them.
///
/// # Errors
/// The reason, in one line.
pub fn settled(seen: &[Seen]) -> Result<(), String> {
    ready(seen)?;
    for process in seen {
        if let Probe::Answer(answer) = &process.probe
            && !answer.settled
        {
            return Err(format!("{} is still working", process.name()));
        }
    }
    for stage in STAGES {
        if !answers(seen).any(|answer| answer.stages.iter().any(|name| name == stage)) {
            return Err(format!("no process here runs {stage}"));
        }
    }
    Ok(())
}

/// Whether the tasks of a stage have reached these ends, all of them.
///
/// # Errors
/// The reason, in one line.
pub fn beyond(seen: &[Seen], stage: &str, ends: &[End]) -> Result<(), String> {
    for End { task: name, offset } in ends {
        let positions = answers(seen)
            .flat_map(|answer| &answer.tasks)
            .filter(|task| task.stage == stage && task.name == *name)
            .filter_map(|task| task.position);
        match positions.max() {
            None => return Err(format!("no process here has {name}")),
            Some(position) if position < *offset => {
                return Err(format!(
                    "{stage} has read {name} through offset {position}, its end is {offset}"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn answers(seen: &[Seen]) -> impl Iterator<Item = &Answer> {
    seen.iter().filter_map(|process| match &process.probe {
        Probe::Answer(answer) => Some(answer),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::probe::Task;
    use super::*;

    fn seen(slot: u32, probe: Probe) -> Seen {
        Seen { slot, address: format!("127.0.0.1:{slot}"), probe }
    }

    fn answer(stages: &[&str], not_ready: Option<&str>, settled: bool) -> Probe {
        Probe::Answer(Answer {
            not_ready: not_ready.map(str::to_owned),
            settled,
            stages: stages.iter().map(|stage| (*stage).to_owned()).collect(),
            tasks: Vec::new(),
        })
    }

    fn gone() -> Probe {
        Probe::Gone("nobody answers".to_owned())
    }

    #[test]
    fn readiness_of_all() {
        let both = ["intake", "count"];
        let ok = |slot| seen(slot, answer(&both, None, false));
        for (processes, right) in [
            (vec![], Err("no process has been started")),
            (vec![seen(0, gone())], Err("no process is there: slot 0 (127.0.0.1:0): nobody answers")),
            (vec![ok(0)], Ok(())),
            (vec![seen(0, gone()), ok(1)], Ok(())),
            (
                vec![ok(0), seen(1, answer(&both, Some("restoring"), true))],
                Err("slot 1 (127.0.0.1:1): restoring"),
            ),
            (
                vec![ok(0), seen(1, Probe::Silent("no answer".to_owned()))],
                Err("slot 1 (127.0.0.1:1): no answer"),
            ),
        ] {
            match (ready(&processes), right) {
                (Ok(()), Ok(())) => {}
                (Err(why), Err(start)) => assert!(why.starts_with(start), "{why}"),
                (found, right) => panic!("{found:?} instead of {right:?}"),
            }
        }
    }

    #[test]
    fn settled_means_all_of_them_and_both_stages() {
        let done = |slot, stage| seen(slot, answer(&[stage], None, true));
        let busy = seen(2, answer(&["count"], None, false));
        assert_eq!(settled(&[done(0, "intake"), done(1, "count")]), Ok(()));
        assert_eq!(settled(&[done(0, "intake"), seen(1, gone()), done(2, "count")]), Ok(()));
        assert_eq!(settled(&[done(0, "intake")]), Err("no process here runs count".to_owned()));
        assert_eq!(settled(&[done(1, "count")]), Err("no process here runs intake".to_owned()));
        let why = settled(&[done(0, "intake"), done(1, "count"), busy]).unwrap_err();
        assert_eq!(why, "slot 2 (127.0.0.1:2) is still working");
        assert!(settled(&[]).is_err());
    }

    #[test]
    fn every_end_has_to_be_reached_by_its_stage() {
        let task = |stage: &str, name: &str, position| Task {
            stage: stage.to_owned(),
            name: name.to_owned(),
            position,
        };
        let with = |tasks| {
            let answer = Answer { tasks, ..Answer::default() };
            [seen(0, Probe::Answer(answer))]
        };
        let ends = [End { task: "events-0".to_owned(), offset: 5 }];
        for (tasks, right) in [
            (vec![task("intake", "events-0", Some(5))], None),
            (vec![task("intake", "events-0", Some(6))], None),
            (vec![task("intake", "events-0", Some(3)), task("intake", "events-0", Some(5))], None),
            (vec![task("intake", "events-0", Some(4))], Some("intake has read events-0 through offset 4")),
            (vec![task("intake", "events-0", None)], Some("no process here has events-0")),
            (vec![task("count", "events-0", Some(9))], Some("no process here has events-0")),
        ] {
            match (beyond(&with(tasks), "intake", &ends), right) {
                (Ok(()), None) => {}
                (Err(why), Some(start)) => assert!(why.starts_with(start), "{why}"),
                (found, right) => panic!("{found:?} instead of {right:?}"),
            }
        }
        assert_eq!(beyond(&[], "intake", &[]), Ok(()));
    }
}
