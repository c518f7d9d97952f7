//! Devices that differ and are all correct: every rule passes on each. A rule that fails here mistakes a choice for a
//! requirement.

use serde_json::{Value, json};
use uet_conformance::{Options, Verdict, run};
use uet_emulator::Config;
use uet_harness::dut::Embedded;

/// Creates the embedded NIC with this configuration; `delay` delays all its packets.
fn nic(parameters: &Value, delay: Option<&str>) -> Embedded {
    let mut config = Config::default();
    for (name, value) in parameters.as_object().unwrap() {
        config.set(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let mut nic = Embedded::new(config).unwrap();
    if let Some(delay) = delay {
        nic.network().fabric().impair(delay.parse().unwrap());
    }
    nic
}

/// Runs the rules of these groups on this NIC; without groups, all rules.
fn green(mut nic: Embedded, parameters: &Value, groups: &[&str]) {
    let mut bad = Vec::new();
    let groups = groups.iter().map(ToString::to_string).collect();
    let options =
        Options { groups, max_instances: cfg!(debug_assertions).then_some(1), ..Options::default() };
    let result = run(&mut nic, &options, |rule| {
        if !matches!(rule.verdict, Verdict::Pass | Verdict::Skipped) {
            bad.push(format!("{} {}: {}\n", rule.id, rule.verdict.name(), rule.reason));
        }
    });
    assert!(
        bad.is_empty(),
        "{} of {} rules with {parameters}:\n{}",
        bad.len(),
        result.rules.len(),
        bad.concat()
    );
    assert_eq!(result.packets.findings, []);
    let skipped = result.count(Verdict::Skipped);
    assert!(skipped * 20 < result.rules.len(), "{skipped} of {} rules were skipped", result.rules.len());
}

/// Creates one test per configuration, so that they run in parallel.
macro_rules! configurations {
    ($($name:ident: $parameters:tt $(on $delay:literal)?;)*) => {
        /// The name of each configuration, and a function that creates its NIC.
        pub(crate) const ALL: &[(&str, fn() -> Embedded)] = &[
            $((stringify!($name), || nic(&json!($parameters), [$($delay)?].into_iter().next())),)*
            ("is_a_peer_of_the_reference_provider", || nic(&of_the_reference_provider(), None)),
        ];

        $(#[test]
        fn $name() {
            let parameters = json!($parameters);
            green(nic(&parameters, [$($delay)?].into_iter().next()), &parameters, &[]);
        })*
    };
}

configurations! {
    acks_each_packet: {"enb_ack_per_pkt": true};
    acks_seldom: {"ack_gen_trigger": 65536, "ack_gen_min_pkt_add": 64, "ask_ack_at_eom": false};
    acks_late: {"ack_delay": 5_000_000, "ack_on_ecn": false};
    announces_a_small_window: {"announced_mpr": 2};
    announces_zero_for_a_small_window: {"announced_mpr": 0, "override_mpr_zero_value": 64};
    announces_a_large_window: {"announced_mpr": 64, "default_mpr": 4};
    sends_no_data_in_acks: {"max_ack_data_size": 0};
    sends_all_data_in_acks: {"max_ack_data_size": 4096};
    is_silent_where_it_may: {
        "nack_ses_processing": false, "nack_trimmed_syn": false, "nack_unknown_control": false,
        "ack_unmarked_duplicates": false, "rod_opens_early": false
    };
    answers_slowly: {
        "rto_init_time": 5_000_000, "nack_retx_time": 1_000_000, "pds_clear_time": 1_000_000,
        "clear_request_time": 4_000_000
    } on "delay 400us from 10.0.0.1";
    controls_no_congestion: {"congestion": "none"};
    grants_credit: {"congestion": "rccc"};
    controls_congestion_at_both_ends: {"congestion": "both"};
    sends_small_packets: {"payload_mtu": 1024};
    sends_large_packets: {"payload_mtu": 8192, "form": "shortest", "paths": "bitmap"};
    takes_the_shortest_headers: {"form": "shortest", "small_index": "index", "explicit_completion": true};
    names_errors_otherwise: {
        "out_of_range": "AT_OUT_OF_RANGE", "denied": "AT_PERM", "too_long": "refuse", "restart": "offset",
        "abort": "initiator_error", "ready_tokens": "sender_first", "negotiation": false,
        "accept_zero_token": true
    };
    refuses_delivery_complete: {"delivery_complete": false};
    has_little_room: {"idle_time": 100_000, "general_pdcs": 16, "stored_responses": 16};
    gives_up_early: {
        "max_rto_retx_cnt": 1, "max_nack_retx_cnt": 1, "default_mpr": 24, "infer_loss_packets": 1,
        "idle_time": 1_000_000
    };
    never_gives_up: {"max_rto_retx_cnt": 31, "max_nack_retx_cnt": 31};
    keeps_big_endian_memory: {"byte_order": "big", "explicit_read": true};
    infers_loss: {"fast_loss_packets": 4, "infer_loss_packets": 3, "first_pdcid": 28672, "paths": "recycling"};
}

/// Returns the configuration of the page about the reference provider.
fn of_the_reference_provider() -> Value {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference-provider.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("# peer.toml\n").unwrap();
    let (lines, _) = rest.split_once("```").unwrap();
    // Each of its values is JSON, too.
    let value = |line: &str| {
        let (name, value) = line.split_once(" = ").unwrap();
        (name.to_owned(), serde_json::from_str(value).unwrap())
    };
    let mut parameters: serde_json::Map<String, Value> = lines.lines().map(value).collect();
    assert_eq!(parameters.len(), 6);
    parameters.insert("explicit_completion".into(), true.into());
    parameters.into()
}

#[test]
fn is_a_peer_of_the_reference_provider() {
    let parameters = of_the_reference_provider();
    green(nic(&parameters, None), &parameters, &[]);
}

/// Its window is shorter than a series of requests of every length.
#[test]
fn announces_the_smallest_window() {
    let parameters = json!({"default_mpr": 1, "announced_mpr": 1});
    green(nic(&parameters, None), &parameters, &["lengths"]);
}
