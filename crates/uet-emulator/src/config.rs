//! The configuration of a NIC, also by parameter name for the control channel and for files.

use core::fmt;
use core::time::Duration;
use serde_json::Value;
use std::collections::BTreeMap;
use uet_model::PdsParams;
use uet_model::cc::{CcError, CcParams, NetworkParams, PathMode};
use uet_model::secure::{SecureParams, StartPsnFloor, StartPsnMethod};
use uet_model::ses::{
    Abort, ByteOrder, FormChoice, Restart, SesParams, SmallIndex, SwapOrder, TokenOrder, TooLong, UudOpcode,
};
use uet_wire::Version;
use uet_wire::registry::ReturnCode;

/// The parameters of a NIC.
///
/// ```
/// use serde_json::json;
/// use uet_emulator::config::Config;
///
/// let mut config = Config::default();
/// config.set("rto_init_time", &json!(20_000_000))?;
/// config.set("congestion", &json!("rccc"))?;
/// assert_eq!(config.get()["rto_init_time"], 20_000_000);
///
/// let refused = config.set("payload_mtu", &json!(1500)).unwrap_err();
/// assert_eq!(refused.to_string(), "payload_mtu: must be 1024, 2048, 4096 or 8192");
/// # Ok::<(), uet_emulator::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Parameters of packet delivery. [`congestion`](Self::congestion) overrides their congestion control, except for
    /// `max_sources`.
    pub pds: PdsParams,
    /// Parameters of the semantics.
    pub ses: SesParams,
    /// Parameters of transport security.
    pub secure: SecureParams,
    /// Congestion control algorithms.
    pub congestion: Congestion,
    /// Path selection of an unordered context.
    pub paths: PathMode,
    /// Parameters of the network.
    pub network: NetworkParams,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Version of the specification that `hello` reports.
    pub version: Version,
}

/// The congestion control algorithms that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// None.
    None,
    /// NSCC.
    #[default]
    Nscc,
    /// RCCC.
    Rccc,
    /// Both.
    Both,
}

/// A rejected parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the parameter.
    pub name: String,
    /// Required type, range or choice.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl core::error::Error for ConfigError {}

impl From<CcError> for ConfigError {
    fn from(error: CcError) -> Self {
        ConfigError { name: error.parameter.into(), reason: error.reason.into() }
    }
}

impl Config {
    /// Returns timeouts that suit the clock and network of a general-purpose operating system.
    pub fn real_time() -> Self {
        let pds = PdsParams {
            rto_init_time: Duration::from_millis(20),
            nack_retx_time: Duration::from_millis(2),
            ack_delay: Duration::from_millis(1),
            pds_clear_time: Duration::from_millis(2),
            clear_request_time: Duration::from_millis(10),
            syn_retx_safety_time: Duration::from_millis(100),
            // Longer than a round trip to a busy process. Otherwise the target refuses the Start_PSN that it asked for.
            new_pdc_time: Duration::from_millis(100),
            ..PdsParams::default()
        };
        // Such a network then holds no more than a socket does while its reader sleeps.
        let rate = 1_000_000_000;
        let base_rtt = Duration::from_millis(1);
        let network =
            NetworkParams { sender_rate: rate, receiver_rate: rate, base_rtt, ..NetworkParams::default() };
        Config { pds, network, ..Config::default() }
    }

