//! scripts/readme.sh runs the marked commands of a document: in order, in one shell, and stops at the first failure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs the script on a document with this text, with this broker address.
fn run(text: &str) -> Output {
    let dir = TempDir::new().expect("a temporary folder");
    let readme = dir.path().join("README.md");
    fs::write(&readme, text).expect("the document is written");
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/readme.sh"))
        .arg(&readme)
        .env("TALLYFLOW_TEST_BROKERS", "broker.invalid:1234")
        .env("TALLYFLOW_README_SECONDS", "20")
        .output()
        .expect("scripts/readme.sh runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn marked_blocks_run_in_order_in_one_shell_and_others_do_not() {
    let output = run("# Sample\n\n```sh ci\nword=one\nmkdir made && cd made\n```\n\n```sh\nfalse\n```\n\n\
                      ```toml\nx = 1\n```\n\n1. in a list:\n\n   ```sh ci\n   echo \"$word in ${PWD##*/}\"\n   cat <<END\n\
                      \x20  indented once\n     and twice\n   END\n   ```\n");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "one in made\nindented once\n  and twice\n");
}

#[test]
fn the_first_failure_ends_it_and_is_named() {
    let output = run("```sh ci\necho before\n```\n\ntext\n\n```sh ci\nfalse\necho after\n```\n");
    assert!(!output.status.success());
    assert_eq!(stdout(&output), "before\n");
    assert!(stderr(&output).contains("README.md:7"), "{}", stderr(&output));
}

#[test]
fn an_undefined_variable_and_a_broken_pipe_are_failures() {
    assert!(!run("```sh ci\necho \"$undefined_here\"\n```\n").status.success());
    assert!(!run("```sh ci\nfalse | cat\n```\n").status.success());
}

#[test]
fn the_usual_broker_address_is_replaced() {
    let output = run("```sh ci\necho localhost:9092 127.0.0.1:9092\n```\n");
    assert_eq!(stdout(&output), "broker.invalid:1234 broker.invalid:1234\n");
}

#[test]
fn it_works_on_a_copy_of_the_repository() {
    let output = run("```sh ci\ntest -f Cargo.toml\ntest ! -e .git\necho mine > made-by-readme\n```\n");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!fs::exists(concat!(env!("CARGO_MANIFEST_DIR"), "/../made-by-readme")).unwrap());
}

#[test]
fn what_a_block_leaves_running_is_ended() {
    let output = run("```sh ci\nsleep 300 &\necho $!\n```\n");
    assert!(output.status.success(), "{}", stderr(&output));
    let pid = stdout(&output);
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // Gone, or a zombie that nobody has waited for.
    assert!(stat.is_empty() || stat.contains(") Z "), "still running: {stat}");
}

#[test]
fn a_document_without_marked_blocks_is_fine_and_says_so() {
    let output = run("# Nothing\n\n```sh\nfalse\n```\n");
    assert!(output.status.success());
    assert!(stderr(&output).contains("no commands"), "{}", stderr(&output));
}

#[test]
fn a_block_that_is_never_closed_is_refused() {
    let output = run("```sh ci\necho started\n");
    assert!(!output.status.success());
    assert_eq!(stdout(&output), "");
}
