//! Describes the effect of a NACK on the packet that it refuses.

use uet_model::pds::NackAction;
use uet_wire::registry::NackClass;

pub(super) const fn class(class: NackClass) -> &'static str {
    match class {
        NackClass::Normal => "normal: part of everyday operation",
        NackClass::PdcError => "PDC error: a packet of the context failed",
        NackClass::PdcFatal => "PDC fatal: the context must end",
    }
}

pub(super) const fn action(action: NackAction) -> &'static str {
    match action {
        NackAction::Retransmit => "retransmit the packet",
        NackAction::Retry => "retransmit the packet that opens the context, since the peer opened none",
        NackAction::RetransmitAboveCack => "retransmit the packet if its PSN is above the cumulative one",
        NackAction::GoBackN => "retransmit all packets from the missing PSN on",
        NackAction::RestartFromPayload => {
            "renumber all packets from the PSN in the payload on, and retransmit them"
        }
        NackAction::WaitForAck => "wait; retransmit the packet if no ACK arrives within NACK_Retx_Time",
        NackAction::RetransmitRead => "retransmit the original read",
        NackAction::CloseAndRetry => "close the context and retry on a new one",
        NackAction::ReportAndRetry => "report the error and retry on a new context",
        NackAction::Close => "close the context without a retry",
        NackAction::CloseAndFail => "close the context and fail the operation",
    }
}
