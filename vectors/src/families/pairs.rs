//! Every packet type with every next header, valid or invalid.

use crate::case::{Case, Family};
use crate::usual;
use uet_wire::registry::{NextHdr, PdsType};

/// The packet types that have a next header.
pub(crate) const TYPES: [PdsType; 12] = [
    PdsType::RUD_REQ,
    PdsType::ROD_REQ,
    PdsType::RUDI_REQ,
    PdsType::RUDI_RESP,
    PdsType::UUD_REQ,
    PdsType::ACK,
    PdsType::ACK_CC,
    PdsType::ACK_CCX,
    PdsType::NACK,
    PdsType::NACK_CCX,
    PdsType::RUD_CC_REQ,
    PdsType::ROD_CC_REQ,
];

pub(super) fn family() -> Family {
    let mut family = Family::new("pairs", "wire-format: which next header may follow which type");
    for kind in TYPES {
        let layout = usual::pds_layout(kind);
        for next in (0..16).filter_map(NextHdr::new) {
            let fields = [("pds.type", kind.code()), ("pds.next_hdr", next.code())];
            let given: Vec<_> = fields
                .iter()
                .filter_map(|(field, value)| Some((layout.field(field)?, u128::from(*value))))
                .collect();
            let word = match next.name() {
                Some(name) => name.trim_start_matches("UET_HDR_").to_lowercase().replace('_', "-"),
                None => format!("reserved-{}", next.code()),
            };
            let name = format!("{}-{word}", kind.to_string().to_lowercase().replace('_', "-"));
            let description = format!("{kind} with next header {next}");
            family.add(Case::uet(name, description, usual::packet(layout, &usual::header(layout, &given))));
        }
    }
    family
}
