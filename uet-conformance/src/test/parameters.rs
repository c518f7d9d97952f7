//! Parameters and abilities of the device, and the times that the suite derives from them.

use super::Test;
use core::time::Duration;
use serde_json::Value;
use uet_control::Parameter;
use uet_wire::Spec;

/// Maximum time for an immediate reaction of a device, by the link's clock, before `--timeout-scale`.
const SOON: Duration = Duration::from_millis(20);

/// Maximum time by which a busy system may delay the device or the suite. The suite waits this long for an
/// expected packet. It accepts silence earlier from a device that has answered.
const STALL: Duration = Duration::from_millis(200);

impl Test<'_> {
    /// Returns the device's answer to `hello`.
    pub fn device(&self) -> &uet_control::Welcome {
        self.dut.welcome()
    }

    /// Returns the abilities of the link.
    pub fn facts(&self) -> &crate::Facts {
        self.dut.facts()
    }

    /// Returns a numeric parameter of the device, or the [default](uet_control::PARAMETERS) if the device
    /// does not report it.
    pub fn parameter(&self, name: &str) -> u64 {
        let default = || Parameter::find(name).and_then(Parameter::number);
        self.reported(name).or_else(default).unwrap_or_default()
    }

    /// Returns a numeric parameter that the device reports or the script has set.
    pub fn reported(&self, name: &str) -> Option<u64> {
        self.set.get(name).or_else(|| self.told(name))?.as_u64()
    }

    /// Returns a parameter of the device that is a word.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.told(name)?.as_str()
    }

    /// Returns a parameter that is a word, as the script has set it.
    pub(crate) fn parameter_word(&self, name: &str) -> Option<String> {
        let value = self.set.get(name).or_else(|| self.dut.welcome().parameters.get(name));
        value.and_then(|value| value.as_str()).map(str::to_owned)
    }

    /// Returns a parameter as `hello` or the statement has it.
    pub(crate) fn told(&self, name: &str) -> Option<&Value> {
        if !self.read.borrow().contains(name) {
            self.read.borrow_mut().insert(name.into());
        }
        self.dut.welcome().parameters.get(name)
    }

    /// Returns whether the device claims this capability.
    pub fn claims(&self, name: &str) -> bool {
        self.dut.welcome().capabilities.iter().any(|claim| claim == name)
    }

    /// Returns the payload MTU of the device, always a valid one.
    pub fn mtu(&self) -> usize {
        self.parameter("payload_mtu").clamp(1024, 8192) as usize
    }

    /// Returns the version of the specification that judges the device.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Returns the time by the link's clock.
    pub fn now(&self) -> Duration {
        self.dut.now()
    }

    /// Returns this span multiplied by `--timeout-scale`.
    pub fn scaled(&self, span: Duration) -> Duration {
        span.mul_f64(self.scale)
    }

    /// Returns the maximum time for an immediate reaction of a device, including the round trip.
    pub fn soon(&self) -> Duration {
        self.scaled(SOON + self.dut.round_trip())
    }

    /// Returns how long to wait for a packet due within this time. Times below [`soon`](Self::soon) are
    /// exact, as are all times in virtual time.
    pub(crate) fn patience(&self, within: Duration) -> Duration {
        if self.facts().virtual_time || within < self.soon() { within } else { within + self.scaled(STALL) }
    }
}
