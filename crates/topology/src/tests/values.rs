//! What is written arrives in the deployment, and nothing right is refused.

use std::path::Path;

use tallyflow_core::plan::{AppendTime, Emit, Format, RecordLimits};

use super::HEAD;
use crate::testing::{FakeEnvironment, deployment, minimal};
use crate::{Problems, Source, compile};

#[test]
fn the_least_topology_has_the_defaults_of_the_contract() {
    let deployment = deployment(&minimal(HEAD, ""));
    let plan = &deployment.plan;
    assert_eq!(plan.app, "shop");
    let input = plan.inputs.first().unwrap();
    assert_eq!((&*input.name, &*input.topic, input.partitions), ("events", "events", 4));
    assert_eq!((input.append_time, input.format), (AppendTime::Log, Format::Json));
    let limits = plan.limits;
    assert_eq!((limits.accept_ms, limits.future_ms), (86_400_000, 300_000));
    assert_eq!(limits.remember_ms, 87_000_000, "24h10m");
    assert_eq!((limits.settle_lag_ms, limits.idle_timeout_ms), (5000, 5000));
    assert_eq!(plan.record_limits, RecordLimits::default());
    assert_eq!(plan.namespaces, None);
    assert!(plan.dimensions.is_empty());
    let window = plan.windows.first().unwrap();
    assert_eq!((&*window.name, window.size.ms(), window.grace_ms), ("minute", 60_000, 0));
    assert_eq!((window.emit, plan.totals_emit_ms), (Emit::EveryMs(1000), 1000));
    assert_eq!((plan.slice.ms(), plan.keep_ms), (60_000, 604_800_000));
    assert_eq!((plan.entries_partitions, plan.intake_workers, plan.count_workers), (8, 1, 1));
    let engine = &plan.engine;
    assert_eq!((engine.commit_interval_ms, engine.transaction_timeout_ms), (100, 10_000));
    assert_eq!((engine.state_dir.as_path(), engine.memory_bytes), (Path::new("state"), 1 << 30));
    assert_eq!((deployment.kafka.brokers.as_str(), deployment.kafka.replication), ("localhost:9092", 1));
    assert_eq!(deployment.kafka.client, []);
    assert_eq!(deployment.http_listen, "127.0.0.1:0".parse().unwrap());
    assert!(!deployment.create_topics);
    let failures = deployment.failures;
    assert_eq!((failures.max_retries, failures.base_ms, failures.cap_ms), (3, 2000, 60_000));
    assert_eq!(&*deployment.names.entries, "shop.entries");
}

#[test]
fn what_is_written_arrives_in_the_order_of_the_file() {
    let tail = "[input.clicks]\ntopic = \"web.clicks\"\nappend_time = \"record\"\n[limits]\naccept = \"1h\"\n\
                [stage.count.window.hour]\nsize = \"1h\"\nemit = \"final\"\n[stage.count.window.day]\nsize = \"24h\"\n\
                [namespace.shop]\n[namespace.default]\nclearable = false\n[stage.count]\ndimensions = [\"b\", \"a\"]";
    let plan = deployment(&minimal(HEAD, tail)).plan;
    let inputs: Vec<_> = plan.inputs.iter().map(|input| (&*input.topic, input.append_time)).collect();
    assert_eq!(inputs, [("events", AppendTime::Log), ("web.clicks", AppendTime::Record)]);
    let windows: Vec<_> = plan.windows.iter().map(|window| (&*window.name, window.emit)).collect();
    let every = Emit::EveryMs(1000);
    assert_eq!(windows, [("minute", every), ("hour", Emit::Final), ("day", every)]);
    assert_eq!(plan.limits.remember_ms, 4_200_000, "accept + future + 5m");
    assert_eq!(plan.namespaces, Some(vec!["shop".to_owned(), "default".to_owned()]));
    assert_eq!(*plan.dimensions, ["b".to_owned(), "a".to_owned()]);
}

#[test]
fn bounds_are_included() {
    for tail in [
        "[limits]\nremember = \"24h5m\"",
        "[stage.count]\nkeep = \"24h1m\"",
        "[stage.count]\nslice = \"1m\"",
        "[engine]\ncommit_interval = \"333ms\"\ntransaction_timeout = \"1s\"",
        "[engine]\ncommit_interval = \"1ms\"\ntransaction_timeout = \"15m\"",
        "[stage.count.window.day]\nsize = \"24h\"\ngrace = \"24h\"",
        "[stage.count.window.tick]\nsize = \"1s\"",
        "[stage.count]\nworkers = 64\npartitions = 1000",
        "[stage.count]\ndimensions = [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]",
        "[schemas]\nregistry = \"http://localhost:8081\"",
        "[input.clicks.format]",
        "[input.\"shop.events\"]",
    ] {
        deployment(&minimal(HEAD, tail));
    }
}

