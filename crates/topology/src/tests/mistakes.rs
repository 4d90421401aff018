//! Every kind of mistake: its code, its place and its words.

use std::collections::BTreeSet;
use std::path::Path;

use super::HEAD;
use crate::testing::{FakeEnvironment, compiled, minimal, problems};
use crate::{Code, Source, compile};

/// Lines behind the least topology, and the problems they make, as `line:column code`. The tail begins at line 7.
pub(super) const CASES: &[(&str, &[&str])] = &[
    ("[engine]\ncommit_interval = ", &["8:19 TF0101"]),
    ("sise = \"1m\"", &["7:1 TF0102"]),
    ("[simulate]", &["7:2 TF0102"]),
    ("allow_simulation = true", &["7:1 TF0102"]),
    ("[engine]\nworkers = 1", &["8:1 TF0102"]),
    ("[engine]\ncommit_interval = 100", &["8:19 TF0103"]),
    ("[engine]\ncreate_topics = \"yes\"", &["8:17 TF0103"]),
    ("[stage.intake]\nfrom = \"events\"", &["8:8 TF0103"]),
    ("[stage.count]\ndimensions = [\"region\", 1]", &["8:25 TF0103"]),
    ("[stage]\ncount = 1", &["8:1 TF0101"]),
    ("[limits]\naccept = \"1.5h\"", &["8:10 TF0105"]),
    ("[engine]\nmemory = \"1GB\"", &["8:10 TF0106"]),
    ("[engine]\ntransaction_timeout = \"16m\"", &["8:23 TF0107"]),
    ("[engine]\ncommit_interval = \"0ms\"", &["8:19 TF0107"]),
    ("[stage.intake]\nworkers = 65", &["8:11 TF0107"]),
    ("[stage.count]\npartitions = 0", &["8:14 TF0107"]),
    ("[stage.count]\nworkers = 99999999999999999999", &["8:11 TF0107"]),
    ("[stage.count]\nslice = \"16m\"", &["8:9 TF0107"]),
    ("[stage.count.window.tick]\nsize = \"999ms\"", &["8:8 TF0107"]),
    ("[engine]\nstate_dir = \"\"", &["8:13 TF0107"]),
    ("[input.clicks]\nappend_time = \"create\"", &["8:15 TF0108"]),
    ("[stage.count.window.hour]\nsize = \"1h\"\nemit = \"finl\"", &["9:8 TF0108"]),
    ("[kafka.client]\nx = { env = \"A\", file = \"b\" }", &["8:5 TF0109"]),
    ("[kafka.client]\nx = { environment = \"A\" }", &["8:1 TF0109"]),
    ("[kafka.client]\nsecurity.protocol = \"ssl\"", &["8:1 TF0109"]),
    ("[kafka.client]\nx = { env = \"NOT_SET\" }", &["8:5 TF0110"]),
    ("[kafka.client]\nx = { file = \"nowhere\" }", &["8:5 TF0110"]),
    ("[output]\nformat = \"avro\"", &["8:10 TF0202"]),
    ("[input.clicks.format.avro]", &["7:22 TF0202"]),
    ("[input.clicks.format]\ncloudevents = {}", &["8:1 TF0202"]),
    (
        "[stage.count.window.day]\ncalendar = \"day\"\ntime_zone = \"Europe/Budapest\"",
        &["8:1 TF0203", "9:1 TF0203"],
    ),
    ("[namespace.shop]\nclearable = true", &["8:13 TF0204"]),
    ("[namespace.\"\"]", &["7:12 TF0301"]),
    ("[input.\"a b\"]", &["7:8 TF0301"]),
    ("[input.clicks]\ntopic = \"__consumer_offsets\"", &["8:9 TF0301"]),
    ("[stage.count.window.\"a b\"]\nsize = \"1m\"", &["7:21 TF0301"]),
    ("[stage.count]\ndimensions = [\"1st\"]", &["8:15 TF0301"]),
    ("[kafka.client]\n\"a b\" = 1", &["8:1 TF0301"]),
    ("[stage.count]\ndimensions = [\"a\", \"a\", \"A\"]", &["8:20 TF0302", "8:25 TF0302"]),
    ("[stage.intake]\nfrom = [\"events\", \"events\"]", &["8:19 TF0302"]),
    ("[stage.count.window.Minute]\nsize = \"1h\"", &["7:21 TF0302"]),
    ("[stage.count]\ndimensions = [\"sum\"]", &["8:15 TF0303"]),
    ("[stage.intake]\nfrom = [\"events\", \"event\"]", &["8:19 TF0304"]),
    ("[input.clicks]\n[stage.intake]\nfrom = [\"events\"]", &["7:8 TF0305"]),
    ("[input.clicks]\ntopic = \"events\"", &["8:9 TF0306"]),
    ("[input.a_b]\n[input.\"a.b\"]", &["8:8 TF0306"]),
    ("[input.clicks]\ntopic = \"shop.retry\"", &["8:9 TF0307"]),
    ("[input.clicks]\ntopic = \"shop_entries\"", &["8:9 TF0307"]),
    ("[stage.count]\ndimensions = [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"]", &["8:47 TF0308"]),
    ("[limits]\nremember = \"24h4m\"", &["8:12 TF0401"]),
    ("[stage.count]\nslice = \"7s\"", &["6:8 TF0402"]),
    ("[stage.count.window.odd]\nsize = \"1000001ms\"", &["6:8 TF0402"]),
    ("[stage.count.window.hour]\nsize = \"1h\"\ngrace = \"25h\"", &["9:9 TF0403"]),
    ("[stage.count]\nkeep = \"24h\"", &["8:8 TF0404"]),
    ("[stage.count.window.week]\nsize = \"7d\"", &["8:8 TF0404"]),
    ("[engine]\ncommit_interval = \"3334ms\"", &["8:19 TF0405"]),
    ("[engine]\ntransaction_timeout = \"1s\"\ncommit_interval = \"334ms\"", &["9:19 TF0405"]),
    ("[failures]\ncap = \"1s\"", &["8:7 TF0406"]),
    ("[failures]\nbase = \"2m\"", &["8:8 TF0406"]),
    ("[kafka.client]\n\"group.id\" = \"x\"", &["8:1 TF0501"]),
    ("[http]\nlisten = \"localhost:80\"", &["8:10 TF0502"]),
    ("[schemas]\nregistry = \"localhost:8081\"", &["8:12 TF0502"]),
];

