//! The rules on the fields of headers. The layouts and the registries cover reserved bits and code points.

use super::Judged;
use super::rule::{Around, Condition::*, PAYLOAD, Quantity, Quantity::*, Relation::*, Rule};
use crate::catalogue as c;
use crate::layout::{Layout, Values, is};
use crate::outer::{Ipv4, Udp};
use crate::pds::{
    Ack, AckCc, AckCcx, Control, Nack, NackCcx, PDC_INFO_RESERVED_POOL, Request, RequestCc, Rudi, Uud,
};
use crate::registry::{CtlType, NackCode, NextHdr, Opcode, PdsType, Registry, ResponseOpcode, ReturnCode};
use crate::ses::{
    Atomic, CompareSwap, Medium, Rendezvous, Response, ResponseData, ResponseDataSmall, Small, Std,
};

const REQUESTS: &[&Layout] = &[Request::LAYOUT, RequestCc::LAYOUT];
const ACKS: &[&Layout] = &[Ack::LAYOUT, AckCc::LAYOUT, AckCcx::LAYOUT];
const NACKS: &[&Layout] = &[Nack::LAYOUT, NackCcx::LAYOUT];
const WITH_STATE: &[&Layout] = &[AckCc::LAYOUT, AckCcx::LAYOUT];
const RUDI: &[&Layout] = &[Rudi::LAYOUT];
const UUD: &[&Layout] = &[Uud::LAYOUT];
const CONTROL: &[&Layout] = &[Control::LAYOUT];
const OPENING: &[&Layout] = &[Request::LAYOUT, RequestCc::LAYOUT, Control::LAYOUT];
const OF_CONTEXTS: &[&Layout] =
    &[Request::LAYOUT, RequestCc::LAYOUT, Ack::LAYOUT, AckCc::LAYOUT, AckCcx::LAYOUT, Control::LAYOUT];
const ANNOUNCING: &[&Layout] = &[
    Request::LAYOUT,
    RequestCc::LAYOUT,
    Rudi::LAYOUT,
    Uud::LAYOUT,
    Ack::LAYOUT,
    AckCc::LAYOUT,
    AckCcx::LAYOUT,
    Nack::LAYOUT,
    NackCcx::LAYOUT,
];

const IPV4: &[&Layout] = &[Ipv4::LAYOUT];
const UDP: &[&Layout] = &[Udp::LAYOUT];
const STD: &[&Layout] = &[Std::LAYOUT];
const SHORT: &[&Layout] = &[Medium::LAYOUT, Small::LAYOUT];
const KEYED: &[&Layout] = &[Std::LAYOUT, Medium::LAYOUT];
const ANY_REQUEST: &[&Layout] = &[Std::LAYOUT, Medium::LAYOUT, Small::LAYOUT];
const RESPONSE: &[&Layout] = &[Response::LAYOUT];
const DATA: &[&Layout] = &[ResponseData::LAYOUT, ResponseDataSmall::LAYOUT];
const DATA_AT: &[&Layout] = &[ResponseData::LAYOUT];
const RENDEZVOUS: &[&Layout] = &[Rendezvous::LAYOUT];
const ATOMICS: &[&Layout] = &[Atomic::LAYOUT, CompareSwap::LAYOUT];
const ANY_SES: &[&Layout] = &[
    Std::LAYOUT,
    Medium::LAYOUT,
    Small::LAYOUT,
    Response::LAYOUT,
    ResponseData::LAYOUT,
    ResponseDataSmall::LAYOUT,
];

const LARGEST: i64 = 8192;
const DEFAULT_WINDOW: i64 = 8 * 128;

/// All bits of a field.
const ALL: u64 = u64::MAX;

/// Returns the named code points except these. Reserved code points have their own finding, and the meaning of vendor
/// code points is unknown.
const fn named_but(registry: &Registry, these: Values) -> Values {
    let (mut named, mut i) = (Values(0), 0);
    while i < registry.entries.len() {
        named = named.or(is(registry.entries[i].code));
        i += 1;
    }
    named.not().or(these).not()
}

const NONE: NextHdr = NextHdr::UET_HDR_NONE;

