//! The parameters of a device: one table for the suite, the built-in NIC and the documentation.

use serde_json::Value;
use std::collections::BTreeMap;

/// A parameter of a device. `hello` reports parameters, `configure` and a statement set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name: that of the specification in lower case, if there is one.
    pub name: &'static str,
    /// Type and unit.
    pub kind: ParameterKind,
    /// The default as JSON. The suite assumes it if the device does not report the parameter.
    pub default: &'static str,
    /// The lowest and the highest number that the suite accepts: it waits for some times, and sends as many packets as
    /// some counts say.
    pub range: (u64, u64),
    /// Origin of the parameter.
    pub origin: Origin,
    /// Meaning in one or two sentences.
    pub meaning: &'static str,
}

/// Type and unit of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// `true` or `false`.
    Flag,
    /// A whole number of this unit.
    Number(&'static str),
    /// A number with a fraction, of this unit.
    Fraction(&'static str),
    /// A whole number of this unit, or null.
    Optional(&'static str),
    /// A number with a fraction, of this unit, or null for the value by the formula of the specification.
    Computed(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of a SES return code.
    ReturnCode,
    /// A list of lists of four DSCPs.
    Dscps,
    /// A list of names of control packets.
    Controls,
}

/// Origin of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The specification names it.
    Specified,
    /// Public sources leave its value or its meaning open.
    Open,
    /// The specification does not have it: a limit or a choice of an implementation.
    Own,
}

impl core::fmt::Display for Origin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Origin::Specified => "the specification",
            Origin::Open => "open in public sources",
            Origin::Own => "this project",
        })
    }
}

impl Parameter {
    /// Returns the parameter with this name.
    ///
    /// ```
    /// use uet_control::Parameter;
    ///
    /// let timeout = Parameter::find("rto_init_time").unwrap();
    /// assert_eq!((timeout.number(), timeout.kind.unit()), (Some(100_000), Some("ns")));
    /// assert_eq!(timeout.check(&"20ms".into()), Err("a whole number (ns)".into()));
    /// ```
    pub fn find(name: &str) -> Option<&'static Parameter> {
        PARAMETERS.iter().find(|parameter| parameter.name == name)
    }

    /// Returns the default.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or_default()
    }

    /// Returns the default of a parameter that is a whole number.
    pub fn number(&self) -> Option<u64> {
        self.value().as_u64()
    }

    /// Checks the type of a value. The error names the type that it must have.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let word = value.as_str();
        let fits = match self.kind {
            ParameterKind::Flag => value.is_boolean(),
            ParameterKind::Number(_) => value.is_u64(),
            ParameterKind::Fraction(_) | ParameterKind::Computed(_) => value.is_number(),
            ParameterKind::Optional(_) => value.is_u64() || value.is_null(),
            ParameterKind::Word(words) => word.is_some_and(|word| words.contains(&word)),
            ParameterKind::ReturnCode => word.is_some(),
            ParameterKind::Dscps | ParameterKind::Controls => value.is_array(),
        };
        if fits || *value == self.value() { Ok(()) } else { Err(self.kind.to_string()) }
    }

    /// Checks the range of a value, if it is a whole number. The error names the range.
    ///
    /// ```
    /// use uet_control::Parameter;
    ///
    /// let timeout = Parameter::find("rto_init_time").unwrap();
    /// assert_eq!(timeout.check_range(&1_000_000_000.into()), Ok(()));
    /// assert_eq!(timeout.check_range(&u64::MAX.into()), Err("from 0 to 60000000000 (ns)".into()));
    /// ```
    pub fn check_range(&self, value: &Value) -> Result<(), String> {
        let (least, most) = self.range;
        match value.as_u64() {
            Some(number) if !(least..=most).contains(&number) => {
                Err(format!("from {least} to {most} ({})", self.kind.unit().unwrap_or_default()))
            }
            _ => Ok(()),
        }
    }

    /// Returns a sentence for each of these values that is out of its range: the suite would wait or send without end.
    pub fn out_of_range(values: &BTreeMap<String, Value>) -> impl Iterator<Item = String> {
        values.iter().filter_map(|(name, value)| {
            let range = Parameter::find(name)?.check_range(value).err()?;
            Some(format!("{name} is {value}, but must be {range}"))
        })
    }

    const fn within(self, least: u64, most: u64) -> Self {
        Parameter { range: (least, most), ..self }
    }
}

