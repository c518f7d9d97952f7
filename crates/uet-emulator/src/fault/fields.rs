//! Access to headers by the canonical names of their fields.

use uet_model::{Packet, RxRequest, RxResponse, TxRequest, TxResponse};
use uet_wire::Uet;
use uet_wire::layout::{Layout, Place};
use uet_wire::registry::{NextHdr, PdsType};
use uet_wire::ses::{Ext, Ses};

/// Something with headers.
pub(super) trait Fields {
    /// Returns the layouts of the headers and the start of each.
    fn tables(&self) -> Vec<(&'static Layout, usize)>;
    fn head(&self) -> &[u8];
    fn head_mut(&mut self) -> &mut [u8];

    /// Returns the place of a field and the start of its header, if the field is present.
    fn find(&self, name: &str) -> Option<(Place, usize)> {
        self.tables().into_iter().find_map(|(layout, start)| {
            let header = self.head().get(start..start + layout.bytes)?;
            let mut places = layout.places().filter(|place| place.row.name == name);
            places.find(|place| place.exists(header)).map(|place| (place, start))
        })
    }

    /// Returns a field's value, if the field is present.
    fn get(&self, name: &str) -> Option<u64> {
        let (place, start) = self.find(name)?;
        place.read(&self.head()[start..]).map(|value| value as u64)
    }

    /// Returns whether the field is present and has this value.
    fn is(&self, name: &str, value: u64) -> bool {
        self.get(name) == Some(value)
    }

    /// Returns whether the field is present and has a different value.
    fn isnt(&self, name: &str, value: u64) -> bool {
        self.get(name).is_some_and(|found| found != value)
    }

    /// Sets a field if it is present; cuts off bits that do not fit.
    fn set(&mut self, name: &str, value: u64) {
        if let Some((place, start)) = self.find(name) {
            let mask = u128::MAX >> (128 - place.row.width());
            place.write(&mut self.head_mut()[start..], u128::from(value) & mask);
        }
    }

    /// Changes a field if it is present.
    fn change(&mut self, name: &str, change: impl FnOnce(u64) -> u64) {
        if let Some(value) = self.get(name) {
            self.set(name, change(value));
        }
    }
}

fn placed<'a>(
    headers: impl IntoIterator<Item = (&'static Layout, &'a [u8])>,
) -> Vec<(&'static Layout, usize)> {
    let mut end = 0;
    let place = |(layout, bytes): (&'static Layout, &[u8])| {
        let start = end;
        end += bytes.len();
        (layout, start)
    };
    headers.into_iter().map(place).collect()
}

impl Fields for Packet {
    fn tables(&self) -> Vec<(&'static Layout, usize)> {
        let (uet, _) = Uet::parse_lax(&self.head);
        let pds = uet.pds.map(|header| (header.layout(), header.bytes()));
        let ses = uet.ses.map(|header| (header.layout(), header.bytes()));
        let ext = uet.ext.map(|header| (header.layout(), header.bytes()));
        placed([pds, ses, ext].into_iter().flatten())
    }

    fn head(&self) -> &[u8] {
        &self.head
    }

    fn head_mut(&mut self) -> &mut [u8] {
        &mut self.head
    }
}

macro_rules! of_ses {
    ($($Type:ty)*) => {$(
        impl Fields for $Type {
            fn tables(&self) -> Vec<(&'static Layout, usize)> {
                semantic(self.next_hdr, &self.head)
            }

            fn head(&self) -> &[u8] {
                &self.head
            }

            fn head_mut(&mut self) -> &mut [u8] {
                &mut self.head
            }
        }
    )*};
}

of_ses! { RxRequest RxResponse TxRequest TxResponse }

fn semantic(next: NextHdr, head: &[u8]) -> Vec<(&'static Layout, usize)> {
    let Some(Ok((ses, rest))) = Ses::parse_as(next, head) else { return Vec::new() };
    let ext = Ext::parse_after(&ses, rest).and_then(Result::ok);
    let ext = ext.map(|(ext, _)| (ext.layout(), ext.bytes()));
    placed([Some((ses.layout(), ses.bytes())), ext].into_iter().flatten())
}

/// Packet kinds that faults distinguish.
pub(super) trait Kinds: Fields {
    fn kind(&self) -> PdsType {
        PdsType::new(self.get("pds.type").unwrap_or_default() as u8).unwrap_or_default()
    }

    /// Returns whether the packet is a RUD or ROD request.
    fn is_request(&self) -> bool {
        let kinds = [PdsType::RUD_REQ, PdsType::ROD_REQ, PdsType::RUD_CC_REQ, PdsType::ROD_CC_REQ];
        kinds.contains(&self.kind())
    }

    fn is_rod(&self) -> bool {
        [PdsType::ROD_REQ, PdsType::ROD_CC_REQ].contains(&self.kind())
    }

    fn is_ack(&self) -> bool {
        [PdsType::ACK, PdsType::ACK_CC, PdsType::ACK_CCX].contains(&self.kind())
    }

    fn is_nack(&self) -> bool {
        [PdsType::NACK, PdsType::NACK_CCX].contains(&self.kind())
    }

    /// Returns whether the packet is a control packet of this type.
    fn is_control(&self, kind: uet_wire::registry::CtlType) -> bool {
        self.kind() == PdsType::CP && self.is("pds.ctl_type", kind.code().into())
    }
}

impl Kinds for Packet {}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_wire::pds::Ack;
    use uet_wire::registry::{ResponseOpcode, ReturnCode};
    use uet_wire::ses::Response;
    use uet_wire::{Psn, UetBuf};

    #[test]
    fn fields_of_each_layer_are_read_and_written_by_their_names() {
        let mut packet = UetBuf::new(Ack::build().cack_psn(Psn(7)).done().unwrap());
        let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK).job_id(101);
        packet.ses = Some(response.done().unwrap().into());
        let bytes = packet.consistent().to_bytes();
        let mut packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], bytes.into()).unwrap();
        assert_eq!((packet.get("pds.cack_psn"), packet.get("ses.job_id")), (Some(7), Some(101)));
        assert_eq!(packet.get("pds.probe_opaque"), None, "only with p");
        packet.set("ses.job_id", 0x0100_0005);
        packet.change("pds.cack_psn", |psn| psn + 1);
        packet.set("pds.psn", 9);
        assert_eq!((packet.get("pds.cack_psn"), packet.get("ses.job_id")), (Some(8), Some(5)));
    }
}
