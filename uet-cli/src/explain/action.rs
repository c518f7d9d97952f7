//! Describes the effect of a NACK on the packet that it refuses.

use uet_model::pds::NackAction;
use uet_wire::registry::NackClass;

pub(super) const fn class(class: NackClass) -> &'static str {
    match class {
        NackClass::Normal => "normal: part of everyday operation",
        NackClass::PdcError => "PDC error: something went wrong with a packet of the context",
        NackClass::PdcFatal => "PDC fatal: the context cannot go on",
    }
}

pub(super) const fn action(action: NackAction) -> &'static str {
    match action {
        NackAction::Retransmit => "send the packet again",
        NackAction::Retry => "send the packet that opens the context again: none was made",
        NackAction::RetransmitAboveCack => "send the packet again if its PSN is above the cumulative one",
        NackAction::GoBackN => "send everything from the missing PSN on again",
        NackAction::RestartFromPayload => {
            "number all packets anew from the PSN in the payload, and send them"
        }
        NackAction::WaitForAck => "wait; send the packet again when its ACK has not come after the NACK wait",
        NackAction::RetransmitRead => "send the original read again",
        NackAction::CloseAndRetry => "close the context and try again on a new one",
        NackAction::ReportAndRetry => "report, and try again on a new context",
        NackAction::Close => "close the context and do not try again",
        NackAction::CloseAndFail => "close the context and fail the operation",
    }
}
