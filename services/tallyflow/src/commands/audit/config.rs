//! What the recount must know of the topology, in its own words.

use tallyflow_audit::{AuditConfig, Limits, WindowSpec};
use tallyflow_core::plan::{AppendTime, Emit, WindowPlan};
use tallyflow_topology::Deployment;

/// The recount's configuration for a deployment, by this clock.
pub fn of(deployment: &Deployment, now_ms: i64) -> AuditConfig {
    let plan = &deployment.plan;
    let by_record = plan.inputs.iter().filter(|input| input.append_time == AppendTime::Record);
    AuditConfig {
        accept_ms: plan.limits.accept_ms,
        future_ms: plan.limits.future_ms,
        remember_ms: plan.limits.remember_ms,
        limits: Limits {
            record_bytes: plan.record_limits.record_bytes,
            depth: plan.record_limits.depth,
            members: plan.record_limits.members,
            packed_events: plan.record_limits.packed_events,
        },
        namespaces: plan.namespaces.clone(),
        dimensions: plan.dimensions.to_vec(),
        windows: plan.windows.iter().map(window).collect(),
        // Every window of this version has a fixed size.
        not_recounted: Vec::new(),
        totals: true,
        slice_ms: plan.slice.ms(),
        record_time_topics: by_record.map(|input| input.topic.to_string()).collect(),
        keep_ms: Some(plan.keep_ms),
        now_ms: Some(now_ms),
    }
}

fn window(window: &WindowPlan) -> WindowSpec {
    WindowSpec {
        name: window.name.to_string(),
        size_ms: window.size.ms(),
        grace_ms: window.grace_ms,
        finals_only: window.emit == Emit::Final,
    }
}

#[cfg(test)]
mod tests {
    use tallyflow_audit::Recount;

    use super::*;
    use crate::topics::tests::deployment;

    #[test]
    fn everything_is_passed_on() {
        let mut deployment = deployment();
        deployment.plan.inputs[0].append_time = AppendTime::Record;
        deployment.plan.windows[0].emit = Emit::Final;
        deployment.plan.windows[0].grace_ms = 5_000;
        let config = of(&deployment, 77);
        assert_eq!((config.accept_ms, config.future_ms), (86_400_000, 300_000));
        assert_eq!(config.record_time_topics, ["events"]);
        let window = WindowSpec { grace_ms: 5_000, finals_only: true, ..WindowSpec::new("minute", 60_000) };
        assert_eq!(config.windows, [window]);
        assert_eq!((config.keep_ms, config.now_ms), (Some(deployment.plan.keep_ms), Some(77)));
        assert!(Recount::new(config).is_ok());
    }
}
