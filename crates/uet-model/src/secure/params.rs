/// How a target knows that a Start_PSN is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartPsnMethod {
    /// A Start_PSN at or above the floor opens the context at once (EXPECTED_0RTT_START).
    #[default]
    Expected,
    /// Each context needs a fresh random Start_PSN, and one more round trip (RANDOM_1RTT_START).
    Random,
}

/// The lowest Start_PSN after a context has closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartPsnFloor {
    /// The PSN after the highest that the context used.
    #[default]
    Highest,
    /// The PSN after its Start_PSN.
    Start,
}

/// The parameters of an endpoint's transport security. Public sources leave most of them open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureParams {
    /// Drops packets in the clear from peers that a domain covers.
    pub require_protection: bool,
    /// Sends a NACK without a context in the clear, as the reference provider does.
    pub send_unprotected_nack: bool,
    /// Accepts a NACK in the clear.
    pub accept_unprotected_nack: bool,
    /// How a target knows that a Start_PSN is new.
    pub start_psn_method: StartPsnMethod,
    /// The lowest Start_PSN after a context has closed.
    pub start_psn_floor: StartPsnFloor,
    /// Tells the floor in the ACK of CLOSE_COMMAND.
    pub expected_psn_in_close_ack: bool,
    /// The number of epochs by which a packet may be behind.
    pub rx_max_epoch_lifetime: u16,
    /// The number of wrong ICVs after which a domain drops all packets; `None` for never. Anyone can send that many.
    pub auth_fail_latch: Option<u32>,
}

impl Default for SecureParams {
    fn default() -> Self {
        SecureParams {
            require_protection: true,
            send_unprotected_nack: false,
            accept_unprotected_nack: false,
            start_psn_method: StartPsnMethod::default(),
            start_psn_floor: StartPsnFloor::default(),
            expected_psn_in_close_ack: true,
            rx_max_epoch_lifetime: 16,
            auth_fail_latch: None,
        }
    }
}
