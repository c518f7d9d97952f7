//! An outcome for programs. Times are in nanoseconds, sizes in bytes, rates in bits per second.

use super::{compare, table};
use serde_json::{Value, json};
use std::time::Duration;
use uet_simulate::{
    Counted, Depth, Fault, FlowOutcome, JobOutcome, LinkUse, Outcome, Scenario, SizeClass, size_classes,
    slowdowns, spread,
};

/// Returns the outcome without the time series, which CSV contains.
pub fn of(scenario: &Scenario, outcome: &Outcome) -> Value {
    let mut value = summary(scenario, outcome);
    value["flows"] = outcome.flows.iter().map(flow).collect();
    value
}

/// Returns the outcome without single flows.
pub fn summary(scenario: &Scenario, outcome: &Outcome) -> Value {
    let mut done: Vec<Duration> = outcome.flows.iter().filter_map(|flow| flow.completed).collect();
    let spread = spread(&mut done).map(|[min, median, p99, max]| {
        json!({"min": nanos(min), "median": nanos(median), "p99": nanos(p99), "max": nanos(max)})
    });
    let slowdown = slowdowns(&outcome.flows)
        .map(|[min, median, p99, max]| json!({"min": min, "median": median, "p99": p99, "max": max}));
    let steady = outcome.steady.as_ref().map(|steady| {
        json!({
            "from": nanos(steady.from),
            "to": nanos(steady.to),
            "goodput": steady.goodput,
            "share": steady.share,
            "jain": steady.jain,
            "counted": counted(&steady.counted),
        })
    });
    let recovery = outcome.recovery.as_ref().map(|recovery| {
        json!({
            "failed": nanos(recovery.failed),
            "noticed": recovery.noticed.map(nanos),
            "last_lost": recovery.last_lost.map(nanos),
            "back": recovery.back.map(nanos),
        })
    });
    json!({
        "scenario": table::title(scenario),
        "congestion": compare::name(scenario),
        "seed": scenario.seed,
        "rate": scenario.rate,
        "payload_rate": scenario.payload_rate(),
        "base_rtt": nanos(scenario.base_rtt()),
        "plane_bdp": scenario.plane_bdp(),
        "retransmission_estimate": scenario.retransmission_estimate(),
        "ended": nanos(outcome.ended),
        "completion": spread,
        "slowdown": slowdown,
        "counted": counted(&outcome.counted),
        "steady": steady,
        "queues": {"last_hop": depth(&outcome.last_hop), "fabric": depth(&outcome.fabric)},
        "faults": scenario.faults.iter().map(|one| fault(one, outcome.ended)).collect::<Vec<_>>(),
        "recovery": recovery,
        "events": outcome.events,
        "most_packets": outcome.most_packets,
        "links": {
            "last_hop": link_use(scenario, outcome, &outcome.last_hop_links),
            "fabric": link_use(scenario, outcome, &outcome.fabric_links),
        },
        "jobs": outcome.jobs.iter().map(job).collect::<Vec<_>>(),
        "sizes": size_classes(&outcome.flows).iter().map(size_class).collect::<Vec<_>>(),
        "incomplete": outcome.flows.iter().filter(|flow| flow.completed.is_none()).count(),
    })
}

fn fault(fault: &Fault, ended: Duration) -> Value {
    json!({
        "part": fault.part.to_string(),
        "percent": fault.percent,
        "at": nanos(fault.at),
        "until": fault.until.map(nanos),
        "begun": fault.at <= ended,
    })
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn depth(depth: &Depth) -> Value {
    json!({"mean": depth.mean(), "max": depth.most})
}

fn counted(counted: &Counted) -> Value {
    json!({
        "new": counted.new,
        "again": counted.again,
        "arrived": counted.arrived,
        "trimmed": counted.trimmed,
        "trimmed_granted": counted.trimmed_granted,
        "marked": counted.marked,
        "dropped": counted.dropped,
        "lost": counted.lost,
        "acks": counted.acks,
        "nacks": counted.nacks,
        "control": counted.control,
        "delivered": counted.delivered,
        "again_per_arrival": counted.again_per_arrival(),
    })
}

fn flow(flow: &FlowOutcome) -> Value {
    json!({
        "from": flow.from,
        "to": flow.to,
        "size": flow.size,
        "started": flow.started.map(nanos),
        "received": flow.received.map(nanos),
        "completed": flow.completed.map(nanos),
        "ideal": nanos(flow.ideal),
        "delivered": flow.delivered,
        "job": flow.job,
        "class": flow.class,
    })
}

fn job(job: &JobOutcome) -> Value {
    json!({
        "name": job.name,
        "flows": job.flows,
        "started": job.started.map(nanos),
        "completed": job.completed.map(nanos),
        "ideal": nanos(job.ideal),
        "slowdown": job.slowdown(),
        "jain": job.jain,
        "delivered": job.delivered,
    })
}

fn size_class(class: &SizeClass) -> Value {
    let pair = |[median, p99]: [Value; 2]| json!({"median": median, "p99": p99});
    json!({
        "from": class.from,
        "below": class.below,
        "flows": class.flows,
        "completion": pair(class.completion.map(|time| nanos(time).into())),
        "slowdown": pair(class.slowdown.map(Value::from)),
    })
}

fn link_use(scenario: &Scenario, outcome: &Outcome, links: &LinkUse) -> Value {
    json!({
        "count": links.links,
        "bytes": links.bytes,
        "share": links.share(scenario.rate, outcome.ended),
    })
}