    /// Returns the complete parameters of packet delivery, or an error if they are invalid.
    pub(crate) fn pds(&self) -> Result<PdsParams, ConfigError> {
        let network = NetworkParams {
            mtu: self.pds.payload_mtu.into(),
            full_packet: NetworkParams::full_packet(self.pds.payload_mtu.into()),
            ..self.network.clone()
        };
        let congestion = match self.congestion {
            Congestion::None => CcParams::none(&network),
            Congestion::Nscc => CcParams::nscc(&network),
            Congestion::Rccc => CcParams::rccc(&network),
            Congestion::Both => CcParams::both(&network),
        };
        let mut congestion = congestion?;
        congestion.paths.mode = self.paths;
        congestion.pacer.max_sources = self.pds.congestion.pacer.max_sources;
        Ok(PdsParams { congestion, ..self.pds.clone() })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |name: &str, reason: &str| Err(ConfigError { name: name.into(), reason: reason.into() });
        if ![1024, 2048, 4096, 8192].contains(&self.pds.payload_mtu) {
            return refuse("payload_mtu", "must be 1024, 2048, 4096 or 8192");
        }
        if self.pds.default_mpr == 0 {
            return refuse("default_mpr", "must be from 1 to 255");
        }
        if self.pds.override_mpr_zero_value.is_some_and(|range| !(1..=127).contains(&range)) {
            return refuse("override_mpr_zero_value", "must be from 1 to 127, or null");
        }
        if self.pds.general_pdcs == 0 {
            return refuse("general_pdcs", "must be at least 1");
        }
        if self.ses.stall_time.is_zero() {
            return refuse("stall_time", "must be at least 1 ns: forged messages would stay");
        }
        if self.ses.swap_length.is_some_and(|length| !(1..=1024).contains(&length)) {
            return refuse("swap_length", "must be from 1 to 1024, or null");
        }
        if self.pds.congestion.pacer.max_sources == 0 {
            return refuse("max_sources", "must be at least 1");
        }
        if u32::from(self.pds.general_pdcs) + u32::from(self.pds.reserved_pdcs) > 65_535 {
            return refuse("reserved_pdcs", "must be at most 65,535 together with general_pdcs");
        }
        let counts = [
            ("event_capacity", self.pds.event_capacity as u64, 1 << 20),
            ("rx_packets", self.pds.rx_packets.into(), 1 << 20),
            ("stored_responses", self.pds.stored_responses.into(), 1 << 20),
            ("receive_slots", self.pds.receive_slots.into(), 1 << 24),
            ("cccs", self.pds.cccs.into(), 1 << 20),
            ("max_sources", self.pds.congestion.pacer.max_sources as u64, 1 << 20),
            ("max_awaited", self.ses.max_awaited.into(), 1 << 30),
            ("max_unexpected_bytes", self.ses.max_unexpected_bytes.into(), 1 << 30),
            ("max_unexpected_bytes_of_peer", self.ses.max_unexpected_bytes_of_peer.into(), 1 << 30),
        ];
        for (name, count, limit) in counts {
            if count > limit {
                return refuse(name, &format!("must be a number from 0 to {limit}"));
            }
        }
        self.pds().map(|_| ())
    }

    /// Sets a parameter by name. Times are in nanoseconds, choices are words. An invalid value changes nothing.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), ConfigError> {
        let refused = |reason: String| ConfigError { name: name.into(), reason };
        let mut changed = self.clone();
        let parameter = parameters(&mut changed).remove(name);
        let parameter = parameter
            .ok_or_else(|| refused("there is no such parameter; docs/parameters.md lists them".into()))?;
        parameter.write(value).map_err(refused)?;
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// Returns all parameters by name.
    pub fn get(&self) -> BTreeMap<String, Value> {
        let mut copy = self.clone();
        parameters(&mut copy).into_iter().map(|(name, place)| (name.into(), place.read())).collect()
    }
}

/// Names the fields and gives access to them. A field missing from the list is a compile error.
macro_rules! places {
    ($Struct:ident of $value:expr => $places:expr; $($field:ident)* ; not $($other:ident)*) => {
        let $Struct { $($field,)* $($other: _,)* } = $value;
        $($places.insert(stringify!($field), $field as &mut dyn Parameter);)*
    };
}

fn parameters(config: &mut Config) -> BTreeMap<&'static str, &mut dyn Parameter> {
    let mut places = BTreeMap::new();
    let Config { pds, ses, secure, congestion, paths, network, seed, version: _ } = config;
    places! { PdsParams of pds => places;
        payload_mtu default_mpr announced_mpr override_mpr_zero_value ack_gen_trigger ack_gen_min_pkt_add ack_on_ecn enb_ack_per_pkt ack_delay
        max_ack_data_size rto_init_time max_rto_retx_cnt nack_retx_time max_nack_retx_cnt
        close_req_time new_pdc_time pds_clear_time clear_request_time max_clear_requests limit_psn_range psn_range
        start_psn start_psn_distance start_rcvd_bytes syn_retx_safety_time first_pdcid general_pdcs reserved_pdcs idle_time tx_queue
        rx_packets stored_responses receive_slots answer_queue rudi_requests cccs event_capacity ask_ack_at_eom
        rod_opens_early nack_ses_processing nack_trimmed_syn nack_unknown_control negotiation ack_unmarked_duplicates
        reclaim_unconfirmed fast_loss_packets infer_loss_packets;
        not congestion
    }
    places! { SesParams of ses => places;
        form small_index region_generation delivery_complete out_of_range denied too_long read_in_ack restart ready_tokens accept_zero_token abort byte_order operand_order swap_order swap_length uud_opcode float_faults
        explicit_completion explicit_read max_repeats generation_repeats start_message_id max_operations max_messages max_reads max_awaited max_unexpected max_unexpected_bytes max_unexpected_of_peer max_unexpected_bytes_of_peer stall_time max_deferred
        max_written max_events;
        not
    }
    places! { SecureParams of secure => places;
        require_protection send_unprotected_nack accept_unprotected_nack start_psn_method start_psn_floor
        expected_psn_in_close_ack rx_max_epoch_lifetime auth_fail_latch;
        not
    }
    places! { NetworkParams of network => places;
        sender_rate receiver_rate base_rtt trimming drop_threshold;
        not mtu full_packet
    }
    places.insert("max_sources", &mut pds.congestion.pacer.max_sources);
    places.insert("congestion", congestion);
    places.insert("paths", paths);
    places.insert("seed", seed);
    places
}

