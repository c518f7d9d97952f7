//! Requirements on a single packet: `WIRE-`. [`validate`](crate::validate) checks them.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    WIRE_RSVD_001 "WIRE-RSVD-001" Should "3.5.10, 3.4.2" 2 "wire-format"
        "Reserved bits are sent as 0";
    WIRE_RSVD_002 "WIRE-RSVD-002" Should "3.5.10" 2 "wire-format"
        "The flags of a congestion state are reserved and sent as 0";
    WIRE_RSVD_003 "WIRE-RSVD-003" Should "3.5.10" 2 "wire-format"
        "Only the reserved-pool bit of pdc_info is used; a sender sets the others to 0";
    WIRE_RSVD_004 "WIRE-RSVD-004" Should "3.4.2" 2 "wire-format"
        "Only the two lowest bits of semantic_control are used; a sender sets the others to 0";

    WIRE_TYPE_001 "WIRE-TYPE-001" Must "3.5.10" 2 "wire-format"
        "The PDS packet type is one that the specification assigns";
    WIRE_NEXT_001 "WIRE-NEXT-001" Must "3.5.10" 2 "wire-format"
        "The next header is one that the specification assigns";
    WIRE_NEXT_002 "WIRE-NEXT-002" Must "3.5.10" 2 "wire-format"
        "The next header is one that may follow this packet type";
    WIRE_NEXT_003 "WIRE-NEXT-003" Should "3.5.7" 2 "wire-format"
        "A datagram carries a standard request";
    WIRE_LEN_001 "WIRE-LEN-001" Should "3.5.10" 2 "wire-format"
        "A packet whose headers announce no payload ends after them";
    WIRE_LEN_002 "WIRE-LEN-002" Should "3.5.10" 2 "wire-format"
        "A packet carries at most 8,192 bytes of payload";

    WIRE_PDCID_001 "WIRE-PDCID-001" Must "3.5.8" 2 "wire-format"
        "The sender's PDCID is not 0, except in a NACK that belongs to no context";
    WIRE_PDCID_002 "WIRE-PDCID-002" Must "3.5.8" 2 "wire-format"
        "The receiver's PDCID is not 0, except in a NACK of a RUDI packet";
    WIRE_SYN_001 "WIRE-SYN-001" May "3.5.8" 1 "behaviour"
        "Before the first ACK, psn_offset stays within the default window of 1,024 PSNs, unless another is configured";
    WIRE_SYN_002 "WIRE-SYN-002" Must "3.5.8" 2 "behaviour"
        "Only the control packets NOOP and NEGOTIATION may open a context: the others have syn = 0";
    WIRE_CLEAR_001 "WIRE-CLEAR-001" Should "3.5.11.4.4" 2 "behaviour"
        "A request clears no PSN above its own: clear_psn_offset is not positive";

    WIRE_ACK_001 "WIRE-ACK-001" Should "3.5.10" 2 "wire-format"
        "The req field of an ACK is not the reserved value 3";
    WIRE_CC_001 "WIRE-CC-001" Should "3.5.10" 2 "wire-format"
        "The type of a congestion state is assigned or proprietary";
    WIRE_NACK_001 "WIRE-NACK-001" Should "3.5.10" 2 "wire-format"
        "The NACK code is one that this version of the specification assigns";
    WIRE_NACK_002 "WIRE-NACK-002" Should "3.5.10" 2 "wire-format"
        "The NACK of a RUDI packet names no context: both PDCIDs are 0";
    WIRE_NACK_003 "WIRE-NACK-003" Should "3.5.8" 2 "behaviour"
        "A NACK that reports a missing context has spdcid 0";

    WIRE_CTL_001 "WIRE-CTL-001" Should "3.5.10" 2 "wire-format"
        "The control packet type is one that this version of the specification assigns";
    WIRE_CTL_002 "WIRE-CTL-002" Should "3.5.16.3" 2 "behaviour"
        "A CLEAR_COMMAND is never acknowledged: ar = 0";
    WIRE_CTL_003 "WIRE-CTL-003" Should "3.5.8" 2 "wire-format"
        "A CLOSE_COMMAND or CLOSE_REQUEST asks for an ACK: ar = 1";
    WIRE_CTL_004 "WIRE-CTL-004" Should "3.5.10" 2 "wire-format"
        "A control packet that takes no PSN and names none has psn = 0";
    WIRE_CTL_005 "WIRE-CTL-005" Should "3.5.10" 2 "wire-format"
        "A control packet has payload = 0 unless its type defines a payload";
    WIRE_CTL_006 "WIRE-CTL-006" Should "3.5.10" 2 "wire-format"
        "Only NOOP and NEGOTIATION state the mode of a context: the others have isrod = 0";
    WIRE_CTL_007 "WIRE-CTL-007" Should "3.6.14" 2 "wire-format"
        "A CREDIT carries 24 bits of credit; the bits above are 0";

    WIRE_SES_001 "WIRE-SES-001" Must "3.4.2" 2 "wire-format"
        "The version of a SES header is 0";
    WIRE_SES_002 "WIRE-SES-002" Should "3.4.2" 2 "wire-format"
        "The opcode of a request is assigned or a vendor's";
    WIRE_SES_003 "WIRE-SES-003" Must "3.4.2" 2 "wire-format"
        "A small or medium request is a whole message: som and eom are 1";
    WIRE_SES_004 "WIRE-SES-004" Should "3.4.1.14" 2 "behaviour"
        "A datagram send has message_id 0";
    WIRE_SES_005 "WIRE-SES-005" Must "3.4.2" 2 "behaviour"
        "A datagram send is a whole message: som and eom are 1";
    WIRE_SES_006 "WIRE-SES-006" Must "3.4.2" 2 "wire-format"
        "payload_length is the length of the payload that follows";
    WIRE_SES_007 "WIRE-SES-007" Must "3.4.2" 2 "behaviour"
        "A message of one packet carries request_length bytes";
    WIRE_SES_008 "WIRE-SES-008" Must "3.4.2" 2 "behaviour"
        "Each packet of a message ends within request_length, and only the last one ends exactly there";
    WIRE_SES_009 "WIRE-SES-009" Should "3.4.4.2" 2 "behaviour"
        "A read request has no payload";
    WIRE_SES_010 "WIRE-SES-010" Must "3.4.2" 2 "wire-format"
        "A response with data has the opcode UET_RESPONSE_W_DATA; a response without data has another response opcode";
    WIRE_SES_011 "WIRE-SES-011" Should "3.4.2" 2 "wire-format"
        "The return code is assigned or a vendor's";
    WIRE_SES_012 "WIRE-SES-012" Must "3.4.4.2" 1 "behaviour"
        "Read data ends within modified_length, the length of the whole read";
    WIRE_SES_013 "WIRE-SES-013" Should "3.4.1" 2 "behaviour"
        "The reserved bits of a memory key are 0";
    WIRE_SES_014 "WIRE-SES-014" Must "3.4.2" 1 "behaviour"
        "The eager part of a rendezvous send is no longer than the message: eager_length is at most request_length";

    WIRE_AMO_001 "WIRE-AMO-001" Should "3.4.2" 2 "wire-format"
        "The atomic opcode is assigned or a vendor's";
    WIRE_AMO_002 "WIRE-AMO-002" Should "3.4.2" 2 "wire-format"
        "The atomic datatype is assigned or a vendor's";
    WIRE_AMO_003 "WIRE-AMO-003" Must "3.4.2" 2 "behaviour"
        "An atomic is a whole message: som and eom are 1";
    WIRE_AMO_004 "WIRE-AMO-004" Must "3.5.7" 2 "behaviour"
        "An atomic is not idempotent: it is never sent by RUDI";

    WIRE_IP_001 "WIRE-IP-001" Should "3.5" 2 "wire-format"
        "A packet is never fragmented: IPv4 has DF set";
    WIRE_IP_002 "WIRE-IP-002" Must "3.5" 2 "wire-format"
        "The IPv4 checksum must be that of the header";
    WIRE_UDP_001 "WIRE-UDP-001" Should "3.5.10.1" 2 "wire-format"
        "The UDP checksum is sent as 0";
    WIRE_CRC_001 "WIRE-CRC-001" Must "3.5" 2 "wire-format"
        "The CRC trailer must equal the CRC-32C of the packet";
}
