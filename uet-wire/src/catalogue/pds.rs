//! Packet delivery over several packets: `PDS-`. `uet-model` implements these requirements and names them in its code.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    PDS_PDC_001 "PDS-PDC-001" Must "3.5.8" 2 "behaviour"
        "PDCID 0 names no context; each side picks its own identifier from 1 on";
    PDS_PDC_002 "PDS-PDC-002" Should "3.5.8" 2 "behaviour"
        "The initiator chooses a context by job, destination, traffic class and delivery mode, and what SES adds to them";
    PDS_PDC_003 "PDS-PDC-003" Must "3.5.8" 2 "behaviour"
        "A packet with syn = 0 belongs to the context of its dpdcid, if it comes from the peer of that context";

    PDS_SYN_001 "PDS-SYN-001" Must "3.5.8" 2 "behaviour"
        "Every packet until the first ACK carries syn = 1, pdc_info, and in psn_offset its distance from Start_PSN";
    PDS_SYN_002 "PDS-SYN-002" Must "3.5.8" 2 "behaviour"
        "A target takes packets with syn in any order: Start_PSN is psn - psn_offset";
    PDS_SYN_003 "PDS-SYN-003" Must "3.5.8" 2 "behaviour"
        "The first ACK tells the initiator the target's PDCID: it answers the first packet at once";
    PDS_SYN_004 "PDS-SYN-004" Must "3.5.8" 2 "behaviour"
        "After the first ACK every packet, retransmissions included, carries syn = 0 and the target's PDCID";
    PDS_SYN_005 "PDS-SYN-005" Must "3.5.8" 2 "behaviour"
        "A further packet with syn of the same source address and spdcid finds the context that the first one made, and makes no other";
    PDS_SYN_006 "PDS-SYN-006" Must "3.5.8" 2 "behaviour"
        "Before the first ACK psn_offset is at most 4,095, and at most 128 * Default_MPR - 1";
    PDS_SYN_007 "PDS-SYN-007" Must "3.5.8" 2 "behaviour"
        "Start_PSN is random, and at least 2^16 away from the last PSN used with the same PDCID";
    PDS_SYN_008 "PDS-SYN-008" Must "3.5.8" 2 "behaviour"
        "Both directions start at the same Start_PSN, with CACK_PSN and CLEAR_PSN at Start_PSN - 1";
    PDS_SYN_009 "PDS-SYN-009" Must "3.5.8" 2 "behaviour"
        "A NOOP or NEGOTIATION that opens a context says its mode by isrod";
    PDS_SYN_010 "PDS-SYN-010" Must "3.5.8" 2 "behaviour"
        "No control packet but NOOP and NEGOTIATION opens a context";
    PDS_SYN_011 "PDS-SYN-011" Should "3.5.8" 2 "behaviour"
        "A packet that asks for the reserved pool gets a context of that pool";

    PDS_OPEN_001 "PDS-OPEN-001" Must "3.5.8" 2 "behaviour"
        "A target that lacks a context, a congestion control context or a bitmap answers NO_PDC_AVAIL, NO_CCC_AVAIL or NO_BITMAP with spdcid 0, and keeps nothing";
    PDS_OPEN_002 "PDS-OPEN-002" Must "3.5.8" 2 "behaviour"
        "A packet with syn = 0 whose dpdcid is not in use is answered INV_DPDCID with spdcid 0";
    PDS_OPEN_003 "PDS-OPEN-003" Must "3.5.8" 2 "behaviour"
        "A packet for a context in use that is not of its peer is answered PDC_HDR_MISMATCH with spdcid 0, and changes nothing";
    PDS_OPEN_004 "PDS-OPEN-004" Should "3.5.8" 2 "behaviour"
        "A packet with syn and a PSN above the receive window is answered INVALID_SYN";
    PDS_OPEN_005 "PDS-OPEN-005" Must "3.5.8" 2 "behaviour"
        "A packet with syn whose psn - psn_offset is not the Start_PSN of the context that it finds is answered INVALID_SYN, and not delivered";
    PDS_OPEN_006 "PDS-OPEN-006" Should "3.5.8" 2 "behaviour"
        "A packet without syn whose PSN is above the receive window, or more than MP_RANGE below CACK_PSN, is answered PSN_OOR_WINDOW";
    PDS_OPEN_007 "PDS-OPEN-007" Should "3.5.8" 2 "behaviour"
        "A request for a closed context whose PSN lies after the close is answered CLOSING";
    PDS_OPEN_008 "PDS-OPEN-008" Must "3.5.8" 2 "behaviour"
        "A packet of another delivery mode than that of its context is answered PDC_MODE_MISMATCH, and not delivered";
    PDS_OPEN_009 "PDS-OPEN-009" Should "3.5.8" 2 "behaviour"
        "A packet with a malformed header or an unknown type is dropped without an answer";

    PDS_PSN_001 "PDS-PSN-001" Must "3.5.8" 2 "behaviour"
        "The packets of a direction that take a PSN take one after the other, without gaps";
    PDS_PSN_002 "PDS-PSN-002" Must "3.5.12" 2 "behaviour"
        "CACK_PSN covers what has been received without gaps and, where its response needed guaranteed delivery, has been cleared";
    PDS_PSN_003 "PDS-PSN-003" Must "3.5.12" 2 "behaviour"
        "CACK_PSN never moves back";
    PDS_PSN_004 "PDS-PSN-004" Must "3.5.12" 2 "behaviour"
        "An ACK of what was never sent is ignored";
    PDS_PSN_005 "PDS-PSN-005" Must "3.5.17" 2 "behaviour"
        "A packet at or below the cumulative PSN whose response was not seen has the default response";
    PDS_PSN_006 "PDS-PSN-006" Must "3.5.8" 2 "behaviour"
        "PSNs are compared modulo 2^32";

    PDS_WIN_001 "PDS-WIN-001" Should "3.5.12.6" 2 "behaviour"
        "A receiver takes the PSNs from CACK_PSN + 1 to CACK_PSN + MP_RANGE";
    PDS_WIN_002 "PDS-WIN-002" Should "3.5.12.6" 1 "behaviour"
        "A range counts from an ACK whose cumulative PSN is not older than the highest seen";
    PDS_WIN_003 "PDS-WIN-003" Must "3.5.12.6" 1 "behaviour"
        "A smaller range does not make PSNs illegal that were permitted before";
    PDS_WIN_004 "PDS-WIN-004" Must "3.5.12.6" 2 "behaviour"
        "A source sends nothing above the cumulative PSN + MP_RANGE";
    PDS_WIN_005 "PDS-WIN-005" Must "3.5.12.6" 2 "behaviour"
        "mpr counts 128 PSNs, and 0 states no limit";

    PDS_ACK_001 "PDS-ACK-001" Must "3.5.12.2" 2 "behaviour"
        "A packet with syn is acknowledged at once";
    PDS_ACK_002 "PDS-ACK-002" Should "3.5.12" 2 "behaviour"
        "m and retx of an ACK are those of the packet that it answers";
    PDS_ACK_003 "PDS-ACK-003" Must "3.5.12.2" 2 "behaviour"
        "A retransmission is acknowledged at once";
    PDS_ACK_004 "PDS-ACK-004" Must "3.5.12.2" 2 "behaviour"
        "A packet that asks for an acknowledgement is acknowledged at once";
    PDS_ACK_005 "PDS-ACK-005" Should "3.5.12.2" 2 "behaviour"
        "A response that needs guaranteed delivery leaves at once";
    PDS_ACK_006 "PDS-ACK-006" Should "3.5.12.2" 2 "behaviour"
        "A response with data leaves at once";
    PDS_ACK_007 "PDS-ACK-007" Should "3.5.12.2" 2 "behaviour"
        "A response that is not the default one leaves at once";
    PDS_ACK_008 "PDS-ACK-008" Should "3.5.12.2" 2 "behaviour"
        "With ACK_On_ECN a packet marked by congestion is acknowledged at once";
    PDS_ACK_009 "PDS-ACK-009" Should "3.5.12.2" 2 "behaviour"
        "With Enb_ACK_Per_Pkt every packet is acknowledged at once";
    PDS_ACK_010 "PDS-ACK-010" Should "3.5.12.2" 2 "behaviour"
        "Otherwise an ACK leaves when the packets since the last have reached ACK_Gen_Trigger bytes, each counted with at least ACK_Gen_Min_Pkt_Add";
    PDS_ACK_011 "PDS-ACK-011" Must "3.5.12.2" 1 "behaviour"
        "A received packet is acknowledged in bounded time";
    PDS_ACK_012 "PDS-ACK-012" May "3.5.12.2" 2 "behaviour"
        "One ACK may cover several packets";
    PDS_ACK_013 "PDS-ACK-013" Should "3.5.17" 2 "behaviour"
        "A response that packet delivery makes by itself has list 0, the default opcode or UET_NO_RESPONSE, and modified_length 0";
    PDS_ACK_014 "PDS-ACK-014" Should "3.5.12" 1 "behaviour"
        "An ACK that answers only a control packet carries no response";
    PDS_ACK_015 "PDS-ACK-015" Should "3.5.12" 2 "behaviour"
        "An ACK_CC leaves where there is congestion state or a gap to tell, an ACK where there is neither";
    PDS_ACK_016 "PDS-ACK-016" Must "3.5.12" 2 "behaviour"
        "The response in an ACK is that of the packet that ack_psn names";

    PDS_SACK_001 "PDS-SACK-001" Must "3.5.12" 2 "behaviour"
        "Bit i of the bitmap is set only when PSN sack_psn + i has been received";
    PDS_SACK_002 "PDS-SACK-002" Should "3.5.12" 1 "behaviour"
        "Bits of PSNs at or below CACK_PSN read as received";
    PDS_SACK_003 "PDS-SACK-003" Should "3.5.12" 1 "behaviour"
        "A receiver with gaps sends bitmaps that over time cover what it has";
    PDS_SACK_004 "PDS-SACK-004" Must "3.5.12" 2 "behaviour"
        "A packet that only a bitmap names is not answered yet: its response is asked for";
    PDS_SACK_005 "PDS-SACK-005" Must "3.5.12" 1 "behaviour"
        "A bitmap may start anywhere in the receive window";

    PDS_DUP_001 "PDS-DUP-001" Must "3.5.12.5" 2 "behaviour"
        "A PSN is delivered at most once";
    PDS_DUP_002 "PDS-DUP-002" Must "3.5.12.5" 2 "behaviour"
        "A retransmission of what was answered is acknowledged again: by the stored response if there is one, else by a default response";
    PDS_DUP_003 "PDS-DUP-003" May "3.5.12.5" 1 "behaviour"
        "A copy without retx may be dropped in silence";
    PDS_DUP_004 "PDS-DUP-004" Must "3.5.12.5" 2 "behaviour"
        "A PSN at most MP_RANGE below CACK_PSN is a duplicate, and no error";
    PDS_DUP_005 "PDS-DUP-005" Must "3.5.12.5" 2 "behaviour"
        "A duplicate whose response is not ready is answered RCVD_SES_PROCG or not at all";

    PDS_RUD_001 "PDS-RUD-001" Must "3.5.6" 2 "behaviour"
        "On an unordered context every packet is delivered as it comes; none waits for another";
    PDS_ROD_001 "PDS-ROD-001" Must "3.5.21" 2 "behaviour"
        "On an ordered context a packet is taken only in order, from Start_PSN on";
    PDS_ROD_002 "PDS-ROD-002" Should "3.5.21" 2 "behaviour"
        "A packet above a gap is dropped and answered ROD_OOO with its own PSN, once for each gap";
    PDS_ROD_003 "PDS-ROD-003" Should "3.5.21" 2 "behaviour"
        "The ACKs of an ordered context leave in the order of the requests";
    PDS_ROD_004 "PDS-ROD-004" Must "3.5.21" 2 "behaviour"
        "After ROD_OOO or a timeout the source of an ordered context sends everything from the missing PSN on again";
    PDS_ROD_005 "PDS-ROD-005" Should "3.5.21" 2 "behaviour"
        "All packets of an ordered context have one entropy value at a time";
    PDS_UUD_001 "PDS-UUD-001" Should "3.5.6" 2 "behaviour"
        "A datagram is never answered";
    PDS_RUDI_001 "PDS-RUDI-001" Must "3.5.6" 2 "behaviour"
        "A pkt_id names one outstanding request of its source";
    PDS_RUDI_002 "PDS-RUDI-002" Must "3.5.6" 2 "behaviour"
        "Each RUDI request gets a RUDI_RESP with its pkt_id";
    PDS_RUDI_003 "PDS-RUDI-003" Must "3.5.6" 2 "behaviour"
        "A RUDI request that comes again is delivered and answered again";
    PDS_RUDI_004 "PDS-RUDI-004" Should "3.5.6" 2 "behaviour"
        "A NACK with nt = 1 has a RUDI request sent again";
    PDS_RUDI_005 "PDS-RUDI-005" Must "3.5.6" 2 "behaviour"
        "A RUDI request that is not answered in time is sent again";
    PDS_MSG_001 "PDS-MSG-001" Must "3.5.8" 2 "behaviour"
        "One message leaves a context whole before the next starts";
    PDS_MSG_002 "PDS-MSG-002" Must "3.5.8" 2 "behaviour"
        "A message never spans two contexts";

    PDS_GTD_001 "PDS-GTD-001" Must "3.5.11" 2 "behaviour"
        "A response that needs guaranteed delivery is kept until it is cleared";
    PDS_GTD_002 "PDS-GTD-002" Must "3.5.11" 2 "behaviour"
        "The ACK of a response that is to be cleared carries REQ_CLEAR";
    PDS_GTD_003 "PDS-GTD-003" May "3.5.11" 2 "behaviour"
        "Read data in an ACK need not be kept: a request that comes again may read again";
    PDS_GTD_004 "PDS-GTD-004" Should "3.5.11" 1 "behaviour"
        "An ACK of the initiator carries NO_REQUEST";
    PDS_GTD_005 "PDS-GTD-005" Must "3.5.11" 2 "behaviour"
        "A request is refused by NO_GTD_DEL_AVAIL while its response could not be kept";

    PDS_CLR_001 "PDS-CLR-001" Must "3.5.11" 2 "behaviour"
        "CLEAR_PSN covers only PSNs that a received cack_psn covers or that an ack_psn has named";
    PDS_CLR_002 "PDS-CLR-002" Must "3.5.11" 2 "behaviour"
        "CLEAR_PSN never moves back";
    PDS_CLR_003 "PDS-CLR-003" Must "3.5.11" 2 "behaviour"
        "Every request carries CLEAR_PSN as it is when it leaves, retransmissions included";
    PDS_CLR_004 "PDS-CLR-004" Must "3.5.16.3" 2 "behaviour"
        "CLEAR_COMMAND clears up to the PSN in its payload";
    PDS_CLR_005 "PDS-CLR-005" Must "3.5.11" 2 "behaviour"
        "What is cleared is released, and CACK_PSN moves";
    PDS_CLR_006 "PDS-CLR-006" Must "3.5.11" 2 "behaviour"
        "A source that is asked by REQ_CLEAR tells CLEAR_PSN, in a request or by CLEAR_COMMAND";
    PDS_CLR_007 "PDS-CLR-007" Must "3.5.16.3" 2 "behaviour"
        "CLEAR_REQUEST is answered by CLEAR";
    PDS_CLR_008 "PDS-CLR-008" Must "3.5.16.3" 2 "behaviour"
        "CLEAR_COMMAND leaves when no request carries CLEAR_PSN in time, or when it does not fit";
    PDS_CLR_009 "PDS-CLR-009" Should "3.5.16.3" 2 "behaviour"
        "No CLEAR_COMMAND leaves while a request waits that could carry it";
    PDS_CLR_010 "PDS-CLR-010" May "3.5.16.3" 2 "behaviour"
        "A destination may ask for a CLEAR by CLEAR_REQUEST";
    PDS_CLR_011 "PDS-CLR-011" Should "3.5.16.3" 2 "behaviour"
        "CLEAR_COMMAND is not answered";
    PDS_CLR_012 "PDS-CLR-012" Must "3.5.11" 2 "wire-format"
        "clear_psn_offset is signed: CLEAR_PSN may lie below or above the PSN that carries it";

    PDS_RTO_001 "PDS-RTO-001" Must "3.5" 2 "behaviour"
        "A packet that is not answered within its timeout is sent again";
    PDS_RTO_002 "PDS-RTO-002" Should "3.5" 2 "behaviour"
        "The timeout doubles with each retransmission, from RTO_Init_Time on";
    PDS_RTO_003 "PDS-RTO-003" Should "3.5" 2 "behaviour"
        "Max_RTO_Retx_Cnt bounds the retransmissions; 15 or 31 mean without end";
    PDS_RTO_004 "PDS-RTO-004" Must "3.5" 2 "behaviour"
        "When retransmissions are exhausted the context fails, and SES is told for each packet";
    PDS_RTO_005 "PDS-RTO-005" Must "3.5" 2 "behaviour"
        "A retransmission repeats PSN and payload, and has retx = 1";

    PDS_NACK_001 "PDS-NACK-001" Should "3.5" 2 "behaviour"
        "m and retx of a NACK are those of the packet that it answers";
    PDS_NACK_002 "PDS-NACK-002" Must "3.5" 1 "behaviour"
        "A NACK of a PSN outside what is outstanding changes nothing";
    PDS_NACK_003 "PDS-NACK-003" Must "3.5" 2 "behaviour"
        "A NACK that is fatal to the context closes it; where its code allows another attempt, that takes a new one";
    PDS_NACK_004 "PDS-NACK-004" Must "3.5" 2 "behaviour"
        "A NACK of the normal class has the packet sent again";
    PDS_NACK_005 "PDS-NACK-005" Should "3.5" 2 "behaviour"
        "Max_NACK_Retx_Cnt bounds what NACKs have sent again";
    PDS_NACK_006 "PDS-NACK-006" Should "3.5" 2 "behaviour"
        "After a normal NACK that is not a trim the packet waits for NACK_Retx_Time";
    PDS_NACK_007 "PDS-NACK-007" Should "3.5.15" 2 "behaviour"
        "A trimmed packet is sent again as soon as congestion control permits";
    PDS_NACK_008 "PDS-NACK-008" Must "3.5" 2 "behaviour"
        "The NACK of a RUDI packet has nt = 1 and its pkt_id";
    PDS_NACK_009 "PDS-NACK-009" Must "3.7" 2 "behaviour"
        "After NEW_START_PSN all packets are numbered anew from its payload on, each with its psn_offset";
    PDS_NACK_010 "PDS-NACK-010" Must "3.5" 2 "behaviour"
        "No NACK is sent in answer to an ACK or a NACK";
    PDS_NACK_011 "PDS-NACK-011" Must "3.5" 2 "behaviour"
        "A packet refused for lack of a resource counts as not received";
    PDS_NACK_012 "PDS-NACK-012" Should "3.5" 2 "behaviour"
        "After RCVD_SES_PROCG the packet is sent again only if its ACK has not come within NACK_Retx_Time";
    PDS_NACK_013 "PDS-NACK-013" Should "3.5" 2 "behaviour"
        "After CLOSING_IN_ERR the context is closed, and nothing is tried again";
    PDS_NACK_014 "PDS-NACK-014" Must "3.5" 2 "behaviour"
        "After GTD_RESP_UNAVAIL the context is closed, and the operation fails";
    PDS_NACK_015 "PDS-NACK-015" Must "3.5" 2 "behaviour"
        "After PKT_NOT_RCVD or ACK_WITH_DATA the original packet is sent again";

    PDS_TRIM_001 "PDS-TRIM-001" Should "3.5.15" 2 "behaviour"
        "A trimmed request is answered TRIMMED, or TRIMMED_LASTHOP where the last switch trimmed it";
    PDS_TRIM_002 "PDS-TRIM-002" Must "3.5.15" 2 "behaviour"
        "A trimmed packet is not delivered, and changes no receive state";
    PDS_TRIM_003 "PDS-TRIM-003" Should "3.5.15" 2 "behaviour"
        "A trimmed RUDI request is answered by a NACK with nt = 1";
    PDS_TRIM_004 "PDS-TRIM-004" Should "3.5.15" 2 "behaviour"
        "A trimmed packet opens no context";
    PDS_TRIM_005 "PDS-TRIM-005" Should "3.5.15" 2 "behaviour"
        "A trimmed ACK, NACK or control packet is dropped";

    PDS_CTL_001 "PDS-CTL-001" Must "3.5.10" 2 "behaviour"
        "NOOP, NEGOTIATION, CLOSE_COMMAND and CLOSE_REQUEST take a PSN of their direction; the other control packets take none";
    PDS_CTL_002 "PDS-CTL-002" Should "3.5.10" 2 "behaviour"
        "A control packet that takes no PSN finds its context by dpdcid, and opens none";
    PDS_ASK_001 "PDS-ASK-001" Must "3.5.12" 2 "behaviour"
        "ACK_REQUEST for a PSN that was not received is answered PKT_NOT_RCVD";
    PDS_ASK_002 "PDS-ASK-002" Must "3.5.12" 2 "behaviour"
        "ACK_REQUEST for a PSN at or below CACK_PSN is answered by an ACK with the default response";
    PDS_ASK_003 "PDS-ASK-003" Must "3.5.12" 2 "behaviour"
        "ACK_REQUEST for a PSN whose response is there is answered by an ACK with that response";
    PDS_ASK_004 "PDS-ASK-004" Should "3.5.12" 2 "behaviour"
        "ACK_REQUEST for a PSN whose response is not ready is answered RCVD_SES_PROCG";
    PDS_ASK_005 "PDS-ASK-005" Must "3.5.12" 2 "behaviour"
        "ACK_REQUEST for read data that is no longer held is answered ACK_WITH_DATA";
    PDS_PRB_001 "PDS-PRB-001" Should "3.5.12" 2 "behaviour"
        "A PROBE is answered by an ACK with p = 1, its probe_opaque, and a bitmap at or near the PSN that it asks for";
    PDS_PRB_002 "PDS-PRB-002" Must "3.5.12" 2 "behaviour"
        "The cack_psn of an ACK that answers a PROBE is not acted upon";
    PDS_PRB_003 "PDS-PRB-003" Should "3.5.12" 2 "behaviour"
        "No PROBE leaves before the first ACK or NACK of its context";
    PDS_PRB_004 "PDS-PRB-004" Should "3.5.12" 2 "behaviour"
        "A PROBE goes in the traffic class of control packets";

    PDS_SEC_001 "PDS-SEC-001" Must "3.7" 2 "behaviour"
        "A retransmission of a secured packet takes a new counter";
    PDS_SEC_002 "PDS-SEC-002" Should "3.7" 2 "behaviour"
        "A secured target that does not accept a Start_PSN answers NEW_START_PSN with the new one in the payload";
    PDS_SEC_003 "PDS-SEC-003" Should "3.7" 2 "behaviour"
        "The target keeps the pending context for New_PDC_Time";
    PDS_SEC_004 "PDS-SEC-004" Should "3.7" 2 "behaviour"
        "A target without security never sends NEW_START_PSN";

    PDS_CLOSE_001 "PDS-CLOSE-001" Must "3.5.8" 2 "behaviour"
        "An initiator closes only when every request is acknowledged and no read data is outstanding";
    PDS_CLOSE_002 "PDS-CLOSE-002" Must "3.5.8" 2 "behaviour"
        "CLOSE_COMMAND takes a new PSN and asks for an ACK";
    PDS_CLOSE_003 "PDS-CLOSE-003" Must "3.5.8" 2 "behaviour"
        "A context is not closed in the middle of a message, nor while SES holds it";
    PDS_CLOSE_004 "PDS-CLOSE-004" Must "3.5.8" 2 "behaviour"
        "CLOSE_COMMAND is acknowledged, clears all stored responses and frees the context";
    PDS_CLOSE_005 "PDS-CLOSE-005" Must "3.5.8" 2 "behaviour"
        "A target with return data that is not acknowledged answers CLOSE_COMMAND by CLOSING_IN_ERR";
    PDS_CLOSE_006 "PDS-CLOSE-006" Should "3.5.8" 2 "behaviour"
        "A target that wants a context closed sends CLOSE_REQUEST, or REQ_CLOSE in an ACK";
    PDS_CLOSE_007 "PDS-CLOSE-007" Must "3.5.8" 1 "behaviour"
        "A CLOSE_REQUEST that is not acknowledged is no reason to refuse CLOSE_COMMAND";
    PDS_CLOSE_008 "PDS-CLOSE-008" Should "3.5.8" 2 "behaviour"
        "Without CLOSE_COMMAND within Close_REQ_Time the target closes in error and sends CLOSING_IN_ERR";
    PDS_CLOSE_009 "PDS-CLOSE-009" Must "3.5.8" 2 "behaviour"
        "Late packets of a closed context open nothing and are not delivered";
    PDS_CLOSE_010 "PDS-CLOSE-010" Must "3.5.8" 2 "behaviour"
        "A CLOSE_COMMAND that comes again is acknowledged again";
    PDS_CLOSE_011 "PDS-CLOSE-011" Must "3.5.8" 2 "behaviour"
        "A packet with syn and a Start_PSN 2^16 or more away from a closed context opens a new one";
    PDS_CLOSE_012 "PDS-CLOSE-012" Must "3.5.8" 2 "behaviour"
        "With Limit_PSN_Range a context is closed before a direction has used 2^31 PSNs";
    PDS_CLOSE_013 "PDS-CLOSE-013" Should "3.5.8" 2 "behaviour"
        "An initiator that is asked by CLOSE_REQUEST or REQ_CLOSE closes";
}
