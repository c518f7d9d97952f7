//! Semantics over several packets: `SES-`. `uet-model` implements these requirements. `WIRE-SES-` and `WIRE-AMO-` cover
//! single packets.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    SES_ADDR_001 "SES-ADDR-001" Must "3.4.1" 2 "behaviour"
        "With absolute addressing, pid_on_fep alone selects the process; with relative addressing, job_id and pid_on_fep do";
    SES_ADDR_002 "SES-ADDR-002" Must "3.4.1" 2 "behaviour"
        "resource_index selects the process's receive queue, tagged queue or table of memory regions, according to the operation";
    SES_ADDR_003 "SES-ADDR-003" Must "3.4.1" 1 "behaviour"
        "An endpoint owns the indices that it asked for, from its start index on, and no other";
    SES_ADDR_004 "SES-ADDR-004" Should "3.4.1" 2 "behaviour"
        "A target answers BAD_JOB_ID to a request that names an unknown job";
    SES_ADDR_005 "SES-ADDR-005" Should "3.4.1" 2 "behaviour"
        "A target answers BAD_PID to a request that names an unknown process";
    SES_ADDR_006 "SES-ADDR-006" Should "3.4.1" 1 "behaviour"
        "A target answers BAD_INDEX to a request for an index outside every endpoint's range";
    SES_ADDR_007 "SES-ADDR-007" Must "3.4.1" 2 "behaviour"
        "A request for an unknown job, process, index or region changes no memory and fills no buffer";

    SES_GEN_001 "SES-GEN-001" Must "3.4.1" 2 "behaviour"
        "A target refuses a send whose generation differs from that of its index";
    SES_GEN_002 "SES-GEN-002" Should "3.4.6.3.2" 2 "behaviour"
        "A target answers BAD_GENERATION to a generation that is not current, with the current one in ri_generation";
    SES_GEN_003 "SES-GEN-003" Should "3.4.6.3.2" 2 "behaviour"
        "The generation is 0 unless another one is configured";
    SES_IDX_001 "SES-IDX-001" Should "3.4.1" 2 "behaviour"
        "A disabled index answers DISABLED, even if no receive would match";
    SES_IDX_002 "SES-IDX-002" Should "3.4.1" 2 "behaviour"
        "On an ordered context, an index without buffers answers DISABLED_GEN until its generation is raised";

    SES_MEM_001 "SES-MEM-001" Must "3.4.1" 2 "behaviour"
        "The memory key selects the region in the table of the index";
    SES_MEM_002 "SES-MEM-002" Should "3.4.1" 1 "behaviour"
        "Bits 11 to 0 of an optimized key name the region; a target ignores the reserved bits of a key";
    SES_MEM_003 "SES-MEM-003" Must "3.4.1" 2 "behaviour"
        "A target neither reads nor changes a region in a way that the region does not permit";
    SES_MEM_004 "SES-MEM-004" Must "3.4.1" 2 "behaviour"
        "An access that is not entirely inside its region touches no memory, inside or outside";
    SES_MEM_005 "SES-MEM-005" Should "3.4.1" 2 "behaviour"
        "An unknown key gets BAD_MKEY, and a forbidden access OP_VIOLATION, PERM_VIOLATION or AT_PERM";

    SES_CUT_001 "SES-CUT-001" Must "3.4.2" 2 "behaviour"
        "Packet k of a message carries the data at offset k times the payload MTU";
    SES_CUT_002 "SES-CUT-002" Must "3.4.2" 2 "behaviour"
        "The first packet of a message has som = 1, the last has eom = 1, and the others have neither";
    SES_CUT_003 "SES-CUT-003" Must "3.4.2" 2 "behaviour"
        "All packets of a message carry its message_id and request_length";
    SES_CUT_004 "SES-CUT-004" Must "3.4.2" 2 "behaviour"
        "An empty message is one packet without payload, and completes like any other";
    SES_CUT_005 "SES-CUT-005" Must "3.4.2" 2 "behaviour"
        "The first packet of a message carries header_data; the others carry payload_length and message_offset instead";
    SES_CUT_006 "SES-CUT-006" Must "3.4.2" 2 "behaviour"
        "All packets of a message carry the buffer_offset of the message";
    SES_CUT_007 "SES-CUT-007" Should "3.4.5.3.2" 2 "behaviour"
        "A request with a standard header has a message_id other than 0, except a datagram";
    SES_ORDER_001 "SES-ORDER-001" Should "3.5.8" 1 "behaviour"
        "A source sends a message completely on its context before it begins the next one";

    SES_PLACE_001 "SES-PLACE-001" Must "3.4.1" 2 "behaviour"
        "A target places data at the base of the region plus buffer_offset plus message_offset";
    SES_PLACE_002 "SES-PLACE-002" Should "3.4.1" 2 "behaviour"
        "A target places packets that arrive out of order directly, without waiting for others";
    SES_PLACE_003 "SES-PLACE-003" Must "3.4.1" 2 "behaviour"
        "Memory finally holds the bytes sent, in whatever order the packets of a message arrive";

    SES_RESP_001 "SES-RESP-001" Must "3.5.4" 2 "behaviour"
        "A target makes exactly one response to each request that packet delivery hands over";
    SES_RESP_002 "SES-RESP-002" Should "3.5.17" 2 "behaviour"
        "The response to a plain success is the default one: list EXPECTED, OK, without guaranteed delivery";
    SES_RESP_003 "SES-RESP-003" Should "3.4.2" 2 "worked-examples"
        "A response repeats message_id and job_id of its request";
    SES_RESP_004 "SES-RESP-004" Must "3.4.2" 2 "behaviour"
        "If a target accepts only part of a message, modified_length of the final response is the number of bytes accepted";
    SES_RESP_005 "SES-RESP-005" Must "3.4.8.3" 2 "behaviour"
        "With dc = 1, a target answers the last packet of a message only after all data of the message is visible";
    SES_RESP_006 "SES-RESP-006" Must "3.5.17" 1 "behaviour"
        "In a default response with OK, modified_length 0 stands for the whole length";
    SES_RESP_007 "SES-RESP-007" Must "3.5.17" 1 "behaviour"
        "The return code NULL proves that a packet arrived, not that its request succeeded";
    SES_DONE_001 "SES-DONE-001" Must "3.4.1" 2 "behaviour"
        "An operation completes once, after all its packets are answered and all its requested data has arrived";
    SES_DONE_002 "SES-DONE-002" Must "3.4.1" 2 "behaviour"
        "A message completes once at its target, after all of it has arrived";

    SES_MATCH_001 "SES-MATCH-001" Must "3.4.1" 2 "behaviour"
        "A tagged send matches a receive if the match bits that the receive's mask does not ignore are equal";
    SES_MATCH_002 "SES-MATCH-002" Must "3.4.1" 2 "behaviour"
        "A tagged send matches a receive only if the initiator also matches";
    SES_MATCH_003 "SES-MATCH-003" Must "3.4.3.3" 2 "behaviour"
        "A target puts an unmatched send on the overflow list if there is room, and its response says list OVERFLOW";
    SES_MATCH_004 "SES-MATCH-004" Must "3.4.3.3" 2 "behaviour"
        "A target answers NO_MATCH to an unmatched send for which it has no room";
    SES_MATCH_005 "SES-MATCH-005" Must "3.4.1" 1 "behaviour"
        "A target truncates a send that exceeds its buffer and reports the bytes placed, or refuses it with TOO_LONG";
    SES_MATCH_006 "SES-MATCH-006" Must "3.4.1" 2 "behaviour"
        "A receive takes the bytes of one message, and no other message takes that receive";
    SES_MATCH_007 "SES-MATCH-007" Must "3.4.3.3" 1 "behaviour"
        "A message on the overflow list gives its room back when it ends, in an error too";

    SES_GTD_001 "SES-GTD-001" Must "3.4.3.3" 2 "behaviour"
        "An error response has guaranteed delivery";
    SES_GTD_002 "SES-GTD-002" Must "3.4.3.3" 2 "behaviour"
        "The response to a send on the overflow list has guaranteed delivery";
    SES_GTD_003 "SES-GTD-003" Must "3.4.3.3" 2 "behaviour"
        "The result of a fetching atomic has guaranteed delivery: the target keeps it until it has arrived";
    SES_GTD_004 "SES-GTD-004" May "3.4.3.3" 1 "behaviour"
        "Read data in an ACK has guaranteed delivery, but the target need not keep it: a duplicate may read again";

    SES_ERR_001 "SES-ERR-001" Should "3.4.2" 2 "behaviour"
        "An error response has modified_length 0 if no data has been placed";
    SES_ERR_002 "SES-ERR-002" Should "3.4.2" 2 "behaviour"
        "A target answers UNSUPPORTED_OP to an unknown opcode";
    SES_ERR_003 "SES-ERR-003" Must "3.4.2" 1 "behaviour"
        "A source that receives an error ends the message with this error";
    SES_ERR_004 "SES-ERR-004" Must "3.4.2" 1 "behaviour"
        "After an error, a target discards the rest of the message and answers it with the same code";
    SES_ERR_005 "SES-ERR-005" Must "3.4.2" 2 "behaviour"
        "A packet with ie = 1 ends its message and touches no memory";
    SES_ERR_006 "SES-ERR-006" Should "3.4.2" 2 "behaviour"
        "A target answers a packet with ie = 1 with INITIATOR_ERR, or with an earlier error of its message";
    SES_ERR_007 "SES-ERR-007" Must "3.4.2" 1 "behaviour"
        "UET_MSG_ERROR ends an incomplete message, with som = 0, eom = 1, and the end of its data in message_offset";

    SES_MODE_001 "SES-MODE-001" Should "3.5.7" 2 "behaviour"
        "A target never answers a request that arrived by UUD";
    SES_MODE_002 "SES-MODE-002" Must "3.5.7" 1 "behaviour"
        "RUDI reaches only regions marked as idempotent-safe; a target answers OP_VIOLATION for others";
    SES_MODE_003 "SES-MODE-003" Must "3.5.7" 2 "behaviour"
        "A target answers a RUDI request each time it arrives";

    SES_READ_001 "SES-READ-001" Must "3.4.4.2" 2 "behaviour"
        "A read packet with som = 1 asks for request_length bytes, up to the MTU; others ask for payload_length bytes at message_offset";
    SES_READ_002 "SES-READ-002" Must "3.4.4.2" 2 "behaviour"
        "A read consists of one request packet per MTU of data, with equal message_id and without payload";
    SES_READ_003 "SES-READ-003" Must "3.5.12.1" 2 "behaviour"
        "A target sends more data than Max_ACK_Data_Size on the return direction, and acknowledges the request without data";
    SES_READ_004 "SES-READ-004" Must "3.5.12.1" 1 "behaviour"
        "A target sends all data of a read the same way, even if the last part would fit into an ACK";
    SES_READ_005 "SES-READ-005" Must "3.4.4.2" 2 "behaviour"
        "Data of a read with a standard header names the read by read_request_message_id";
    SES_READ_006 "SES-READ-006" Must "3.4.4.2" 2 "behaviour"
        "Data of a read with a small or medium header names the read by original_request_psn";
    SES_READ_007 "SES-READ-007" Must "3.4.4.2" 1 "behaviour"
        "In read data, modified_length is the length of the whole read";
    SES_READ_008 "SES-READ-008" Must "3.5.7" 1 "behaviour"
        "With RUDI, read data is in the response, up to an MTU, whatever Max_ACK_Data_Size is";
    SES_READ_009 "SES-READ-009" Must "3.5.8" 1 "behaviour"
        "An initiator keeps a context open while read data is outstanding on it";
    SES_READ_010 "SES-READ-010" May "3.5.20.2.5" 2 "behaviour"
        "A target may choose a message_id of its own for read data on the return direction";

    SES_AMO_001 "SES-AMO-001" Must "3.4.2" 2 "behaviour"
        "An atomic changes each of its elements in one step, with the arithmetic of its datatype";
    SES_AMO_002 "SES-AMO-002" Should "3.4.2" 2 "behaviour"
        "A target answers AMO_UNSUPPORTED_OP to an unsupported atomic operation, and changes no memory";
    SES_AMO_003 "SES-AMO-003" Should "3.4.2" 2 "behaviour"
        "A target answers AMO_UNSUPPORTED_DT to an unsupported atomic datatype, and changes no memory";
    SES_AMO_004 "SES-AMO-004" Should "3.4.2" 2 "behaviour"
        "A target answers AMO_UNSUPPORTED_SIZE to an unsupported atomic size, and changes no memory";
    SES_AMO_005 "SES-AMO-005" Should "3.4.2" 2 "behaviour"
        "A target answers AMO_UNALIGNED to an atomic on an unaligned address, and changes no memory";
    SES_AMO_006 "SES-AMO-006" Should "3.4.2" 1 "behaviour"
        "A target answers OP_VIOLATION to an atomic of several packets";
    SES_AMO_007 "SES-AMO-007" Must "3.4.2" 2 "behaviour"
        "A fetching atomic returns the previous value in memory";
    SES_AMO_008 "SES-AMO-008" Must "3.4.2" 2 "behaviour"
        "A compare and swap stores swap_value exactly if the comparison of compare_value with memory holds";
    SES_AMO_009 "SES-AMO-009" Must "3.4.2" 1 "behaviour"
        "The operands of a compare and swap are big-endian and right-aligned in their 128 bits";
    SES_AMO_010 "SES-AMO-010" Must "3.4.2" 2 "behaviour"
        "An atomic acts once, however often its packet arrives";
    SES_AMO_011 "SES-AMO-011" Must "3.4.2" 1 "wire-format"
        "A tagged atomic acts on the buffer that its tag selects";

    SES_RNDV_001 "SES-RNDV-001" Must "3.4.2" 2 "behaviour"
        "The request of a rendezvous send carries the first eager_length bytes";
    SES_RNDV_002 "SES-RNDV-002" Must "3.4.2" 2 "behaviour"
        "The target of a rendezvous send reads the rest from the place that the extension names";
    SES_RNDV_003 "SES-RNDV-003" Must "3.4.2" 2 "behaviour"
        "A rendezvous send completes at its target after the rest has been read";

    SES_DEFER_001 "SES-DEFER-001" Must "3.4.2" 2 "behaviour"
        "The first attempt of a deferrable send carries the initiator's token, and 0 as the target's";
    SES_DEFER_002 "SES-DEFER-002" Must "3.4.2" 1 "behaviour"
        "A target defers a deferrable send with a UET_RESPONSE that has OK and modified_length 0";
    SES_DEFER_003 "SES-DEFER-003" Must "3.4.1.3.5" 2 "behaviour"
        "To resume the send, the target sends DEFERRABLE_RTR with both tokens, on a context that it opens";
    SES_DEFER_004 "SES-DEFER-004" Must "3.4.1.3.5" 2 "behaviour"
        "After DEFERRABLE_RTR, the initiator sends the message again, as a new message with both tokens";
    SES_DEFER_005 "SES-DEFER-005" Must "3.4.2" 1 "behaviour"
        "A deferrable send with both tokens goes to the buffer for which the target resumed it";
}
