use crate::{Dut, DutError, Facts, NetworkEffects, ProfileRow, Twins, Wire};
use core::time::Duration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use uet_control::{CallError, Event, Hex64, Mode, Op, PostKind, Welcome};

/// Known or required properties of a device beyond its own claims: a device statement, or a profile.
///
/// ```
/// use serde_json::json;
/// use uet_conformance::Statement;
///
/// let statement: Statement = serde_json::from_value(json!({
///     "claims": ["rud", "write"],
///     "parameters": {"payload_mtu": 1024},
///     "waivers": [{"id": "PDS-ACK-007", "reason": "mended in the next stepping"}],
/// }))?;
/// assert_eq!(statement.waiver("PDS-ACK-007"), Some("mended in the next stepping"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Statement {
    /// Name of the device or profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind of endpoint that a profile describes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// True if it is based on something other than the specification's text.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub provisional: bool,
    /// Capabilities in addition to those of `hello`.
    pub claims: Vec<String>,
    /// Capabilities of `hello` that the suite does not test.
    pub disclaims: Vec<String>,
    /// True if `claims` names every delivery mode and operation that the suite tests.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub only: bool,
    /// The built-in profile whose features this profile has too. A row with the same id replaces its row.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub extends: String,
    /// The features of a profile, each mandatory, optional or excluded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ProfileRow>,
    /// Parameters that apply if `hello` omits them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, Value>,
    /// Parameters that `hello` omits or reports differently.
    pub parameters: BTreeMap<String, Value>,
    /// Accepted failures.
    pub waivers: Vec<Waiver>,
    /// Memory that the device exposes from its start, for a run without a control channel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<StandingRegion>,
}

/// Memory that a device exposes from its start, with all permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingRegion {
    /// Number of bytes. Rules use regions of 65,536 and of 4,096 bytes.
    pub length: u64,
    /// Memory key.
    pub key: Hex64,
    /// JobID.
    pub job: u32,
    /// PIDonFEP.
    pub process: u16,
    /// Resource index.
    #[serde(default)]
    pub index: u16,
    /// Generation of the resource index.
    #[serde(default)]
    pub generation: u8,
}

/// The parameter that carries the standing regions of a statement.
pub(crate) const REGIONS: &str = "regions";

/// A known and accepted failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// A rule, or a requirement.
    pub id: String,
    /// Reason for accepting it.
    pub reason: String,
}

impl Statement {
    /// Merges both statements; `other` takes precedence.
    pub fn merge(&mut self, other: Statement) {
        if !other.name.is_empty() {
            let both = if self.name.is_empty() { String::new() } else { format!("{}, ", self.name) };
            self.name = both + &other.name;
        }
        if !other.summary.is_empty() {
            self.summary = other.summary;
        }
        self.provisional |= other.provisional;
        self.only |= other.only;
        self.rows.extend(other.rows);
        self.defaults.extend(other.defaults);
        self.claims.extend(other.claims);
        self.disclaims.extend(other.disclaims);
        self.parameters.extend(other.parameters);
        self.waivers.extend(other.waivers);
        self.regions.extend(other.regions);
    }

    /// Returns the reason why a failure of this rule or requirement is accepted.
    pub fn waiver(&self, id: &str) -> Option<&str> {
        let waiver = self.waivers.iter().find(|waiver| waiver.id.eq_ignore_ascii_case(id));
        waiver.map(|waiver| waiver.reason.as_str())
    }

    /// Applies the statement to the device's own claims.
    pub fn apply(&self, welcome: &Welcome) -> Welcome {
        let mut welcome = welcome.clone();
        if self.only {
            welcome.capabilities.retain(|claim| !is_operation(claim));
        }
        welcome.capabilities.extend(self.claims.iter().cloned());
        welcome.capabilities.retain(|claim| !self.disclaims.contains(claim));
        welcome.capabilities.sort_unstable();
        welcome.capabilities.dedup();
        for (name, value) in &self.defaults {
            welcome.parameters.entry(name.clone()).or_insert_with(|| value.clone());
        }
        welcome.parameters.extend(self.parameters.clone());
        if let Some(regions) = serde_json::to_value(&self.regions).ok().filter(|_| !self.regions.is_empty()) {
            welcome.parameters.insert(REGIONS.into(), regions);
        }
        welcome
    }
}

/// Returns a device with the claims and parameters of a statement beside its own.
pub fn with_statement<'d>(dut: &'d mut dyn Dut, statement: &Statement) -> impl Dut + use<'d> {
    let welcome = statement.apply(dut.welcome());
    StatedDevice::new(dut, welcome)
}

/// Returns whether a capability is a delivery mode or a kind of operation.
fn is_operation(claim: &str) -> bool {
    let word = Value::from(claim);
    Mode::deserialize(&word).is_ok() || PostKind::deserialize(&word).is_ok()
}

/// Maximum number of packets, and of their bytes, between two resets.
const MAX_PACKETS: usize = 1 << 15;
const MAX_BYTES: usize = 16 << 20;

