//! The pages that users read say what the code does: docs/errors.md, docs/configuration.md, topology.toml.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tallyflow_topology::keys::{Default, KEYS, Key, Kind};
use tallyflow_topology::units::{duration_text, size_text};
use tallyflow_topology::{
    Code, Deployment, OWNED_PROPERTIES, Source, SystemEnvironment, TopologyError, compile, load,
};

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The sections of docs/errors.md: code and text.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let section = |text: &'_ str| -> Option<(usize, usize)> {
        let code = text.find(|c: char| !c.is_ascii_alphanumeric())?;
        Some((code, text.len()))
    };
    page.split("\n## ")
        .skip(1)
        .map(|text| {
            let (code, end) = section(text).unwrap();
            (&text[..code], &text[code..end])
        })
        .collect()
}

#[test]
fn every_code_has_its_section_in_order() {
    let page = read("docs/errors.md");
    let found: Vec<_> = sections(&page).iter().map(|(code, _)| (*code).to_owned()).collect();
    let right: Vec<_> = Code::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(found, right);
    let unique: BTreeSet<_> = right.iter().collect();
    assert_eq!(unique.len(), right.len(), "a code is never given twice");
}

#[test]
fn every_section_says_what_it_means_and_what_to_do() {
    let page = read("docs/errors.md");
    for (code, (_, text)) in Code::ALL.iter().zip(sections(&page)) {
        let meaning = code.meaning().trim();
        assert!(text.contains(meaning), "{code}: its page does not say: {meaning}");
        assert!(text.contains("**What to do.**"), "{code}: its page does not say what to do");
        assert!(text.contains("```"), "{code}: its page has no example");
    }
}

/// The least topology with an example behind it; an example that names an app is a whole file.
fn with_example(example: &str) -> String {
    if example.contains("app = ") {
        return example.to_owned();
    }
    format!(
        "app = \"shop\"\n[kafka]\nbrokers = \"localhost:9092\"\n[input.events]\n\
         [stage.count.window.minute]\nsize = \"1m\"\n{example}"
    )
}

#[test]
fn every_example_makes_its_problem() {
    let page = read("docs/errors.md");
    let source = Source::of(Path::new("topology.toml"));
    for (code, (_, text)) in Code::ALL.iter().zip(sections(&page)) {
        let Some(example) = text.split("```toml\n").nth(1) else {
            assert!(code.text() >= "TF06", "{code}: its page has no example in TOML");
            continue;
        };
        let example = with_example(example.split("```").next().unwrap());
        let problems = compile(example.as_bytes(), source, &SystemEnvironment).unwrap_err();
        let found: BTreeSet<_> = problems.as_slice().iter().map(|problem| problem.code).collect();
        assert_eq!(found, BTreeSet::from([*code]), "{code}: {problems}\n{example}");
    }
}

/// A key's line of docs/configuration.md.
fn row(key: &Key) -> String {
    let path = key.path.replace('*', "NAME");
    let kind = match key.kind {
        Kind::Table | Kind::Later(_) => "table".to_owned(),
        Kind::Named => "tables that you name".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Setting => "text or reference".to_owned(),
        Kind::Properties => "properties: text, number, boolean or reference".to_owned(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Integer(min, max) => format!("number, {min} to {max}"),
        Kind::Duration(min, max) => {
            format!("duration, {} to {}", duration_text(min), duration_text(max))
        }
        Kind::Emit(min, max) => {
            format!("duration, {} to {}, or `final`", duration_text(min), duration_text(max))
        }
        Kind::Size(min, max) => format!("size, {} to {}", size_text(min), size_text(max)),
        Kind::Choice(words) => format!("`{}`", words.join("` or `")),
        Kind::Names => "list of names".to_owned(),
    };
    let kind = if matches!(key.kind, Kind::Later(_)) { "refused".to_owned() } else { kind };
    let default = match key.default {
        Default::Required => "required".to_owned(),
        Default::Absent => String::new(),
        Default::Value(value) => format!("`{value}`"),
        Default::Computed(words) => words.to_owned(),
    };
    format!("| `{path}` | {kind} | {default} | {} |", key.meaning)
}

#[test]
fn the_configuration_page_has_every_key() {
    let page = read("docs/configuration.md");
    let missing: Vec<_> = KEYS.iter().map(row).filter(|row| !page.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "these lines are missing:\n{}", missing.join("\n"));
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, KEYS.len(), "the page has lines of keys that do not exist");
    let properties: Vec<_> = OWNED_PROPERTIES.iter().map(|name| format!("`{name}`")).collect();
    let one_line = page.replace('\n', " ");
    assert!(one_line.contains(&properties.join(", ")), "all of: {}", properties.join(", "));
}

fn sample() -> Deployment {
    let file = path("topology.toml");
    load(Source::of(&file), &SystemEnvironment).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_sample_compiles_and_hides_no_problem_in_its_comments() {
    let deployment = sample();
    assert_eq!(deployment.plan.app, "shop");
    assert_eq!(deployment.kafka.brokers, "localhost:9092");
    assert_eq!(deployment.plan.engine.state_dir, path("topology.toml").with_file_name("state"));
    // What can be uncommented is right, too: all of it but the references, which need values.
    let uncomment = |line: &str| {
        let setting = line.strip_prefix("# ").filter(|rest| rest.starts_with(['"', '[']));
        setting.filter(|rest| !rest.contains('{')).unwrap_or(line).to_owned()
    };
    let text: Vec<_> = read("topology.toml").lines().map(uncomment).collect();
    let found = compile(text.join("\n").as_bytes(), Source::of(Path::new("t")), &SystemEnvironment).unwrap();
    assert_eq!(found.kafka.client.len(), 3);
    assert_eq!(found.plan.namespaces, Some(vec!["default".to_owned()]));
}

#[test]
fn the_sample_names_every_key_and_its_default() {
    let text = read("topology.toml");
    for key in KEYS {
        let line = |value: &str| format!("{} = {value}", key.name());
        let found = match (key.kind, key.default) {
            (Kind::Integer(..) | Kind::Boolean, Default::Value(value)) => text.contains(&line(value)),
            (_, Default::Value(value)) => text.contains(&line(&format!("\"{value}\""))),
            _ => true,
        };
        // Mentioned in words only: a clearable namespace is not in this version.
        assert!(found || key.name() == "clearable", "{} is not in the sample", key.path);
    }
}

#[test]
fn files_are_read_and_their_absence_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("topology.toml");
    let said = load(Source::of(&file), &SystemEnvironment).unwrap_err();
    assert!(matches!(said, TopologyError::Unreadable { .. }), "{said}");
    assert!(said.to_string().starts_with(&file.display().to_string()), "{said}");

    fs::write(folder.path().join("brokers"), "localhost:9092\n").unwrap();
    let text = with_example("").replace("\"localhost:9092\"", "{ file = \"brokers\" }");
    fs::write(&file, text).unwrap();
    let deployment = load(Source::of(&file), &SystemEnvironment).unwrap();
    assert_eq!(deployment.kafka.brokers, "localhost:9092");
    assert_eq!(deployment.plan.engine.state_dir, folder.path().join("state"));
}
