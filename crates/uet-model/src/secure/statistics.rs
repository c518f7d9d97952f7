use core::fmt;

/// A count of packets. Each packet that arrives moves one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Statistic {
    /// Accepted.
    InAuth,
    /// The ICV was wrong.
    InAuthFail,
    /// The epoch was too old.
    InLate,
    /// The domain is disabled, or has no key with this association number.
    InInvalidSa,
    /// The source identifier was missing or unexpected, or the domain drops all packets.
    InInvalid,
    /// Too short, or of an unknown domain.
    InErrored,
    /// In the clear.
    InClear,
    /// Trimmed, so that it had no ICV.
    InTrimmed,
    /// Protected and sent.
    OutAuth,
    /// Not sent: no key, or no counter.
    OutInvokeFail,
    /// Not sent: no domain.
    OutErrored,
    /// Sent in the clear.
    OutClear,
}

impl Statistic {
    /// Returns the name in reports. The names are those of the reference provider where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::InAuth => "in_auth_pkts",
            Statistic::InAuthFail => "in_auth_fail_pkts",
            Statistic::InLate => "in_late_pkts",
            Statistic::InInvalidSa => "in_invalid_sa",
            Statistic::InInvalid => "in_invalid",
            Statistic::InErrored => "in_errored_pkts",
            Statistic::InClear => "in_rx_encryption_bypass_pkts",
            Statistic::InTrimmed => "in_trimmed_pkts",
            Statistic::OutAuth => "out_auth_pkts",
            Statistic::OutInvokeFail => "out_invoke_fail",
            Statistic::OutErrored => "out_errored_pkts",
            Statistic::OutClear => "out_rx_encryption_bypass_pkts",
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
