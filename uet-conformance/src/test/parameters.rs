//! Parameters and abilities of the device, and the times that the suite derives from them.

use super::Test;
use crate::stop::skip;
use crate::{Outcome, Stop};
use core::time::Duration;
use serde_json::Value;
use uet_control::Configure;
use uet_wire::{Spec, Version};

impl Test<'_> {
    /// Returns the device's answer to `hello`.
    pub fn device(&self) -> &uet_control::Welcome {
        self.session.welcome()
    }

    /// Returns the abilities of the link.
    pub fn facts(&self) -> &crate::Facts {
        self.session.facts()
    }

    /// Returns a numeric parameter of the device, or the [default](uet_control::PARAMETERS) if the device
    /// does not report it.
    pub fn parameter(&self, name: &str) -> u64 {
        self.session.parameter(name)
    }

    /// Returns a numeric parameter that the device reports or the script has set.
    pub fn reported(&self, name: &str) -> Option<u64> {
        self.session.reported(name)
    }

    /// Returns a numeric parameter that may be a fraction, and that the device reports or the script has set.
    pub fn reported_fraction(&self, name: &str) -> Option<f64> {
        self.session.reported_value(name)?.as_f64()
    }

    /// Returns a parameter of the device that is a word.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.session.told(name)?.as_str()
    }

    /// Returns a parameter that is a word, as the script has set it.
    pub(crate) fn parameter_word(&self, name: &str) -> Option<&str> {
        self.session.parameter_word(name)
    }

    /// Returns whether the device claims this capability.
    pub fn claims(&self, name: &str) -> bool {
        self.device().capabilities.iter().any(|claim| claim == name)
    }

    /// Returns the device's configured base round trip. Skips if the device does not report it.
    pub fn base_rtt(&self) -> Result<Duration, Stop> {
        match self.reported("base_rtt").unwrap_or(0) {
            0 => Err(Stop::Skipped("the device does not say its base_rtt".into())),
            nanoseconds => Ok(Duration::from_nanos(nanoseconds)),
        }
    }

    /// Returns the payload MTU of the device, always a valid one.
    pub fn mtu(&self) -> usize {
        self.parameter("payload_mtu").clamp(1024, 8192) as usize
    }

    /// Returns the range that an `mpr` of 0 stands for (`PDS-WIN-005`). It is no limit, unless the device
    /// states one. Since 1.0.3 there may be one that it does not state, so that only one packet is safe.
    pub(crate) fn range_of_zero(&self) -> u32 {
        match self.session.told("override_mpr_zero_value") {
            None if self.spec().released() >= Version::V1_0_3 => 1,
            range => range.and_then(Value::as_u64).map_or(1 << 20, |range| range as u32),
        }
    }

    /// Returns the version of the specification that judges the device.
    pub fn spec(&self) -> &'static Spec {
        self.session.spec()
    }

    /// Returns the time by the link's clock.
    pub fn now(&self) -> Duration {
        self.session.now()
    }

    /// Returns this span multiplied by `--timeout-scale`.
    pub fn scaled(&self, span: Duration) -> Duration {
        self.session.scaled(span)
    }

    /// Returns the maximum time for an immediate reaction of a device, including the round trip.
    pub fn soon(&self) -> Duration {
        self.session.soon()
    }

    /// Returns how long to wait for a packet due within this time. Times below [`soon`](Self::soon) are
    /// exact, as are all times in virtual time.
    pub(crate) fn patience(&self, within: Duration) -> Duration {
        self.session.patience(within)
    }

    /// Sets a parameter of the device, which restarts. Skips the rule if the device does not accept the
    /// parameter.
    pub fn configure(&mut self, name: &str, value: impl Into<Value>) -> Outcome {
        if self.try_configure(name, value)? {
            Ok(())
        } else {
            Err(Stop::Skipped(format!("the device does not let '{name}' be set")))
        }
    }

    /// Gives the device time: until the rule ends, it keeps idle contexts, and sends a lost packet several
    /// times.
    pub(crate) fn make_patient(&mut self) -> Outcome {
        if self.parameter("idle_time") > 0 {
            self.configure("idle_time", 0)?;
        }
        for retries in ["max_rto_retx_cnt", "max_nack_retx_cnt"] {
            if self.parameter(retries) < 3 {
                self.configure(retries, 5)?;
            }
        }
        Ok(())
    }

    /// Returns Max_RTO_Retx_Cnt. Skips the rule if that many retransmissions take too long or have no end.
    pub(crate) fn timeout_limit(&self) -> Result<u64, Stop> {
        match self.parameter("max_rto_retx_cnt") {
            15 | 31 => skip("the device retransmits without end"),
            count if count > 7 => skip(format!("{count} retransmissions take too long")),
            count => Ok(count),
        }
    }

    /// Returns Max_NACK_Retx_Cnt. Skips the rule if that many retransmissions take too long or have no end.
    pub(crate) fn nack_limit(&self) -> Result<u64, Stop> {
        match self.parameter("max_nack_retx_cnt") {
            31 => skip("the device retransmits without end after NACKs"),
            count if count > 50 => skip(format!("{count} retransmissions take too long")),
            count => Ok(count),
        }
    }

    /// Tries to set a parameter that makes a rule stricter; returns whether the device accepted it.
    pub fn try_configure(&mut self, name: &str, value: impl Into<Value>) -> Result<bool, Stop> {
        let value = value.into();
        let configure = Configure { parameters: [(name.to_owned(), value.clone())].into() };
        let taken = match self.call(configure) {
            Ok(answer) if answer.taken.iter().any(|taken| taken == name) => true,
            Ok(answer) => {
                let why = answer.refused.get(name).map_or("no reason is given", String::as_str);
                self.note(format!("refused: {name}: {why}"));
                false
            }
            Err(Stop::Gone(reason)) => return Err(Stop::Gone(reason)),
            Err(_) => false,
        };
        if taken {
            self.session.was_set([(name.to_owned(), value)]);
        }
        Ok(taken)
    }

    /// Records parameters that an operation of the script has set.
    pub(crate) fn was_set(&mut self, parameters: impl IntoIterator<Item = (String, Value)>) {
        self.session.was_set(parameters);
    }
}