impl ParameterKind {
    /// Returns the unit of a number.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            ParameterKind::Number(unit)
            | ParameterKind::Fraction(unit)
            | ParameterKind::Optional(unit)
            | ParameterKind::Computed(unit) => Some(unit),
            _ => None,
        }
    }
}

impl core::fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ParameterKind::Flag => f.write_str("true or false"),
            ParameterKind::Number(unit) => write!(f, "a whole number ({unit})"),
            ParameterKind::Fraction(unit) => write!(f, "a number ({unit})"),
            ParameterKind::Optional(unit) => write!(f, "a whole number ({unit}), or null"),
            ParameterKind::Computed(unit) => write!(f, "a number ({unit}), or null for the formula's value"),
            ParameterKind::Word(words) => write!(f, "one of {}", words.join(", ")),
            ParameterKind::ReturnCode => f.write_str("the name of a SES return code"),
            ParameterKind::Dscps => f.write_str("a list of lists of four DSCPs"),
            ParameterKind::Controls => f.write_str("a list of names of control packets"),
        }
    }
}

const fn row(
    name: &'static str,
    kind: ParameterKind,
    default: &'static str,
    origin: Origin,
    meaning: &'static str,
) -> Parameter {
    Parameter { name, kind, default, range: (0, u64::MAX), origin, meaning }
}

/// The longest time in ns that the suite waits for because a device asks for it. Rules wait for a small multiple of some.
const LONGEST: u64 = 60_000_000_000;

/// The largest count or length of a device from which the suite derives its own.
const LARGEST: u64 = u32::MAX as u64;

/// The highest rate in bit/s.
const FASTEST: u64 = 1_000_000_000_000_000;

use Origin::{Open, Own, Specified};
use ParameterKind::{Computed, Controls, Dscps, Flag, Fraction, Number, Optional, ReturnCode, Word};