/// Returns the next headers that may follow a PDS header of this type (`WIRE-NEXT-002`).
///
/// The set is empty for types without `pds.next_hdr` and for unknown types.
pub(crate) const fn may_follow(kind: PdsType) -> Values {
    use NextHdr as N;
    const ANY_REQUEST: &[N] = &[N::UET_HDR_REQUEST_SMALL, N::UET_HDR_REQUEST_MEDIUM, N::UET_HDR_REQUEST_STD];
    const WITH_DATA: &[N] = &[N::UET_HDR_RESPONSE_DATA, N::UET_HDR_RESPONSE_DATA_SMALL];
    let (requests, with_data) = (N::set(ANY_REQUEST), N::set(WITH_DATA));
    let (none, responses) = (is(NONE.code()), is(N::UET_HDR_RESPONSE.code()).or(with_data));
    match kind {
        PdsType::RUD_REQ | PdsType::ROD_REQ | PdsType::RUD_CC_REQ | PdsType::ROD_CC_REQ => {
            none.or(requests).or(with_data)
        }
        PdsType::ACK | PdsType::ACK_CC | PdsType::ACK_CCX => none.or(responses),
        PdsType::NACK | PdsType::NACK_CCX => none,
        PdsType::RUDI_REQ | PdsType::UUD_REQ => requests,
        PdsType::RUDI_RESP => responses,
        _ => Values(0),
    }
}

/// Returns the named next headers that may not follow a PDS header of this type.
const fn may_not_follow(kind: PdsType) -> Values {
    named_but(NextHdr::REGISTRY, may_follow(kind))
}

/// The control packets that must not open a context.
const NOT_OPENING: Values = named_but(CtlType::REGISTRY, CtlType::OPENING);
const CLOSING: Values = CtlType::set(&[CtlType::CLOSE_COMMAND, CtlType::CLOSE_REQUEST]);
const WITHOUT_PSN: Values =
    CtlType::set(&[CtlType::CLEAR_COMMAND, CtlType::CLEAR_REQUEST, CtlType::CREDIT, CtlType::CREDIT_REQUEST]);
const RUDI_TYPES: Values = PdsType::set(&[PdsType::RUDI_REQ, PdsType::RUDI_RESP]);
const WITHOUT_PAYLOAD: Values = CLOSING.or(is(CtlType::NOOP.code()));
/// The NACKs that report a missing context.
const NO_CONTEXT: Values = NackCode::set(&[
    NackCode::NO_PDC_AVAIL,
    NackCode::NO_CCC_AVAIL,
    NackCode::NO_BITMAP,
    NackCode::INV_DPDCID,
    NackCode::PDC_HDR_MISMATCH,
]);

const READ: Values = is(Opcode::UET_READ.code());
const DATAGRAM: Values = is(Opcode::UET_DATAGRAM_SEND.code());
/// Opcodes whose requests have a payload. A read request states the requested length and has no payload. A message
/// error makes no statement about its payload. Vendor messages may have unknown bytes before their payload.
const CARRYING: Values = named_but(Opcode::REGISTRY, READ.or(is(Opcode::UET_MSG_ERROR.code())));
const W_DATA: Values = is(ResponseOpcode::UET_RESPONSE_W_DATA.code());

/// The reserved bits of a memory key. With the bit `KEY_OPTIMIZED`, those of `OPTIMIZED_RESERVED` are reserved too.
const KEY_RESERVED: u64 = 0x3f << 56;
const KEY_OPTIMIZED: u64 = 1 << 62;
const OPTIMIZED_RESERVED: u64 = (1 << 48) - (1 << 12);

macro_rules! rules {
    ($($requirement:ident $field:tt $headers:ident [$($condition:expr),* $(,)?];)*) => {
        /// The rules. Rules of one requirement are adjacent, and a header breaks only the first that applies.
        pub const RULES: &[Rule] =
            &[$(Rule { requirement: c::$requirement, headers: $headers, field: $field, broken: &[$($condition),*] }),*];

        /// Returns the rules that a header breaks: bit `i` represents `RULES[i]`. Each condition is a constant, so it
        /// compiles to a load and a comparison. A rule about other headers compiles to nothing.
        #[inline]
        pub(crate) fn broken_by<H: Judged>(header: &H, around: &Around<'_>) -> u64 {
            let bytes = header.bytes();
            let (mut broken, mut rule) = (0, 1);
            $(
                if const { Rule::is_about($headers, H::LAYOUT) }
                    $(&& const { &$condition.of(H::LAYOUT) }.holds(bytes, around))*
                {
                    broken |= rule;
                }
                rule <<= 1;
            )*
            debug_assert_eq!(rule, 1 << RULES.len());
            broken
        }

        /// Returns the value with which a header breaks `RULES[rule]`.
        pub(crate) fn at_fault<H: Judged>(header: &H, rule: usize, around: &Around<'_>) -> Option<i64> {
            let mut index = 0;
            $(
                if const { Rule::is_about($headers, H::LAYOUT) } && rule == index {
                    return const { Quantity::at_fault($field).of(H::LAYOUT) }.read(header.bytes(), around);
                }
                index += 1;
            )*
            debug_assert_eq!(index, RULES.len());
            None
        }
    };
}

