//! What meets the outside: addresses, librdkafka properties, and what this version leaves out.
//!
//! Must not know: anything about counting.

use std::net::SocketAddr;

use crate::codes::Code;
use crate::owned::owned;
use crate::place::{Placed, Report};
use crate::suggest;
use crate::written::Written;

/// The word for the broker inside the process, in place of addresses.
const EMBEDDED: &str = "embedded";

/// Checks all but the brokers.
pub(super) fn check(written: &Written, report: &mut Report<'_>) {
    client(written, report);
    listen(written, report);
    registry(written, report);
    left_out(written, report);
}

/// Checks the addresses of brokers, which may come from a reference: they are not quoted. `given_by` is the key or
/// option that they come from.
pub(crate) fn brokers(given_by: &str, brokers: &Placed<String>, report: &mut Report<'_>) {
    if refuses_embedded(given_by, brokers, report) {
        return;
    }
    let mut bad = brokers.value.split(',').enumerate().filter(|(_, address)| !is_broker(address.trim()));
    if let Some((at, _)) = bad.next() {
        let message = format!("`{given_by}`: address {} is not a host and port", at.saturating_add(1));
        let help = "write \"host:port\", and commas between several: \"kafka1:9092,kafka2:9092\"";
        report.add(brokers.at, Code::BadAddress, message, help);
    }
}

/// The one place that knows that this version has no embedded broker.
fn refuses_embedded(given_by: &str, brokers: &Placed<String>, report: &mut Report<'_>) -> bool {
    let refused = brokers.value == EMBEDDED;
    if refused {
        let message = format!("`{given_by}`: this version has no embedded broker");
        let help = "write the address of a Kafka cluster: \"localhost:9092\"";
        report.add(brokers.at, Code::NoEmbeddedBroker, message, help);
    }
    refused
}

fn is_broker(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    // An IPv6 address stands in brackets; librdkafka's default port is 9092.
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let good_host = bracketed || (!host.is_empty() && host.chars().all(plain));
    good_host && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn client(written: &Written, report: &mut Report<'_>) {
    for (name, _) in &written.client {
        let text = name.value.as_str();
        if owned(text) {
            let (message, help) = (format!("`{text}` belongs to the engine"), owned_help(text));
            report.add(name.at, Code::OwnedProperty, message, help);
        } else if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
            let message = format!("{text:?} cannot be a librdkafka property");
            let help = "write its name as librdkafka does: \"security.protocol\"";
            report.add(name.at, Code::BadName, message, help);
        }
    }
}

fn owned_help(property: &str) -> &'static str {
    match property {
        "bootstrap.servers" | "metadata.broker.list" => "write `brokers` in [kafka] instead",
        "transaction.timeout.ms" => "write `transaction_timeout` in [engine] instead",
        "allow.auto.create.topics" => "write `create_topics` in [engine] instead",
        "auto.commit.interval.ms" => "write `commit_interval` in [engine] instead",
        _ => "leave it out: exact counting rests on the value that the engine sets",
    }
}

fn listen(written: &Written, report: &mut Report<'_>) {
    let Some(listen) = &written.listen else {
        return;
    };
    if listen.value.parse::<SocketAddr>().is_err() {
        let message = format!("`http.listen` is {:?}, which is not an IP address and port", listen.value);
        let help =
            "write \"127.0.0.1:0\" for any free port, or \"0.0.0.0:8080\" to be reached from elsewhere";
        report.add(listen.at, Code::BadAddress, message, help);
    }
}

fn registry(written: &Written, report: &mut Report<'_>) {
    let Some(registry) = &written.registry else {
        return;
    };
    let rest = ["http://", "https://"].iter().find_map(|scheme| registry.value.strip_prefix(scheme));
    if !rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace)) {
        let help = "write something like \"http://localhost:8081\"";
        report.add(registry.at, Code::BadAddress, "`schemas.registry` is not a URL", help);
    }
}

fn left_out(written: &Written, report: &mut Report<'_>) {
    if let Some(format) = written.output_format.as_ref().filter(|format| format.value != "json") {
        let message = format!("`output.format` is \"{}\", which is not in this version", format.value);
        report.add(format.at, Code::JsonOnly, message, "write \"json\", or leave it out");
    }
    for namespace in &written.namespaces {
        if let Some(clearable) = namespace.clearable.as_ref().filter(|clearable| clearable.value) {
            let name = suggest::quoted(&namespace.name.value);
            let message = format!("`namespace.{name}.clearable`: clears are not in this version");
            report.add(clearable.at, Code::NoClear, message, "write false, or leave it out");
        }
    }
}
