//! Packet delivery over several packets: `PDS-`. `uet-model` implements these requirements and names them in its code.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    PDS_PDC_001 "PDS-PDC-001" Must "3.5.8" 2 "behaviour"
        "PDCID 0 names no context; each side picks its own PDCID, starting from 1";
    PDS_PDC_002 "PDS-PDC-002" Should "3.5.8" 2 "behaviour"
        "An initiator chooses a context by job, destination, traffic class, delivery mode and further criteria of SES";
    PDS_PDC_003 "PDS-PDC-003" Must "3.5.8" 2 "behaviour"
        "A target assigns a packet with syn = 0 to the context of its dpdcid if the packet comes from that context's peer";

    PDS_SYN_001 "PDS-SYN-001" Must "3.5.8" 2 "behaviour"
        "Until the first ACK, every packet carries syn = 1, pdc_info, and its distance from Start_PSN in psn_offset";
    PDS_SYN_002 "PDS-SYN-002" Must "3.5.8" 2 "behaviour"
        "A target accepts packets with syn in any order: Start_PSN is psn - psn_offset";
    PDS_SYN_003 "PDS-SYN-003" Must "3.5.8" 2 "behaviour"
        "A target answers the first packet at once, and this ACK tells the initiator the target's PDCID";
    PDS_SYN_004 "PDS-SYN-004" Must "3.5.8" 2 "behaviour"
        "After the first ACK, every packet carries syn = 0 and the target's PDCID, retransmissions included";
    PDS_SYN_005 "PDS-SYN-005" Must "3.5.8" 2 "behaviour"
        "A target assigns further packets with syn, equal source address and equal spdcid to the existing context, and opens no other";
    PDS_SYN_006 "PDS-SYN-006" Must "3.5.8" 2 "behaviour"
        "Before the first ACK, psn_offset is at most 4,095 and at most 128 * Default_MPR - 1";
    PDS_SYN_007 "PDS-SYN-007" Must "3.5.8" 2 "behaviour"
        "Start_PSN is random, and at least 2^16 away from the last PSN used with the same PDCID";
    PDS_SYN_008 "PDS-SYN-008" Must "3.5.8" 2 "behaviour"
        "Both directions begin at the same Start_PSN, with CACK_PSN and CLEAR_PSN at Start_PSN - 1";
    PDS_SYN_009 "PDS-SYN-009" Must "3.5.8" 2 "behaviour"
        "A NOOP or NEGOTIATION that opens a context states its mode in isrod";
    PDS_SYN_010 "PDS-SYN-010" Must "3.5.8" 2 "behaviour"
        "Among control packets, only NOOP and NEGOTIATION open a context";
    PDS_SYN_011 "PDS-SYN-011" Should "3.5.8" 2 "behaviour"
        "A target serves a packet that asks for the reserved pool with a context of that pool";

    PDS_OPEN_001 "PDS-OPEN-001" Must "3.5.8" 2 "behaviour"
        "A target without a free context, congestion context or bitmap answers NO_PDC_AVAIL, NO_CCC_AVAIL or NO_BITMAP with spdcid 0, and keeps no state";
    PDS_OPEN_002 "PDS-OPEN-002" Must "3.5.8" 2 "behaviour"
        "A target answers INV_DPDCID with spdcid 0 to a packet with syn = 0 for an unused dpdcid";
    PDS_OPEN_003 "PDS-OPEN-003" Must "3.5.8" 2 "behaviour"
        "A target answers PDC_HDR_MISMATCH with spdcid 0 to a packet for a context of another peer, and leaves the context unchanged";
    PDS_OPEN_004 "PDS-OPEN-004" Should "3.5.8" 2 "behaviour"
        "A target answers INVALID_SYN to a packet with syn and a PSN above the receive window";
    PDS_OPEN_005 "PDS-OPEN-005" Must "3.5.8" 2 "behaviour"
        "A target answers INVALID_SYN to a packet whose psn - psn_offset is not its context's Start_PSN, and does not deliver it";
    PDS_OPEN_006 "PDS-OPEN-006" Should "3.5.20.3.2" 2 "behaviour"
        "A receiver answers PSN_OOR_WINDOW to a new packet without syn outside the receive window";
    PDS_OPEN_007 "PDS-OPEN-007" Should "3.5.8" 2 "behaviour"
        "A target answers CLOSING to a request for a closed context with a PSN after the close";
    PDS_OPEN_008 "PDS-OPEN-008" Must "3.5.8" 2 "behaviour"
        "A target answers PDC_MODE_MISMATCH to a packet with another delivery mode than its context, and does not deliver it";
    PDS_OPEN_009 "PDS-OPEN-009" Should "3.5.8" 2 "behaviour"
        "A receiver drops a packet with a malformed header or an unknown type without an answer";

    PDS_PSN_001 "PDS-PSN-001" Must "3.5.8" 2 "behaviour"
        "The packets that take a PSN are numbered consecutively in each direction";
    PDS_PSN_002 "PDS-PSN-002" Must "3.5.12" 2 "behaviour"
        "CACK_PSN is the last PSN up to which all are received, and cleared where guaranteed; an ACK names only received PSNs";
    PDS_PSN_003 "PDS-PSN-003" Must "3.5.12" 2 "behaviour"
        "CACK_PSN never moves back";
    PDS_PSN_004 "PDS-PSN-004" Must "3.5.12" 2 "behaviour"
        "A source ignores an ACK of a PSN that it never sent";
    PDS_PSN_005 "PDS-PSN-005" Must "3.5.17" 2 "behaviour"
        "A source takes the default response for a packet at or below the cumulative PSN if it saw no other response";
    PDS_PSN_006 "PDS-PSN-006" Must "3.5.8" 2 "behaviour"
        "Endpoints compare PSNs modulo 2^32";

    PDS_WIN_001 "PDS-WIN-001" Should "3.5.12.6" 2 "behaviour"
        "A receiver accepts the PSNs from CACK_PSN + 1 to CACK_PSN + MP_RANGE";
    PDS_WIN_002 "PDS-WIN-002" Should "3.5.12.6" 1 "behaviour"
        "A source takes the range from an ACK only if its cumulative PSN is not older than the highest one seen";
    PDS_WIN_003 "PDS-WIN-003" Must "3.5.12.6" 1 "behaviour"
        "A receiver that announces a smaller range still accepts PSNs that it permitted before";
    PDS_WIN_004 "PDS-WIN-004" Must "3.5.12.6" 2 "behaviour"
        "A source sends no PSN above the cumulative PSN + MP_RANGE";
    PDS_WIN_005 "PDS-WIN-005" Must "3.5.12.6" 2 "behaviour"
        "mpr counts units of 128 PSNs; 0 means no limit, or the range that Override_MPR_Zero_Value states";

    PDS_ACK_001 "PDS-ACK-001" Must "3.5.12.2" 2 "behaviour"
        "A target acknowledges a packet with syn at once";
    PDS_ACK_002 "PDS-ACK-002" Should "3.5.12" 2 "behaviour"
        "An ACK repeats m and retx of the packet that it answers";
    PDS_ACK_003 "PDS-ACK-003" Must "3.5.12.2" 2 "behaviour"
        "A receiver acknowledges a retransmission at once";
    PDS_ACK_004 "PDS-ACK-004" Must "3.5.12.2" 2 "behaviour"
        "A receiver acknowledges a packet that asks for an ACK at once";
    PDS_ACK_005 "PDS-ACK-005" Should "3.5.12.2" 2 "behaviour"
        "A receiver sends a response that needs guaranteed delivery at once";
    PDS_ACK_006 "PDS-ACK-006" Should "3.5.12.2" 2 "behaviour"
        "A receiver sends a response with data at once";
    PDS_ACK_007 "PDS-ACK-007" Should "3.5.12.2" 2 "behaviour"
        "A receiver sends a response other than the default one at once";
    PDS_ACK_008 "PDS-ACK-008" Should "3.5.12.2" 2 "behaviour"
        "With ACK_On_ECN, a receiver acknowledges a packet with a congestion mark at once";
    PDS_ACK_009 "PDS-ACK-009" Should "3.5.12.2" 2 "behaviour"
        "With Enb_ACK_Per_Pkt, a receiver acknowledges every packet at once, or a source requests it";
    PDS_ACK_010 "PDS-ACK-010" Should "3.5.12.2" 2 "behaviour"
        "Otherwise a receiver sends an ACK after ACK_Gen_Trigger bytes; each packet counts at least ACK_Gen_Min_Pkt_Add";
    PDS_ACK_011 "PDS-ACK-011" Must "3.5.12.2" 1 "behaviour"
        "A receiver acknowledges every received packet in bounded time";
    PDS_ACK_012 "PDS-ACK-012" May "3.5.12.2" 2 "behaviour"
        "One ACK may cover several packets";
    PDS_ACK_013 "PDS-ACK-013" Should "3.5.17" 2 "behaviour"
        "A response made by packet delivery itself has list 0, the default opcode or UET_NO_RESPONSE, and modified_length 0";
    PDS_ACK_014 "PDS-ACK-014" Should "3.5.12" 1 "behaviour"
        "An ACK that answers only a control packet carries no response";
    PDS_ACK_015 "PDS-ACK-015" Should "3.5.12" 2 "behaviour"
        "A receiver sends an ACK_CC if it has congestion state or a gap to report, and an ACK otherwise";
    PDS_ACK_016 "PDS-ACK-016" Must "3.5.12" 2 "behaviour"
        "The response in an ACK belongs to the packet that ack_psn names";

    PDS_SACK_001 "PDS-SACK-001" Must "3.5.11.14" 2 "behaviour"
        "Bit i of the bitmap is set only if PSN sack_psn + i has been received";
    PDS_SACK_002 "PDS-SACK-002" Should "3.5.11.14" 1 "behaviour"
        "A receiver sets the bits of PSNs at or below CACK_PSN";
    PDS_SACK_003 "PDS-SACK-003" Should "3.5.11.14" 1 "behaviour"
        "A receiver with gaps sends bitmaps that, over time, cover all PSNs it has received";
    PDS_SACK_004 "PDS-SACK-004" Must "3.5.11.14" 2 "behaviour"
        "A source treats a packet that only a bitmap names as unanswered, and asks for its response";
    PDS_SACK_005 "PDS-SACK-005" Must "3.5.11.14" 1 "behaviour"
        "A bitmap may begin anywhere in the receive window or below, and counts from there";

    PDS_DUP_001 "PDS-DUP-001" Must "3.5.12.5" 2 "behaviour"
        "A receiver delivers each PSN at most once";
    PDS_DUP_002 "PDS-DUP-002" Must "3.5.12.5" 2 "behaviour"
        "A receiver acknowledges a retransmission of an answered packet again, with the stored response or else the default one";
    PDS_DUP_003 "PDS-DUP-003" May "3.5.12.5" 1 "behaviour"
        "A receiver may silently drop a duplicate without retx";
    PDS_DUP_004 "PDS-DUP-004" Must "3.5.12.5" 2 "behaviour"
        "A receiver treats a PSN at most MP_RANGE below CACK_PSN as a duplicate, not as an error";
    PDS_DUP_005 "PDS-DUP-005" Must "3.5.12.5" 2 "behaviour"
        "A receiver answers a duplicate whose response is not ready with RCVD_SES_PROCG, or not at all";

    PDS_RUD_001 "PDS-RUD-001" Must "3.5.6" 2 "behaviour"
        "On an unordered context, a receiver delivers every packet on arrival, whatever packets are missing before it";
    PDS_ROD_001 "PDS-ROD-001" Must "3.5.21" 2 "behaviour"
        "On an ordered context, a receiver accepts packets only in order, beginning with Start_PSN";
    PDS_ROD_002 "PDS-ROD-002" Should "3.5.21.1" 2 "behaviour"
        "A receiver drops a packet above a gap and answers ROD_OOO with its PSN, once per gap";
    PDS_ROD_003 "PDS-ROD-003" Should "3.5.21" 2 "behaviour"
        "A receiver sends the ACKs of an ordered context in the order of the requests";
    PDS_ROD_004 "PDS-ROD-004" Must "3.5.21" 2 "behaviour"
        "After ROD_OOO or a timeout, the source of an ordered context retransmits all packets from the missing PSN on";
    PDS_ROD_005 "PDS-ROD-005" Should "3.5.21" 2 "behaviour"
        "All packets of an ordered context carry the same entropy value at a time";
    PDS_ROD_006 "PDS-ROD-006" Should "3.5.21" 2 "behaviour"
        "Data of reads on an ordered context leaves in the order of the requests";
    PDS_UUD_001 "PDS-UUD-001" Should "3.5.6" 2 "behaviour"
        "A target never answers a datagram";
    PDS_RUDI_001 "PDS-RUDI-001" Must "3.5.6" 2 "behaviour"
        "A pkt_id names only one outstanding request of its source";
    PDS_RUDI_002 "PDS-RUDI-002" Must "3.5.6" 2 "behaviour"
        "A target answers each RUDI request with a RUDI_RESP that has its pkt_id";
    PDS_RUDI_003 "PDS-RUDI-003" Must "3.5.6" 2 "behaviour"
        "A target delivers and answers a repeated RUDI request again";
    PDS_RUDI_004 "PDS-RUDI-004" Should "3.5.6" 2 "behaviour"
        "After a NACK with nt = 1, the source retransmits the RUDI request";
    PDS_RUDI_005 "PDS-RUDI-005" Must "3.5.6" 2 "behaviour"
        "A source retransmits a RUDI request that is not answered in time";
    PDS_MSG_001 "PDS-MSG-001" Must "3.5.8" 2 "behaviour"
        "A source sends a message of a context completely before it begins the next one";
    PDS_MSG_002 "PDS-MSG-002" Must "3.5.8" 2 "behaviour"
        "A source never splits a message over two contexts";

    PDS_GTD_001 "PDS-GTD-001" Must "3.5.11" 2 "behaviour"
        "A target keeps a response that needs guaranteed delivery until it is cleared";
    PDS_GTD_002 "PDS-GTD-002" Must "3.5.11" 2 "behaviour"
        "An ACK whose response must be cleared carries REQ_CLEAR";
    PDS_GTD_003 "PDS-GTD-003" May "3.5.11" 2 "behaviour"
        "A target need not keep read data sent in an ACK: it may read again for a repeated request";
    PDS_GTD_004 "PDS-GTD-004" Should "3.5.11" 1 "behaviour"
        "An ACK of the initiator carries NO_REQUEST";
    PDS_GTD_005 "PDS-GTD-005" Must "3.5.11" 2 "behaviour"
        "A target answers NO_GTD_DEL_AVAIL to a request if it cannot keep the response";

    PDS_CLR_001 "PDS-CLR-001" Must "3.5.11" 2 "behaviour"
        "CLEAR_PSN covers only PSNs that a received cack_psn covers or an ack_psn has named";
    PDS_CLR_002 "PDS-CLR-002" Must "3.5.11.4.4" 2 "behaviour"
        "CLEAR_PSN never moves back";
    PDS_CLR_003 "PDS-CLR-003" Must "3.5.11" 2 "behaviour"
        "Every request carries the current CLEAR_PSN when it leaves, retransmissions included";
    PDS_CLR_004 "PDS-CLR-004" Must "3.5.16.3" 2 "behaviour"
        "CLEAR_COMMAND clears all PSNs up to the one in its payload";
    PDS_CLR_005 "PDS-CLR-005" Must "3.5.11" 2 "behaviour"
        "A target releases cleared responses and advances CACK_PSN";
    PDS_CLR_006 "PDS-CLR-006" Must "3.5.11" 2 "behaviour"
        "After REQ_CLEAR, a source sends CLEAR_PSN in a request or in a CLEAR_COMMAND";
    PDS_CLR_007 "PDS-CLR-007" Must "3.5.16.3" 2 "behaviour"
        "A source answers CLEAR_REQUEST by sending its CLEAR_PSN";
    PDS_CLR_008 "PDS-CLR-008" Must "3.5.16.3" 2 "behaviour"
        "A source sends CLEAR_COMMAND if no request carries CLEAR_PSN in time, or if the offset does not fit";
    PDS_CLR_009 "PDS-CLR-009" Should "3.5.16.3" 2 "behaviour"
        "A source sends no CLEAR_COMMAND while it has a request waiting that can carry CLEAR_PSN";
    PDS_CLR_010 "PDS-CLR-010" May "3.5.16.3" 2 "behaviour"
        "A destination may ask for a clear with CLEAR_REQUEST";
    PDS_CLR_011 "PDS-CLR-011" Should "3.5.16.3" 2 "behaviour"
        "A target does not answer CLEAR_COMMAND";
    PDS_CLR_012 "PDS-CLR-012" Must "3.5.11.4.4" 2 "wire-format"
        "clear_psn_offset is signed: CLEAR_PSN may lie up to 2^15 below the PSN that carries it";

    PDS_RTO_001 "PDS-RTO-001" Must "3.5" 2 "behaviour"
        "A source retransmits a packet that is not answered within its timeout";
    PDS_RTO_002 "PDS-RTO-002" Should "3.5" 2 "behaviour"
        "The timeout begins at RTO_Init_Time and doubles with each retransmission";
    PDS_RTO_003 "PDS-RTO-003" Should "3.5" 2 "behaviour"
        "Max_RTO_Retx_Cnt limits the retransmissions; 15 or 31 mean no limit";
    PDS_RTO_004 "PDS-RTO-004" Must "3.5" 2 "behaviour"
        "When retransmissions are exhausted, the context fails, and packet delivery informs SES of each packet";
    PDS_RTO_005 "PDS-RTO-005" Must "3.5" 2 "behaviour"
        "A retransmission repeats PSN and payload, and has retx = 1";

    PDS_NACK_001 "PDS-NACK-001" Should "3.5" 2 "behaviour"
        "A NACK repeats m and retx of the packet that it answers";
    PDS_NACK_002 "PDS-NACK-002" Must "3.5" 2 "behaviour"
        "A source ignores a NACK of a PSN that is not outstanding";
    PDS_NACK_003 "PDS-NACK-003" Must "3.5" 2 "behaviour"
        "A source closes the context after a NACK that is fatal to it; a permitted new attempt uses a new context";
    PDS_NACK_004 "PDS-NACK-004" Must "3.5" 2 "behaviour"
        "A source retransmits the packet after a NACK of the normal class";
    PDS_NACK_005 "PDS-NACK-005" Should "3.5" 2 "behaviour"
        "Max_NACK_Retx_Cnt limits the retransmissions caused by NACKs";
    PDS_NACK_006 "PDS-NACK-006" Should "3.5" 2 "behaviour"
        "After a normal NACK other than a trim, a source waits for NACK_Retx_Time before it retransmits";
    PDS_NACK_007 "PDS-NACK-007" Should "3.5.15" 2 "behaviour"
        "A source retransmits a trimmed packet as soon as congestion control permits";
    PDS_NACK_008 "PDS-NACK-008" Must "3.5" 2 "behaviour"
        "The NACK of a RUDI packet has nt = 1 and the packet's pkt_id";
    PDS_NACK_009 "PDS-NACK-009" Must "3.7" 2 "behaviour"
        "After NEW_START_PSN, a source renumbers all packets from the PSN in its payload on, each with its psn_offset";
    PDS_NACK_010 "PDS-NACK-010" Must "3.5" 2 "behaviour"
        "An endpoint never answers an ACK or a NACK with a NACK, except a trimmed ACK with TRIMMED_ACK before 1.0.3";
    PDS_NACK_011 "PDS-NACK-011" Must "3.5" 2 "behaviour"
        "A receiver treats a packet that it refused for lack of a resource as not received";
    PDS_NACK_012 "PDS-NACK-012" Should "3.5" 2 "behaviour"
        "After RCVD_SES_PROCG, a source retransmits the packet only if no ACK arrives within NACK_Retx_Time";
    PDS_NACK_013 "PDS-NACK-013" Should "3.5" 2 "behaviour"
        "After CLOSING_IN_ERR, a source closes the context and retries nothing";
    PDS_NACK_014 "PDS-NACK-014" Must "3.5" 2 "behaviour"
        "After GTD_RESP_UNAVAIL, a source closes the context and fails the operation";
    PDS_NACK_015 "PDS-NACK-015" Must "3.5" 2 "behaviour"
        "After PKT_NOT_RCVD or ACK_WITH_DATA, a source retransmits the original packet";

    PDS_TRIM_001 "PDS-TRIM-001" Should "3.5.15" 2 "behaviour"
        "A target answers TRIMMED to a trimmed request, or TRIMMED_LASTHOP if the last switch trimmed it";
    PDS_TRIM_002 "PDS-TRIM-002" Must "3.5.15" 2 "behaviour"
        "A receiver does not deliver a trimmed packet and does not change its receive state";
    PDS_TRIM_003 "PDS-TRIM-003" Should "3.5.15" 2 "behaviour"
        "A target answers a trimmed RUDI request with a NACK that has nt = 1";
    PDS_TRIM_004 "PDS-TRIM-004" Should "3.5.15" 2 "behaviour"
        "A trimmed packet does not open a context";
    PDS_TRIM_005 "PDS-TRIM-005" Should "3.5.15" 2 "behaviour"
        "A receiver drops a trimmed ACK, NACK or control packet";

    PDS_CTL_001 "PDS-CTL-001" Must "3.5.10" 2 "behaviour"
        "NOOP, NEGOTIATION, CLOSE_COMMAND and CLOSE_REQUEST take a PSN of their direction; other control packets take none";
    PDS_CTL_002 "PDS-CTL-002" Should "3.5.10" 2 "behaviour"
        "A control packet without a PSN of its own belongs to the context of its dpdcid, and opens none";
    PDS_ASK_001 "PDS-ASK-001" Must "3.5.12" 2 "behaviour"
        "A receiver answers PKT_NOT_RCVD to an ACK_REQUEST for a PSN that it has not received";
    PDS_ASK_002 "PDS-ASK-002" Must "3.5.12" 2 "behaviour"
        "A receiver answers an ACK_REQUEST for a PSN at or below CACK_PSN with an ACK and the default response";
    PDS_ASK_003 "PDS-ASK-003" Must "3.5.12" 2 "behaviour"
        "A receiver answers an ACK_REQUEST for a PSN whose response is available with an ACK that carries it";
    PDS_ASK_004 "PDS-ASK-004" Should "3.5.12" 2 "behaviour"
        "A receiver answers RCVD_SES_PROCG to an ACK_REQUEST for a PSN whose response is not ready";
    PDS_ASK_005 "PDS-ASK-005" Must "3.5.12" 2 "behaviour"
        "A receiver answers ACK_WITH_DATA to an ACK_REQUEST for read data that it no longer holds";
    PDS_PRB_001 "PDS-PRB-001" Should "3.5.12" 2 "behaviour"
        "A receiver answers a PROBE with an ACK that has p = 1, its probe_opaque, and a bitmap at or near the requested PSN";
    PDS_PRB_002 "PDS-PRB-002" Must "3.5.12" 2 "behaviour"
        "A source ignores the cack_psn of an ACK that answers a PROBE";
    PDS_PRB_003 "PDS-PRB-003" Should "3.5.12" 2 "behaviour"
        "A source sends no PROBE before the first ACK or NACK of its context";
    PDS_PRB_004 "PDS-PRB-004" Should "3.5.12" 2 "behaviour"
        "A source sends a PROBE in the traffic class of control packets";
    PDS_CLASS_001 "PDS-CLASS-001" Should "3.6.4" 2 "behaviour"
        "ACKs, NACKs and grants use the traffic class of control packets, and requests use that of data";
    PDS_CLASS_002 "PDS-CLASS-002" Should "3.6.17" 1 "congestion"
        "Control packets use the traffic class of control packets, also when they are sent again";

    PDS_SEC_001 "PDS-SEC-001" Must "3.7" 2 "behaviour"
        "A retransmission of a secured packet uses a new counter";
    PDS_SEC_002 "PDS-SEC-002" Should "3.7" 2 "behaviour"
        "A secured target that refuses a Start_PSN answers NEW_START_PSN with a new one in the payload";
    PDS_SEC_003 "PDS-SEC-003" Should "3.7" 2 "behaviour"
        "After NEW_START_PSN, a target keeps the pending context for New_PDC_Time";
    PDS_SEC_004 "PDS-SEC-004" Should "3.7" 2 "behaviour"
        "A target without security never sends NEW_START_PSN";

    PDS_CLOSE_001 "PDS-CLOSE-001" Must "3.5.8" 2 "behaviour"
        "An initiator closes only after every request is acknowledged and no read data is outstanding";
    PDS_CLOSE_002 "PDS-CLOSE-002" Must "3.5.8" 2 "behaviour"
        "CLOSE_COMMAND takes a new PSN and asks for an ACK";
    PDS_CLOSE_003 "PDS-CLOSE-003" Must "3.5.8" 2 "behaviour"
        "An endpoint closes no context in the middle of a message, or while SES holds it";
    PDS_CLOSE_004 "PDS-CLOSE-004" Must "3.5.8" 2 "behaviour"
        "A target acknowledges CLOSE_COMMAND, clears all stored responses and frees the context";
    PDS_CLOSE_005 "PDS-CLOSE-005" Must "3.5.8" 2 "behaviour"
        "A target with unacknowledged return data answers CLOSING_IN_ERR to CLOSE_COMMAND";
    PDS_CLOSE_006 "PDS-CLOSE-006" Should "3.5.8" 2 "behaviour"
        "A target asks for a close with CLOSE_REQUEST, or with REQ_CLOSE in an ACK";
    PDS_CLOSE_007 "PDS-CLOSE-007" Must "3.5.8" 1 "behaviour"
        "A target does not refuse CLOSE_COMMAND because its own CLOSE_REQUEST is unacknowledged";
    PDS_CLOSE_008 "PDS-CLOSE-008" Should "3.5.8" 2 "behaviour"
        "If no CLOSE_COMMAND arrives within Close_REQ_Time, the target closes in error and sends CLOSING_IN_ERR";
    PDS_CLOSE_009 "PDS-CLOSE-009" Must "3.5.8" 2 "behaviour"
        "Late packets of a closed context open no context and are not delivered";
    PDS_CLOSE_010 "PDS-CLOSE-010" Must "3.5.8" 2 "behaviour"
        "A target acknowledges a repeated CLOSE_COMMAND again";
    PDS_CLOSE_011 "PDS-CLOSE-011" Must "3.5.8" 2 "behaviour"
        "A packet with syn and a Start_PSN at least 2^16 away from a closed context opens a new context";
    PDS_CLOSE_012 "PDS-CLOSE-012" Must "3.5.8" 2 "behaviour"
        "With Limit_PSN_Range, a context closes before a direction has used 2^31 PSNs";
    PDS_CLOSE_013 "PDS-CLOSE-013" Should "3.5.8" 2 "behaviour"
        "An initiator closes the context after CLOSE_REQUEST or REQ_CLOSE";
}