#[test]
fn references_are_resolved_and_secrets_stay_secret() {
    let mut environment = FakeEnvironment::default();
    environment.variables.insert("BROKERS".to_owned(), "kafka1:9092, kafka2".to_owned());
    environment.variables.insert("PASSWORD".to_owned(), "hunter2".to_owned());
    environment.files.insert("conf/secrets/key".to_owned(), "line 1\nhunter3\r\n".to_owned());
    let tail = "[kafka.client]\n\"sasl.password\" = { env = \"PASSWORD\" }\n\
                \"ssl.key.password\" = { file = \"secrets/key\" }\n\"socket.connection.setup.timeout.ms\" = 10_000\n\"log_level\" = \"${X}\"";
    let text = minimal(HEAD, tail).replace("\"localhost:9092\"", "{ env = \"BROKERS\" }");
    let source = Source::of(Path::new("conf/topology.toml"));
    let found = compile(text.as_bytes(), source, &environment).unwrap();
    assert_eq!(found.kafka.brokers, "kafka1:9092, kafka2");
    let client: Vec<_> =
        found.kafka.client.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    let right = [
        ("sasl.password", "hunter2"),
        ("ssl.key.password", "line 1\nhunter3"),
        ("socket.connection.setup.timeout.ms", "10000"),
        ("log_level", "${X}"),
    ];
    assert_eq!(client, right);
    assert_eq!(found.plan.engine.state_dir, Path::new("conf/state"));
    assert!(!format!("{found:?}").contains("hunter"));
    assert!(!format!("{}", found.kafka.client[0].1).contains("hunter"));
}

#[test]
fn problems_do_not_quote_secrets() {
    let mut environment = FakeEnvironment::default();
    environment.variables.insert("BROKERS".to_owned(), "hunter2 hunter3".to_owned());
    let tail = "[kafka.client]\n\"a\" = [\"hunter2\"]\n\"b\" = { env = \"NO\", or = \"hunter2\" }\n\"c\" = 1.5\n\
                \"group.id\" = \"hunter2\"\n[schemas]\nregistry = \"ftp://a:hunter2@b\"";
    let text = minimal(HEAD, tail).replace("\"localhost:9092\"", "{ env = \"BROKERS\" }");
    let source = Source::of(Path::new("topology.toml"));
    let said = compile(text.as_bytes(), source, &environment).unwrap_err().to_string();
    assert_eq!(said.matches(": TF").count(), 6, "{said}");
    assert!(!said.contains("hunter"), "{said}");
}

#[test]
fn brokers_of_the_command_line_come_first() {
    let environment = FakeEnvironment::default();
    let with = |brokers| Source { path: Path::new("topology.toml"), brokers: Some(brokers) };
    for written in ["", "brokers = \"embedded\"", "brokers = { env = \"NOT_SET\" }"] {
        let text = minimal(HEAD, "").replace("brokers = \"localhost:9092\"", written);
        let found = compile(text.as_bytes(), with("there:1"), &environment).unwrap();
        assert_eq!(found.kafka.brokers, "there:1");
        let said = compile(text.as_bytes(), with(" "), &environment).unwrap_err().to_string();
        assert!(said.contains("TF0502: `--brokers`"), "{said}");
    }
}

#[test]
fn addresses_of_brokers() {
    let ask = |brokers: &str| -> Result<(), Problems> {
        let source = Source { path: Path::new("t"), brokers: Some(brokers) };
        compile(minimal(HEAD, "").as_bytes(), source, &FakeEnvironment::default()).map(|_| ())
    };
    for good in ["localhost", "a:1,b:2", "10.0.0.1:9092", "[::1]:9092", "[::1]", "SSL://a.b-c:9093", "a, b"] {
        assert!(ask(good).is_ok(), "{good}");
    }
    for bad in ["", ",", "a,", ":9092", "a:0", "a:b", "a:99999", "a b", "[]:1", "::1"] {
        assert!(ask(bad).is_err(), "{bad}");
    }
}