// Requirement, field at fault, headers, conditions.
rules! {
    WIRE_IP_001 "ip.df" IPV4 [In("ip.df", is(0))];
    WIRE_UDP_001 "udp.checksum" UDP [Bits("udp.checksum", ALL)];

    WIRE_NEXT_002 "pds.next_hdr" REQUESTS [In("pds.next_hdr", may_not_follow(PdsType::RUD_REQ))];
    WIRE_NEXT_002 "pds.next_hdr" ACKS [In("pds.next_hdr", may_not_follow(PdsType::ACK))];
    WIRE_NEXT_002 "pds.next_hdr" NACKS [In("pds.next_hdr", may_not_follow(PdsType::NACK))];
    WIRE_NEXT_002 "pds.next_hdr" RUDI [
        In("pds.type", is(PdsType::RUDI_REQ.code())), In("pds.next_hdr", may_not_follow(PdsType::RUDI_REQ)),
    ];
    WIRE_NEXT_002 "pds.next_hdr" RUDI [
        In("pds.type", is(PdsType::RUDI_RESP.code())), In("pds.next_hdr", may_not_follow(PdsType::RUDI_RESP)),
    ];
    WIRE_NEXT_002 "pds.next_hdr" UUD [In("pds.next_hdr", may_not_follow(PdsType::UUD_REQ))];
    WIRE_NEXT_003 "pds.next_hdr" UUD [
        In("pds.next_hdr", NextHdr::set(&[NextHdr::UET_HDR_REQUEST_SMALL, NextHdr::UET_HDR_REQUEST_MEDIUM])),
    ];
    WIRE_LEN_001 PAYLOAD ANNOUNCING [In("pds.next_hdr", is(NONE.code())), Is(Payload, Above, Number(0))];
    WIRE_LEN_001 PAYLOAD CONTROL [
        In("pds.ctl_type", is(CtlType::NEGOTIATION.code()).not()), Is(Payload, Above, Number(0)),
    ];
    WIRE_PDCID_001 "pds.spdcid" OF_CONTEXTS [Is(Field("pds.spdcid"), Equals, Number(0))];
    WIRE_PDCID_002 "pds.dpdcid" OF_CONTEXTS [Is(Field("pds.dpdcid"), Equals, Number(0))];
    WIRE_PDCID_002 "pds.dpdcid" NACKS [In("pds.flags.nt", is(0)), Is(Field("pds.dpdcid"), Equals, Number(0))];
    WIRE_SYN_001 "pds.psn_offset" OPENING [Is(Field("pds.psn_offset"), AtLeast, Number(DEFAULT_WINDOW))];
    WIRE_CLEAR_001 "pds.clear_psn_offset" REQUESTS [Is(Field("pds.clear_psn_offset"), AtLeast, Number(1))];
    WIRE_RSVD_003 "pds.pdc_info" OPENING [Bits("pds.pdc_info", ALL ^ PDC_INFO_RESERVED_POOL as u64)];
    WIRE_RSVD_002 "pds.cc_flags" WITH_STATE [Bits("pds.cc_flags", ALL)];
    WIRE_NACK_002 "pds.spdcid" NACKS [In("pds.flags.nt", is(1)), Bits("pds.spdcid", ALL)];
    WIRE_NACK_002 "pds.dpdcid" NACKS [In("pds.flags.nt", is(1)), Bits("pds.dpdcid", ALL)];
    WIRE_NACK_003 "pds.spdcid" NACKS [
        In("pds.nack_code", NO_CONTEXT), In("pds.flags.nt", is(0)), Bits("pds.spdcid", ALL),
    ];
    WIRE_SYN_002 "pds.flags.syn" CONTROL [In("pds.ctl_type", NOT_OPENING), In("pds.flags.syn", is(1))];
    WIRE_CTL_002 "pds.flags.ar" CONTROL [
        In("pds.ctl_type", is(CtlType::CLEAR_COMMAND.code())), In("pds.flags.ar", is(1)),
    ];
    WIRE_CTL_003 "pds.flags.ar" CONTROL [In("pds.ctl_type", CLOSING), In("pds.flags.ar", is(0))];
    WIRE_CTL_004 "pds.psn" CONTROL [In("pds.ctl_type", WITHOUT_PSN), Bits("pds.psn", ALL)];
    WIRE_CTL_005 "pds.payload" CONTROL [In("pds.ctl_type", WITHOUT_PAYLOAD), Bits("pds.payload", ALL)];
    WIRE_CTL_006 "pds.flags.isrod" CONTROL [In("pds.ctl_type", NOT_OPENING), In("pds.flags.isrod", is(1))];
    WIRE_CTL_007 "pds.payload" CONTROL [
        In("pds.ctl_type", is(CtlType::CREDIT.code())), Bits("pds.payload", ALL << 24),
    ];

    WIRE_LEN_001 PAYLOAD RESPONSE [Is(Payload, Above, Number(0))];
    WIRE_LEN_002 PAYLOAD ANY_SES [Is(Payload, Above, Number(LARGEST))];
    WIRE_SES_001 "ses.version" ANY_SES [Bits("ses.version", ALL)];
    WIRE_SES_003 "ses.som" SHORT [In("ses.som", is(0))];
    WIRE_SES_003 "ses.eom" SHORT [In("ses.eom", is(0))];
    WIRE_SES_004 "ses.message_id" STD [In("ses.opcode", DATAGRAM), Bits("ses.message_id", ALL)];
    WIRE_SES_005 "ses.som" ANY_REQUEST [In("ses.opcode", DATAGRAM), In("ses.som", is(0))];
    WIRE_SES_005 "ses.eom" ANY_REQUEST [In("ses.opcode", DATAGRAM), In("ses.eom", is(0))];
    WIRE_SES_006 "ses.payload_length" STD [
        In("ses.opcode", CARRYING), In("ses.ie", is(0)),
        Is(Field("ses.payload_length"), Differs, Payload), Whole,
    ];
    WIRE_SES_006 "ses.payload_length" DATA [Is(Field("ses.payload_length"), Differs, Payload), Whole];
    WIRE_SES_007 "ses.request_length" ANY_REQUEST [
        In("ses.opcode", Opcode::PLAIN), In("ses.som", is(1)), In("ses.eom", is(1)), In("ses.ie", is(0)),
        Is(Field("ses.request_length"), Differs, Payload), Whole,
    ];
    WIRE_SES_008 "ses.message_offset" STD [
        In("ses.opcode", Opcode::PLAIN.or(READ)), In("ses.eom", is(1)), In("ses.ie", is(0)),
        Is(Sum("ses.message_offset", "ses.payload_length"), Differs, Field("ses.request_length")),
    ];
    WIRE_SES_008 "ses.message_offset" STD [
        In("ses.opcode", Opcode::PLAIN.or(READ)), In("ses.eom", is(0)), In("ses.ie", is(0)),
        Is(Sum("ses.message_offset", "ses.payload_length"), AtLeast, Field("ses.request_length")),
    ];
    // The last of these packets need not be the end of the message.
    WIRE_SES_008 "ses.message_offset" STD [
        In("ses.opcode", Opcode::RENDEZVOUS), In("ses.ie", is(0)),
        Is(Sum("ses.message_offset", "ses.payload_length"), Above, Field("ses.request_length")),
    ];
    // The first of several packets must leave a remainder of the message.
    WIRE_SES_008 "ses.request_length" STD [
        In("ses.opcode", Opcode::PLAIN), In("ses.som", is(1)), In("ses.eom", is(0)), In("ses.ie", is(0)),
        Is(Payload, AtLeast, Field("ses.request_length")), Whole,
    ];
    WIRE_SES_009 PAYLOAD ANY_REQUEST [In("ses.opcode", READ), Is(Payload, Above, Number(0))];
    WIRE_SES_010 "ses.opcode" RESPONSE [In("ses.opcode", W_DATA)];
    WIRE_SES_010 "ses.opcode" DATA [In("ses.opcode", named_but(ResponseOpcode::REGISTRY, W_DATA))];
    // An error response may state a message offset, but its modified length is 0.
    WIRE_SES_012 "ses.message_offset" DATA_AT [
        In("ses.return_code", is(ReturnCode::OK.code())),
        Is(Sum("ses.message_offset", "ses.payload_length"), Above, Field("ses.modified_length")),
    ];
    WIRE_SES_013 "ses.memory_key" KEYED [Bits("ses.memory_key", KEY_RESERVED)];
    WIRE_SES_013 "ses.memory_key" KEYED [
        Bits("ses.memory_key", KEY_OPTIMIZED), Bits("ses.memory_key", OPTIMIZED_RESERVED),
    ];
    WIRE_AMO_003 "ses.som" ANY_REQUEST [In("ses.opcode", Opcode::ATOMIC), In("ses.som", is(0))];
    WIRE_AMO_003 "ses.eom" ANY_REQUEST [In("ses.opcode", Opcode::ATOMIC), In("ses.eom", is(0))];
    WIRE_AMO_004 "ses.opcode" ANY_REQUEST [In("ses.opcode", Opcode::ATOMIC), In("pds.type", RUDI_TYPES)];

    WIRE_SES_014 "ses.eager_length" RENDEZVOUS [Is(Field("ses.eager_length"), Above, Field("ses.request_length"))];
    WIRE_RSVD_004 "ses.semantic_control" ATOMICS [
        Bits("ses.semantic_control", ALL ^ (Atomic::CACHEABLE | Atomic::CPU_COHERENT) as u64),
    ];
}