#[test]
fn every_mistake_has_its_place_and_code() {
    for (tail, right) in CASES {
        let text = minimal(HEAD, tail);
        assert_eq!(problems(&text), *right, "{tail}\n{:#?}", compiled(&text));
    }
}

/// Whole files, for what the least topology cannot get wrong.
const FILES: &[(&str, &[&str])] = &[
    ("", &["1:1 TF0104", "1:1 TF0104", "1:1 TF0104", "1:1 TF0104"]),
    (
        "app = \"_shop\"\nkafka.brokers = \"embedded\"\n[input.e]\n[stage.count.window.m]\n",
        &["1:7 TF0301", "2:17 TF0201", "4:21 TF0104"],
    ),
    (
        "app = \"a\"\nkafka.brokers = \"a:9092,:1\"\ninput.e = {}\nstage.count.window.m.size = \"1m\"",
        &["2:17 TF0502"],
    ),
];

#[test]
fn whole_files_have_all_their_problems() {
    for (text, right) in FILES {
        assert_eq!(problems(text), *right, "{text}\n{:#?}", compiled(text));
    }
}

#[test]
fn the_tables_above_show_every_code() {
    let shown: BTreeSet<&str> = (CASES.iter().chain(FILES))
        .flat_map(|(_, right)| right.iter().filter_map(|line| line.split(' ').nth(1)))
        .collect();
    let of_the_file = Code::ALL.iter().map(|code| code.text()).filter(|code| *code < "TF06");
    assert_eq!(shown, of_the_file.collect());
}

#[test]
fn a_problem_is_printed_as_promised() {
    let text = minimal(HEAD, "").replace("size", "sise");
    let right = "topology.toml:6:1: TF0102: unknown key `sise` in [stage.count.window.minute]\n  \
                 help: did you mean `size`?";
    assert_eq!(compiled(&text).unwrap_err().to_string(), right);
}

#[test]
fn all_problems_are_said_at_once_and_in_their_order() {
    let text = "ap = \"shop\"\n[kafka]\nbroker = \"localhost\"\n\"client\" = 3\n[input]\nevents = 1\n\
                [http]\nlisten = \"here\"\n[stage.count.windows.minute]\nsize = \"1m\"\n";
    let right = ["1:1 TF0102", "3:1 TF0102", "4:12 TF0103", "6:10 TF0103", "8:10 TF0502", "9:14 TF0102"];
    assert_eq!(problems(text), right);
}

#[test]
fn syntax_errors_hide_only_what_they_make_doubtful() {
    // The names are missing because of them, and are not said to be.
    let text = "app = shop\nkafka.brokers = \"h\n[input.events]\npartitions = \"4\"\n";
    assert_eq!(problems(text), ["1:7 TF0101", "2:19 TF0101", "4:14 TF0103"]);
}

#[test]
fn bytes_that_are_no_text_are_a_problem_with_a_place() {
    let source = Source::of(Path::new("topology.toml"));
    let found = compile(b"app = \"a\"\nx = \"\xff\"", source, &FakeEnvironment::default());
    let said = found.unwrap_err().to_string();
    assert!(said.starts_with("topology.toml:2:6: TF0101: this is not UTF-8"), "{said}");
}
