//! Every header: parse, read every field, write every field, emit.

use crate::operations;
use core::hint::black_box;
use uet_wire::layout::Layout;
use uet_wire::{outer, pds, ses, trailer, tss};

/// Per header its rows by their accessors: parts that headers share, fields, and fields that exist at times.
macro_rules! headers {
    ($($module:ident::$Name:ident {
        parts($($part:ident)*) fields($($field:ident)*) sometimes($($maybe:ident)*)
    })*) => {
        operations! {
            $($module::$Name::LAYOUT.name => |received, buffer| {
                let Ok((header, rest)) = $module::$Name::parse(received) else { return };
                $(black_box(header.$part());)*
                $(black_box(header.$field());)*
                $(black_box(header.$maybe());)*
                #[allow(unused_mut)] // not every header has rows of every sort
                let mut copy = $module::$Name::zeroed().edit();
                $(copy = copy.$part(|part| part.copy_from(&header.$part()));)*
                $(copy = copy.$field(header.$field());)*
                $(if let Some(value) = header.$maybe() {
                    copy = copy.$maybe(value);
                })*
                if let Ok(copy) = copy.done() {
                    let _ = copy.emit(buffer);
                }
                // In place too, and in the wrong form too.
                #[allow(unused_mut)]
                if let Ok((mut place, _)) = $module::$Name::parse_mut(buffer) {
                    $(place = place.$field(header.$field());)*
                    $(if let Some(value) = header.$maybe() {
                        place = place.$maybe(value);
                    })*
                    let _ = black_box(place.done());
                }
                black_box((header.copied(), rest));
                let _ = black_box(header.emit(buffer));
                #[cfg(feature = "nom")]
                let _ = black_box($module::$Name::nom::<nom::error::Error<&[u8]>>(received));
            };)*
        }

        /// Every header's table, and how many of its rows are read and written here.
        pub const COVERED: &[(&Layout, usize)] = &[$((
            $module::$Name::LAYOUT,
            [$(stringify!($part),)* $(stringify!($field),)* $(stringify!($maybe),)*].len(),
        )),*];
    };
}

headers! {
    outer::Ethernet { parts() fields(dst src ethertype) sometimes() }
    outer::Vlan { parts() fields(pcp dei id ethertype) sometimes() }
    outer::Ipv4 { parts() fields(version ihl dscp ecn total_length id df mf frag_offset ttl proto checksum src dst) sometimes() }
    outer::Ipv6 { parts() fields(version dscp ecn flow_label payload_length next_header hop_limit src dst) sometimes() }
    outer::Ipv6Extension { parts() fields(next_header length) sometimes() }
    outer::Ipv6Fragment { parts() fields(next_header frag_offset mf id) sometimes() }
    outer::Udp { parts() fields(src_port dst_port length checksum) sometimes() }
    outer::Entropy { parts() fields(entropy) sometimes() }
    tss::TssHead { parts() fields(kind sp an sdi) sometimes() }
    tss::Tsc { parts() fields(epoch counter) sometimes() }
    tss::TssShort { parts(head tsc) fields() sometimes() }
    tss::TssLong { parts(head tsc) fields(ssi) sometimes() }
    pds::Prologue { parts() fields(kind next_hdr flags) sometimes() }
    pds::ControlPrologue { parts() fields(kind ctl_type flags) sometimes() }
    pds::Request { parts(prologue) fields(retx ar syn clear_psn_offset psn spdcid) sometimes(dpdcid pdc_info psn_offset) }
    pds::RequestCc { parts(request) fields(ccc_id credit_target) sometimes() }
    pds::Rudi { parts(prologue) fields(retx pkt_id) sometimes(m) }
    pds::Uud { parts(prologue) fields() sometimes() }
    pds::Ack { parts(prologue) fields(m retx p req cack_psn spdcid dpdcid) sometimes(ack_psn_offset probe_opaque) }
    pds::Sack { parts() fields(mpr sack_psn_offset sack_bitmap) sometimes() }
    pds::AckCc { parts(ack sack) fields(cc_type cc_flags) sometimes(service_time rc rcv_cwnd_pend rcvd_bytes credit ooo_count ack_cc_state) }
    pds::AckCcx { parts(ack sack) fields(ccx_type cc_flags ack_ccx_state) sometimes() }
    pds::Nack { parts(prologue) fields(m retx nt nack_code vendor_code spdcid dpdcid payload) sometimes(nack_psn nack_pkt_id) }
    pds::NackCcx { parts(nack) fields(nccx_type nack_ccx_state) sometimes() }
    pds::Control { parts(prologue) fields(isrod retx ar syn psn spdcid payload) sometimes(probe_opaque dpdcid pdc_info psn_offset) }
    ses::RequestHead { parts() fields(opcode version dc ie rel hd eom som) sometimes() }
    ses::Address { parts() fields(ri_generation job_id pid_on_fep resource_index) sometimes() }
    ses::Std { parts(head address) fields(message_id initiator request_length) sometimes(buffer_offset send_initiator_token send_target_token memory_key ready_initiator_token ready_target_token match_bits header_data payload_length message_offset) }
    ses::Medium { parts(head address) fields(request_length initiator) sometimes(header_data buffer_offset memory_key match_bits) }
    ses::Small { parts(head address) fields(request_length buffer_offset) sometimes() }
    ses::Rendezvous { parts() fields(eager_length read_ri_generation read_pid_on_fep read_resource_index read_offset read_memory_key) sometimes() }
    ses::Atomic { parts() fields(atomic_opcode atomic_datatype semantic_control) sometimes() }
    ses::CompareSwap { parts(atomic) fields(compare_value swap_value) sometimes() }
    ses::ResponseHead { parts() fields(list opcode version return_code) sometimes() }
    ses::Response { parts(head) fields(message_id ri_generation job_id modified_length) sometimes() }
    ses::ResponseData { parts(head) fields(response_message_id job_id read_request_message_id payload_length modified_length message_offset) sometimes() }
    ses::ResponseDataSmall { parts(head) fields(payload_length job_id original_request_psn) sometimes() }
    trailer::Crc { parts() fields(crc) sometimes() }
    trailer::Icv { parts() fields(icv) sometimes() }
}