/// All parameters, sorted by name.
#[rustfmt::skip] // one row, one line
pub static PARAMETERS: &[Parameter] = &[
    row("abort", Word(&["message_error", "initiator_error"]), r#""message_error""#, Own, "Packet that ends a message early: UET_MSG_ERROR, or an empty last packet with `ie`. Targets understand both."),
    row("accept_unprotected_nack", Flag, "false", Open, "A secured endpoint accepts a NACK in the clear, as the reference provider sends it."),
    row("accept_zero_token", Flag, "false", Open, "A DEFERRABLE_RTR with target token 0 restarts the send, as the reference provider expects. Otherwise it is refused, and the send fails."),
    row("ack_delay", Number("ns"), "10000", Open, "Maximum delay of an ACK.").within(0, LONGEST),
    row("ack_gen_min_pkt_add", Number("bytes"), "1024", Specified, "Minimum number of bytes that a packet adds to the count for `ack_gen_trigger`.").within(0, LARGEST),
    row("ack_gen_trigger", Number("bytes"), "16384", Specified, "Number of received bytes that triggers an ACK.").within(0, LARGEST),
    row("ack_on_ecn", Flag, "true", Specified, "A marked packet is acknowledged immediately."),
    row("ack_unmarked_duplicates", Flag, "true", Open, "An ACK answers a duplicate that lacks `retx`."),
    row("alpha", Computed("bytes/s"), "null", Specified, "Gain of the proportional increase of NSCC; by formula 4 * MTU * scaling_a / 12 us."),
    row("announced_mpr", Number("128 PSNs"), "8", Own, "Window that the device announces in ACKs; 0 for no limit.").within(0, 255),
    row("answer_queue", Number("packets"), "4096", Own, "Maximum number of ACKs, NACKs and other packets without a retransmission timer that wait to leave. The device loses further ones."),
    row("ask_ack_at_eom", Flag, "true", Open, "The last packet of a message requests an ACK."),
    row("auth_fail_latch", Optional("packets"), "null", Open, "Number of wrong ICVs after which a secure domain drops all packets; null: never.").within(0, LARGEST),
    row("base_rtt", Number("ns"), "6000", Specified, "config_base_rtt: round-trip time of one MTU over the longest path without load.").within(0, LONGEST),
    row("byte_order", Word(&["little", "big"]), r#""little""#, Open, "Byte order of the elements of atomics in memory."),
    row("cccs", Number("contexts"), "65536", Own, "Maximum number of congestion control contexts. Beyond it, the reply is NACK NO_CCC_AVAIL."),
    row("clear_request_time", Number("ns"), "100000", Open, "Time that a stored response waits for a clear before CLEAR_REQUEST asks for it.").within(0, LONGEST),
    row("close_req_time", Number("ns"), "1000000000", Open, "Close_REQ_Time: time that a target waits for the CLOSE_COMMAND that it requested. Sources name 1 ms and 1 s.").within(0, LONGEST),
    row("congestion", Word(&["none", "nscc", "rccc", "both"]), r#""nscc""#, Specified, "Active congestion control."),
    row("default_mpr", Number("128 PSNs"), "8", Specified, "Window before the peer announces one; 1 to 255.").within(1, 255),
    row("delivery_complete", Flag, "true", Open, "A target answers a request with `dc` once its data is visible. Otherwise it refuses `dc` with an error, as section 3.4.8.3 permits."),
    row("denied", ReturnCode, r#""OP_VIOLATION""#, Open, "Return code for an access without permission."),
    row("drop_threshold", Fraction("Plane_BDP"), "5.0", Specified, "Depth at which a switch without trimming drops packets."),
    row("dscps", Dscps, "[]", Specified, "DSCPs of each traffic class: requests, trimmed packets, packets trimmed at the last switch, ACKs and control packets."),
    row("enb_ack_per_pkt", Flag, "false", Specified, "Every packet is acknowledged immediately."),
    row("eta", Computed("bytes"), "null", Specified, "Periodic increase of NSCC; by formula 0.15 * MTU * scaling_a."),
    row("event_capacity", Number("events"), "0", Own, "Maximum number of events in the queue; 0 switches events off."),
    row("expected_psn_in_close_ack", Flag, "true", Open, "The ACK of CLOSE_COMMAND tells a secured initiator its next Start_PSN."),
    row("explicit_completion", Flag, "false", Open, "A message completes with an immediate UET_RESPONSE, even where the default response would do."),
    row("explicit_read", Flag, "false", Open, "UET_RESPONSE acknowledges the last request of a read whose data uses the return direction. Otherwise it gets the default response."),
    row("fast_loss_packets", Number("packets"), "0", Specified, "RUD: number of packets above a gap after which the source declares a loss; 0 for never."),
    row("fi", Computed("bytes"), "null", Specified, "Fair increase of NSCC; by formula 5 * MTU * scaling_a."),
    row("fi_scale", Computed("a share"), "null", Specified, "Fast increase of NSCC; by formula 0.25 * scaling_a."),
    row("first_pdcid", Number("PDCID"), "1", Own, "First PDCID of the general pool. The reserved pool follows it."),
    row("float_faults", Flag, "false", Open, "An atomic with a floating-point fault is refused and changes nothing."),
    row("form", Word(&["standard", "shortest"]), r#""standard""#, Open, "Header form for a message of one packet."),
    row("general_pdcs", Number("contexts"), "1024", Own, "Number of PDCIDs in the general pool."),
    row("generation_repeats", Number("repetitions"), "0", Open, "Number of repetitions of a send that was refused with BAD_GENERATION, each with the generation that the refusal states."),
    row("headers", Word(&["all", "standard"]), r#""all""#, Open, "Header forms of requests that the device takes: all, or only the standard form."),
    row("idle_time", Number("ns"), "0", Open, "Time after which an idle context is closed; 0 for never."),
    row("infer_loss_packets", Number("packets"), "0", Specified, "Number of packets above a gap after which the destination sends NACK RCVR_INFER_LOSS; 0 for never."),
    row("limit_psn_range", Flag, "true", Specified, "A context closes before a direction has used `psn_range` PSNs."),
    row("max_ack_data_size", Number("bytes"), "16", Specified, "Maximum amount of read data in an ACK.").within(0, LARGEST),
    row("max_awaited", Number("bytes"), "1048576", Own, "Maximum amount of read data outstanding. Beyond it, reads wait."),
    row("max_clear_requests", Number("packets"), "5", Open, "Number of CLEAR_REQUEST packets for one response."),
    row("max_deferred", Number("messages"), "256", Own, "Maximum number of deferred sends of an index. Beyond it, the response is NO_MATCH."),
    row("max_events", Number("events"), "4096", Own, "Maximum number of events of the semantics in the queue. The device drops the oldest."),
    row("max_messages", Number("messages"), "1024", Own, "Maximum number of arriving messages of several packets. Beyond it, the reply is NACK NO_SES_MSG_AVAIL."),
    row("max_nack_retx_cnt", Number("packets"), "5", Specified, "Number of retransmissions after NACKs before the context fails; 31 means no limit.").within(0, LARGEST),
    row("max_operations", Number("operations"), "4096", Own, "Maximum number of operations of the device in flight."),
    row("max_reads", Number("packets"), "1024", Own, "Maximum number of packets of read data in flight. Beyond it, the reply to a read is NACK NO_RESOURCE."),
    row("max_repeats", Number("repetitions"), "3", Open, "Number of repetitions, on a new context, of an operation that is safe to repeat after a fatal NACK that permits it."),
    row("max_rto_retx_cnt", Number("packets"), "5", Specified, "Number of retransmissions by timeout; 15 (in hardware-sized configurations) or 31 means no limit.").within(0, LARGEST),
    row("max_sources", Number("sources"), "4096", Own, "RCCC: maximum number of sources that the destination remembers. Beyond it, a source gets no credit until a silent one is forgotten."),
    row("max_tail_loss_retx", Number("packets"), "5", Open, "Max_Tail_Loss_Retx: number of retransmissions after `tail_loss_time`, 0 to 15.").within(0, 15),
    row("max_unexpected", Number("messages"), "256", Own, "Maximum number of unexpected messages of an index. Beyond it, the response is NO_MATCH."),
    row("max_unexpected_bytes", Number("bytes"), "1048576", Own, "Maximum amount of unexpected messages of an index. Bytes count as they arrive."),
    row("max_unexpected_bytes_of_peer", Number("bytes"), "262144", Own, "Part of `max_unexpected_bytes` that one peer may use. All peers without a confirmed context share one such part."),
    row("max_unexpected_of_peer", Number("messages"), "64", Own, "Part of `max_unexpected` that one peer may use. All peers without a confirmed context share one such part."),
    row("max_written", Number("messages"), "4096", Own, "Maximum number of peers' writes with header data whose completions wait for the application. Beyond it, the reply is NACK NO_RESOURCE."),
    row("nack_retx_time", Number("ns"), "10000", Specified, "Back-off after a NACK of the normal class that is not a trim.").within(0, LONGEST),
    row("nack_ses_processing", Flag, "true", Open, "NACK RCVD_SES_PROCG answers a retransmission whose response is not ready. Otherwise there is no reply."),
    row("nack_trimmed_syn", Flag, "true", Open, "A NACK answers a trimmed packet that would open a context."),
    row("nack_unknown_control", Flag, "true", Open, "NACK UNEXP_EVENT answers an unknown control packet."),
    row("negotiation", Flag, "true", Specified, "The device supports NEGOTIATION (since v1.0.1)."),
    row("new_pdc_time", Number("ns"), "1000000", Open, "UET_NEW_PDC_TIME: time that a secured target keeps a context whose Start_PSN it refused. Sources name 5 ms and 1 s; the built-in NIC keeps it for less, so that a flood occupies less.").within(0, LONGEST),
    row("operand_order", Word(&["little", "big"]), "null", Open, "Byte order of the operands and results of atomics in packets; null: that of `byte_order`."),
    row("out_of_range", ReturnCode, r#""BAD_ADDR""#, Open, "Return code for an access outside its region."),
    row("override_mpr_zero_value", Optional("PSNs"), "null", Open, "Override_MPR_Zero_Value: the range that an `mpr` of 0 stands for, 1 to 127 (since v1.0.3); null: no limit.").within(1, 127),
    row("paths", Word(&["single", "oblivious", "recycling", "bitmap"]), r#""oblivious""#, Own, "Choice of paths for unordered packets."),
    row("payload_mtu", Number("bytes"), "4096", Specified, "Payload of a full packet: 1024, 2048, 4096 or 8192.").within(1024, 8192),
    row("pds_clear_time", Number("ns"), "20000", Open, "Time that CLEAR_PSN waits for a request that carries it.").within(0, LONGEST),
    row("psn_range", Number("PSNs"), "2147483648", Specified, "Number of PSNs that a direction may use. Only tests set less."),
    row("read_in_ack", Flag, "true", Open, "ACKs carry read data of up to `max_ack_data_size` bytes."),
    row("ready_tokens", Word(&["initiator_first", "sender_first"]), r#""initiator_first""#, Specified, "Order of the tokens in DEFERRABLE_RTR. Section 3.4.1.3.5 places the initiator's first; the reference provider sends its own first."),
    row("receive_slots", Number("PSNs"), "1048576", Own, "Maximum number of tracked PSNs above the cumulative ones, over all contexts. Beyond it, the reply is NACK NO_RESOURCE, or NO_BITMAP for a new context."),
    row("receiver_rate", Number("bit/s"), "100000000000", Specified, "Link rate of the destination.").within(0, FASTEST),
    row("reclaim_unconfirmed", Flag, "true", Own, "A new context may replace the oldest target context whose peer has sent only syn packets."),
    row("region_generation", Flag, "true", Open, "`ri_generation` protects memory as it protects queues."),
    row("require_protection", Flag, "true", Open, "Packets in the clear are dropped if a secure domain covers the peer."),
    row("reserved_pdcs", Number("contexts"), "0", Open, "Number of PDCIDs in the reserved pool."),
    row("restart", Word(&["start", "offset"]), r#""start""#, Open, "Position from which a deferred send restarts: its start, or `buffer_offset` of the DEFERRABLE_RTR."),
    row("rod_opens_early", Flag, "true", Open, "An early syn packet opens a ROD context."),
    row("rto_init_time", Number("ns"), "100000", Specified, "Timeout of the first retransmission. Each further one doubles it.").within(0, LONGEST),
    row("rudi_requests", Number("packets"), "1024", Own, "Maximum number of idempotent requests in flight in either direction. Beyond it, the reply is NACK NO_RESOURCE."),
    row("rx_max_epoch_lifetime", Number("epochs"), "16", Open, "Number of epochs by which a protected packet may be behind.").within(0, LARGEST),
    row("rx_packets", Number("packets"), "65536", Own, "Maximum number of received requests without a response of the semantics, over all contexts. Beyond it, the reply is NACK NO_PKT_BUFFER."),
    row("seed", Number("seed"), "0", Own, "Seed of the built-in NIC's random numbers."),
    row("send_unprotected_nack", Flag, "false", Open, "A NACK without a context leaves in the clear."),
    row("sender_rate", Number("bit/s"), "100000000000", Specified, "Link rate of the source.").within(0, FASTEST),
    row("small_index", Word(&["optimised_key", "index"]), r#""optimised_key""#, Open, "Meaning of `resource_index` in a SMALL request to memory, which has no key. It is the optimized key of a region of the process, at whichever index, or an index, whose region has the optimized key 0."),
    row("stall_time", Number("ns"), "5000000000", Own, "Time without progress after which a message that is arriving is given up, and an unexpected message of a peer without a confirmed context; at most twice as long.").within(0, LONGEST),
    row("start_message_id", Number("message_id"), "1", Own, "message_id of the first message as an initiator. For tests of the wrap only."),
    row("start_psn", Optional("PSN"), "null", Own, "Start_PSN of an unused PDCID, instead of a random one. For tests only: a peer that can guess PSNs can interfere."),
    row("start_psn_distance", Number("PSNs"), "65536", Specified, "Minimum distance of a Start_PSN from the last PSN used with the PDCID.").within(0, LARGEST),
    row("start_psn_floor", Word(&["highest", "start"]), r#""highest""#, Open, "Lowest Start_PSN after a secured context has closed: above the highest PSN that it used, or above its Start_PSN."),
    row("start_psn_method", Word(&["expected", "random"]), r#""expected""#, Open, "Proof that a secured context is new: a Start_PSN above the floor, or a fresh random one."),
    row("start_rcvd_bytes", Number("bytes"), "0", Own, "Number of bytes from which `rcvd_bytes` of a context counts, at source and target. For tests of the wrap only.").within(0, LARGEST),
    row("stored_responses", Number("responses"), "65536", Own, "Maximum number of responses that are stored or may have to be, over all contexts. Beyond it, the reply is NACK NO_GTD_DEL_AVAIL."),
    row("swap_length", Optional("bytes"), "null", Open, "request_length of a compare and swap, and modified_length of the old value that it returns; null: the length of an element.").within(0, LARGEST),
    row("swap_order", Word(&["operand_first", "memory_first"]), r#""operand_first""#, Open, "First operand of an ordered compare and swap: CSWAP_LE swaps if operand <= memory, or if memory <= operand."),
    row("syn_retx_safety_time", Number("ns"), "10000000", Open, "Time for which a device remembers a closed target context, so that late syn packets do not open a context.").within(0, LONGEST),
    row("tail_loss_time", Optional("ns"), "null", Open, "Tail_Loss_Time: time after which a source retransmits the last packets in flight before their timeout, such as 1 ms. The rules then accept a retransmission from this time on; null: no such timer.").within(0, LONGEST),
    row("too_long", Word(&["truncate", "refuse"]), r#""truncate""#, Open, "Handling of a send longer than its buffer: `modified_length` states the truncated length, or the response is TOO_LONG."),
    row("trailer", Word(&["none", "crc"]), r#""none""#, Specified, "Trailer of the device's packets."),
    row("trimming", Flag, "true", Specified, "Switches trim packets instead of dropping them."),
    row("tx_queue", Number("packets"), "64", Own, "Number of requests that wait in one context before PDS asks SES to pause."),
    row("unsupported_control", Controls, "[]", Open, "Control packets that the device does not support, such as NOOP or PROBE."),
    row("uud_opcode", Word(&["datagram_send", "send"]), r#""datagram_send""#, Open, "Opcode of datagrams by UUD: UET_DATAGRAM_SEND or UET_SEND. With `send`, the device takes both."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_defaults_fit_their_types() {
        assert!(PARAMETERS.is_sorted_by(|a, b| a.name < b.name));
        for parameter in PARAMETERS {
            assert_eq!(parameter.check(&parameter.value()), Ok(()), "{}", parameter.name);
            assert_eq!(parameter.check_range(&parameter.value()), Ok(()), "{}", parameter.name);
            // The suite does not wait for the end of idle contexts.
            let is_wait = parameter.kind.unit() == Some("ns") && parameter.name != "idle_time";
            assert_eq!(parameter.range == (0, LONGEST), is_wait, "{}", parameter.name);
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        for (name, value) in [
            ("ack_on_ecn", Value::from(1)),
            ("ack_delay", Value::from(-1)),
            ("paths", Value::from("all")),
            ("start_psn", Value::from(true)),
            ("denied", Value::from(3)),
            ("drop_threshold", Value::from("5")),
            ("dscps", Value::from(10)),
        ] {
            assert!(Parameter::find(name).unwrap().check(&value).is_err(), "{name}");
        }
    }
}
