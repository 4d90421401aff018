//! `tallyflow windows` and `tallyflow counts`: the latest row of each key, as a table or as it is.
use tallyflow_integration_tests::{Outgoing, PATIENCE, kafka, wait_until};

use super::App;

#[test]
fn rows_of_an_empty_topic_are_a_heading() {
    let app = App::new("empty");
    let absent = app.call(&["windows"]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.stderr.contains(&app.topic("windows")), "{}", absent.stderr);
    assert!(absent.stderr.contains("tallyflow topics --execute"), "{}", absent.stderr);
    let _ = app.call(&["topics", "--execute"]).success();
    for command in ["windows", "counts"] {
        let table = app.call(&[command]);
        assert_eq!((table.code, table.stdout.lines().count()), (Some(0), 1), "{}", table.stderr);
        assert!(table.stdout.starts_with("namespace  counter  region  "), "{}", table.stdout);
        assert!(table.stderr.contains("no rows in "), "{}", table.stderr);
        assert_eq!(app.call(&[command, "--json"]).success(), "");
    }
}

#[test]
fn the_highest_revision_of_each_key_is_shown() {
    let app = App::with_topics("rows");
    let row = |counter: &str, start: i64, revision: i64, sum: i64, state: &str| {
        let value = format!(
            r#"{{"namespace":"default","counter":"{counter}","region":"eu","window":"minute","window_start":{start},"#
        ) + &format!(
            r#""window_end":{},"sum":{sum},"sum_exact":"{sum}","overflow":false,"events":1,"revision":{revision},"#,
            start + 60_000
        ) + &format!(r#""state":"{state}","complete_through":null}}"#);
        Outgoing::value(value).key(format!("{counter}/{start}")).partition(0)
    };
    let records = [
        row("b", 60_000, 4, 7, "final"),
        row("a", 0, 2, 1, "update"),
        row("b", 60_000, 2, 3, "update"),
        row("a", 0, 6, -5, "update"),
    ];
    kafka().produce(&app.topic("windows"), &records);
    let table = app.call(&["windows"]).success();
    let cells: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let first = ["default", "a", "eu", "minute", "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z", "-5"];
    assert_eq!(cells.len(), 2, "{table}");
    assert_eq!((&cells[0][..7], cells[1][1], cells[1][6]), (&first[..], "b", "7"), "{table}");
    let json = |more: &[&str]| app.call(&[&["windows", "--json"], more].concat()).success();
    let text = |record: &Outgoing| String::from_utf8(record.value.clone().unwrap()).unwrap() + "\n";
    assert_eq!(json(&[]), text(&records[3]) + &text(&records[0]));
    assert_eq!(json(&["--state", "update"]), text(&records[3]));
    assert_eq!(json(&["--since", "1970-01-01T00:01:00Z"]), text(&records[0]));
    assert_eq!(json(&["--counter", "c"]), "");
}

#[test]
fn rows_are_followed_as_they_come() {
    let app = App::with_topics("follow");
    let row = |revision: i64| {
        format!(
            r#"{{"namespace":"n","counter":"c","region":"","total":1,"total_exact":"1","overflow":false,"events":1,"epoch":0,"revision":{revision},"cleared_at":null,"complete_through":null}}"#
        )
    };
    let write = |revision| kafka().produce(&app.topic("counts"), &[Outgoing::value(row(revision)).key("c")]);
    write(2);
    write(4);
    let following = app.tallyflow.spawn(&["counts", "--follow", "--json"]);
    let seen = |right: &str| {
        wait_until(PATIENCE, "the row is seen", || (following.stdout() == right).then_some(()));
    };
    seen(&(row(4) + "\n"));
    write(6);
    seen(&(row(4) + "\n" + &row(6) + "\n"));
}