/// A device with its statement applied, and the bounds of a run.
pub(crate) struct StatedDevice<'a> {
    pub(crate) dut: &'a mut dyn Dut,
    pub(crate) welcome: Welcome,
    /// Number of consecutive `reset`s without an answer.
    pub(crate) unanswered: u32,
    /// The reason why the current rule could not continue: a silent control channel or a packet flood.
    pub(crate) broken: Option<String>,
    /// Packets received since the last reset, and their bytes.
    received: (usize, usize),
    /// The measured round-trip time, if notable.
    pub(crate) round_trip: Duration,
    /// True if it has answered a plain write.
    pub(crate) serves_writes: bool,
    /// Number of instances in a row without a packet of the device.
    pub(crate) mute: u32,
    /// The first instance in which it became silent, of those in a row.
    pub(crate) silent_since: Option<String>,
    /// Lengths of standing regions that take no write.
    pub(crate) refused_regions: Vec<u64>,
    /// The instance that began last, unless the device ended in it.
    pub(crate) last_instance: Option<String>,
}

impl<'a> StatedDevice<'a> {
    pub(crate) fn new(dut: &'a mut dyn Dut, welcome: Welcome) -> Self {
        StatedDevice {
            dut,
            welcome,
            unanswered: 0,
            broken: None,
            received: (0, 0),
            round_trip: Duration::ZERO,
            serves_writes: false,
            mute: 0,
            silent_since: None,
            refused_regions: Vec::new(),
            last_instance: None,
        }
    }
}

impl Dut for StatedDevice<'_> {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        self.dut.facts()
    }

    fn now(&self) -> Duration {
        self.dut.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.dut.send(packet)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        let received = self.dut.receive(until)?;
        let (packets, bytes) = &mut self.received;
        *packets += usize::from(received.is_some());
        *bytes += received.as_ref().map_or(0, |wire| wire.bytes.len());
        if *packets > MAX_PACKETS || *bytes > MAX_BYTES {
            let why =
                format!("the device sent more than {MAX_PACKETS} packets or {MAX_BYTES} bytes in one rule");
            self.broken = Some(why.clone());
            return Err(DutError(why));
        }
        Ok(received)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let is_reset = matches!(op, Op::Reset(_));
        let answer = self.dut.ask(op);
        let unanswered = match &answer {
            Err(error @ CallError::Channel { .. }) => Some(error.to_string()),
            _ => None,
        };
        if is_reset {
            self.unanswered = if unanswered.is_some() { self.unanswered + 1 } else { 0 };
            self.received = (0, 0);
        }
        self.broken = unanswered.or(self.broken.take());
        answer
    }

    fn outer(&self, packet: &Wire, length: usize, leaving: bool) -> Option<uet_wire::tss::Outer> {
        self.dut.outer(packet, length, leaving)
    }

    fn event(&mut self) -> Option<Event> {
        self.dut.event()
    }

    fn begin(&mut self, instance: &str) {
        self.last_instance = Some(instance.to_owned());
        self.dut.begin(instance);
    }

    fn lost(&mut self) -> Vec<(Duration, Wire)> {
        self.dut.lost()
    }

    fn ended(&mut self) -> Option<String> {
        self.dut.ended()
    }

    fn last_instance(&self) -> Option<&str> {
        self.last_instance.as_deref()
    }

    fn restart(&mut self) -> io::Result<bool> {
        self.dut.restart()
    }

    fn twins(&self) -> Option<Twins> {
        self.dut.twins()
    }

    fn network_effects(&mut self) -> NetworkEffects {
        self.dut.network_effects()
    }

    fn reads_nothing(&mut self) -> bool {
        self.dut.reads_nothing()
    }

    fn is_host_busy(&mut self) -> bool {
        self.dut.is_host_busy()
    }

    fn round_trip(&self) -> Duration {
        self.round_trip
    }

    fn nonce(&self) -> u64 {
        self.dut.nonce()
    }

    fn serves_writes(&self) -> bool {
        self.serves_writes
    }

    fn refuses_region(&self, length: u64) -> bool {
        self.refused_regions.contains(&length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_profile_selects_operations_and_fills_in_parameters() {
        let hello = json!({
            "protocol": 1, "name": "nic", "capabilities": ["rud", "rod", "atomic", "close", "ecn"],
            "parameters": {"swap_length": 8}, "link": {"kind": "inside", "addr": "10.0.0.1"},
        });
        let welcome: Welcome = serde_json::from_value(hello).unwrap();
        let profile: Statement = serde_json::from_value(json!({
            "only": true, "claims": ["rud", "write"], "disclaims": ["ecn"],
            "defaults": {"swap_length": 32, "uud_opcode": "send"},
        }))
        .unwrap();
        let stated = profile.apply(&welcome);
        assert_eq!(stated.capabilities, ["close", "rud", "write"]);
        assert_eq!(
            (&stated.parameters["swap_length"], &stated.parameters["uud_opcode"]),
            (&json!(8), &json!("send"))
        );
    }
}
