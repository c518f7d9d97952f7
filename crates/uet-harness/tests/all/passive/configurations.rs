//! Configurations of correct devices, by their differences from the default.

use serde_json::{Value, json};
use uet_emulator::Config;

/// A parameter that differs from the default.
pub(crate) type Parameter = (&'static str, fn() -> Value);

/// A name, and the parameters that differ.
pub(crate) type Configuration = (&'static str, &'static [Parameter]);

pub(crate) const CONFIGURATIONS: &[Configuration] = &[
    ("as it comes", &[]),
    ("acknowledges every packet", &[("enb_ack_per_pkt", || json!(true))]),
    (
        "acknowledges seldom and late",
        &[
            ("ack_gen_trigger", || json!(1 << 20)),
            ("ack_delay", || json!(2_000_000)),
            ("ack_on_ecn", || json!(false)),
            ("ask_ack_at_eom", || json!(false)),
        ],
    ),
    ("a small window", &[("default_mpr", || json!(1)), ("announced_mpr", || json!(1))]),
    ("a large window, small packets", &[("announced_mpr", || json!(32)), ("payload_mtu", || json!(1024))]),
    ("read data in ACKs", &[("max_ack_data_size", || json!(8192))]),
    (
        "read data on the return direction",
        &[("read_in_ack", || json!(false)), ("max_ack_data_size", || json!(0))],
    ),
    ("one path", &[("paths", || json!("single"))]),
    ("paths that recover", &[("paths", || json!("bitmap"))]),
    (
        "silence while semantics works, and for copies",
        &[
            ("nack_ses_processing", || json!(false)),
            ("ack_unmarked_duplicates", || json!(false)),
            ("nack_trimmed_syn", || json!(false)),
            ("nack_unknown_control", || json!(false)),
        ],
    ),
    ("receiver credit", &[("congestion", || json!("rccc"))]),
    ("receiver credit in control packets", &[("congestion", || json!("both"))]),
    ("no congestion control", &[("congestion", || json!("none"))]),
    ("the shortest headers", &[("form", || json!("shortest")), ("explicit_completion", || json!(true))]),
    (
        "refuses what is too long, other codes",
        &[
            ("too_long", || json!("refuse")),
            ("out_of_range", || json!("AT_OUT_OF_RANGE")),
            ("denied", || json!("AT_PERM")),
            ("abort", || json!("initiator_error")),
            ("swap_order", || json!("memory_first")),
            ("restart", || json!("offset")),
        ],
    ),
    (
        "other numbers, and packets taken for lost early",
        &[
            ("first_pdcid", || json!(0x4001)),
            ("fast_loss_packets", || json!(64)),
            ("rod_opens_early", || json!(false)),
            ("limit_psn_range", || json!(false)),
        ],
    ),
];

/// Returns the configuration with these parameters.
pub(crate) fn config(parameters: &[Parameter]) -> Config {
    let mut config = Config { seed: 5, ..Config::default() };
    for (name, value) in parameters {
        config.set(name, &value()).unwrap_or_else(|error| panic!("{error}"));
    }
    config
}