/// A value with a JSON form.
trait Parameter {
    fn read(&self) -> Value;
    fn write(&mut self, value: &Value) -> Result<(), String>;
}

macro_rules! numbers {
    ($($Type:ty)*) => {$(
        impl Parameter for $Type {
            fn read(&self) -> Value {
                (*self).into()
            }
            fn write(&mut self, value: &Value) -> Result<(), String> {
                let fits = value.as_u64().and_then(|number| <$Type>::try_from(number).ok());
                *self = fits.ok_or_else(|| format!("must be a number from 0 to {}", <$Type>::MAX))?;
                Ok(())
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 usize }

impl Parameter for bool {
    fn read(&self) -> Value {
        (*self).into()
    }

    fn write(&mut self, value: &Value) -> Result<(), String> {
        *self = value.as_bool().ok_or("must be true or false")?;
        Ok(())
    }
}

impl Parameter for f64 {
    fn read(&self) -> Value {
        (*self).into()
    }

    fn write(&mut self, value: &Value) -> Result<(), String> {
        *self = value.as_f64().ok_or("must be a number")?;
        Ok(())
    }
}

impl Parameter for Duration {
    fn read(&self) -> Value {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).into()
    }

    fn write(&mut self, value: &Value) -> Result<(), String> {
        *self = Duration::from_nanos(value.as_u64().ok_or("must be a number of nanoseconds")?);
        Ok(())
    }
}

impl<T: Parameter + Default> Parameter for Option<T> {
    fn read(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::read)
    }

    fn write(&mut self, value: &Value) -> Result<(), String> {
        if value.is_null() {
            *self = None;
            return Ok(());
        }
        let mut some = T::default();
        some.write(value).map_err(|reason| format!("{reason}, or null"))?;
        *self = Some(some);
        Ok(())
    }
}

impl Parameter for ReturnCode {
    fn read(&self) -> Value {
        self.to_string().into()
    }

    fn write(&mut self, value: &Value) -> Result<(), String> {
        let code = value.as_str().and_then(|name| name.parse().ok());
        *self = code.ok_or("must be the name of a SES return code, such as BAD_MKEY")?;
        Ok(())
    }
}

/// Maps choices to words.
macro_rules! choices {
    ($($Type:ident { $($word:literal $Choice:ident),* })*) => {$(
        impl Parameter for $Type {
            fn read(&self) -> Value {
                match self {
                    $($Type::$Choice => $word.into(),)*
                }
            }
            fn write(&mut self, value: &Value) -> Result<(), String> {
                *self = match value.as_str() {
                    $(Some($word) => $Type::$Choice,)*
                    _ => return Err(format!("must be one of {}", [$($word),*].join(", "))),
                };
                Ok(())
            }
        }
    )*};
}

choices! {
    Congestion { "none" None, "nscc" Nscc, "rccc" Rccc, "both" Both }
    PathMode { "single" Single, "oblivious" Oblivious, "recycling" Recycling, "bitmap" Bitmap }
    StartPsnMethod { "expected" Expected, "random" Random }
    StartPsnFloor { "highest" Highest, "start" Start }
    FormChoice { "standard" Standard, "shortest" Shortest }
    SmallIndex { "optimised_key" OptimizedKey, "index" Index }
    TooLong { "truncate" Truncate, "refuse" Refuse }
    Restart { "start" Start, "offset" Offset }
    TokenOrder { "initiator_first" InitiatorFirst, "sender_first" SenderFirst }
    Abort { "message_error" MessageError, "initiator_error" InitiatorError }
    ByteOrder { "little" Little, "big" Big }
    SwapOrder { "operand_first" OperandFirst, "memory_first" MemoryFirst }
    UudOpcode { "datagram_send" DatagramSend, "send" Send }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uet_control::PARAMETERS;

    #[test]
    fn parameters_read_can_be_written() {
        for config in [Config::default(), Config::real_time()] {
            let mut copy = Config { seed: 77, ..Config::default() };
            for (name, value) in config.get() {
                copy.set(&name, &value).unwrap();
            }
            assert_eq!(copy, config);
        }
    }

    #[test]
    fn a_pending_context_outlives_a_retransmission() {
        for Config { pds, .. } in [Config::default(), Config::real_time()] {
            assert!(pds.new_pdc_time > pds.rto_init_time * 2);
        }
    }

    #[test]
    fn the_table_of_parameters_has_their_names_types_and_defaults() {
        // The built-in NIC does not report these.
        let others = [
            "alpha",
            "dscps",
            "eta",
            "fi",
            "fi_scale",
            "headers",
            "max_tail_loss_retx",
            "tail_loss_time",
            "trailer",
            "unsupported_control",
        ];
        let table = PARAMETERS.iter().filter(|parameter| !others.contains(&parameter.name));
        let table: BTreeMap<String, Value> =
            table.map(|parameter| (parameter.name.into(), parameter.value())).collect();
        assert_eq!(table, Config::default().get());
    }

    #[test]
    fn each_is_changed_by_its_own_name() {
        let before = Config::default().get();
        for (name, value) in &before {
            let other = match value {
                Value::Bool(flag) => json!(!flag),
                Value::Number(_) if name == "payload_mtu" => json!(8192),
                Value::Number(number) => match number.as_u64() {
                    Some(number) => json!(number + 1),
                    None => json!(number.as_f64().unwrap() + 0.5),
                },
                Value::Null if name == "operand_order" => json!("big"),
                Value::Null => json!(9),
                Value::String(_) => match name.as_str() {
                    "congestion" => json!("both"),
                    "paths" => json!("bitmap"),
                    "form" => json!("shortest"),
                    "small_index" => json!("index"),
                    "too_long" => json!("refuse"),
                    "restart" => json!("offset"),
                    "ready_tokens" => json!("sender_first"),
                    "abort" => json!("initiator_error"),
                    "swap_order" => json!("memory_first"),
                    "byte_order" => json!("big"),
                    "uud_opcode" => json!("send"),
                    "start_psn_floor" => json!("start"),
                    "start_psn_method" => json!("random"),
                    _ => json!("BAD_ADDR"),
                },
                _ => unreachable!(),
            };
            let mut config = Config::default();
            config.set(name, &other).unwrap_or_else(|error| panic!("{error}"));
            let mut expected = before.clone();
            expected.insert(name.clone(), other);
            assert_eq!(config.get(), expected);
        }
    }

    #[test]
    fn invalid_parameters_are_refused_without_effect() {
        let mut config = Config::default();
        for (name, value) in [
            ("nothing", json!(1)),
            ("payload_mtu", json!(1000)),
            ("default_mpr", json!(0)),
            ("default_mpr", json!(256)),
            ("rto_init_time", json!(-1)),
            ("rto_init_time", json!("20ms")),
            ("ack_on_ecn", json!(1)),
            ("congestion", json!("tfc")),
            ("out_of_range", json!("NOT_A_CODE")),
            ("start_psn", json!(u64::MAX)),
            ("sender_rate", json!(0)),
            ("base_rtt", json!(0)),
            ("general_pdcs", json!(0)),
            ("reserved_pdcs", json!(65_000)),
            ("event_capacity", json!(u64::MAX)),
            ("event_capacity", json!((1 << 20) + 1)),
            ("rx_packets", json!(u32::MAX)),
            ("stored_responses", json!(u32::MAX)),
            ("receive_slots", json!(u32::MAX)),
            ("cccs", json!(u32::MAX)),
            ("max_awaited", json!(u32::MAX)),
            ("max_unexpected_bytes", json!(u32::MAX)),
            ("max_unexpected_bytes_of_peer", json!(u32::MAX)),
            ("stall_time", json!(0)),
            ("swap_length", json!(0)),
            ("operand_order", json!("middle")),
        ] {
            let error = config.set(name, &value).unwrap_err();
            assert_eq!(error.name, name, "{error}");
        }
        assert_eq!(config, Config::default());
    }
}
