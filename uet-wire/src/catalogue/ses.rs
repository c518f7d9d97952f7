//! Semantics over several packets: `SES-`. `uet-model` implements these requirements. `WIRE-SES-` and `WIRE-AMO-` cover
//! single packets.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    SES_ADDR_001 "SES-ADDR-001" Must "3.4.1" 2 "behaviour"
        "With absolute addressing pid_on_fep alone selects the process; with relative addressing job_id and pid_on_fep do";
    SES_ADDR_002 "SES-ADDR-002" Must "3.4.1" 2 "behaviour"
        "Within the process, resource_index selects the receive queue of sends, the queue of tagged sends, or the table of memory regions";
    SES_ADDR_003 "SES-ADDR-003" Must "3.4.1" 1 "behaviour"
        "An endpoint owns as many indices as it asked for, from its start index on, and no other";
    SES_ADDR_004 "SES-ADDR-004" Should "3.4.1" 2 "behaviour"
        "A request that names a job which is not there is answered BAD_JOB_ID";
    SES_ADDR_005 "SES-ADDR-005" Should "3.4.1" 2 "behaviour"
        "A request that names a process which is not there is answered BAD_PID";
    SES_ADDR_006 "SES-ADDR-006" Should "3.4.1" 1 "behaviour"
        "A request for an index outside every endpoint's range is answered BAD_INDEX";
    SES_ADDR_007 "SES-ADDR-007" Must "3.4.1" 2 "behaviour"
        "A request whose job, process, index or region is not there changes no memory and fills no buffer";

    SES_GEN_001 "SES-GEN-001" Must "3.4.1" 2 "behaviour"
        "A send whose generation is not that of its index is refused";
    SES_GEN_002 "SES-GEN-002" Should "3.4.1" 1 "behaviour"
        "A generation that is not current is answered BAD_GENERATION, with the current one in ri_generation";
    SES_GEN_003 "SES-GEN-003" Should "3.4.1" 1 "behaviour"
        "Where no generation is configured it is 0";
    SES_IDX_001 "SES-IDX-001" Should "3.4.1" 1 "behaviour"
        "A disabled index answers DISABLED, also where nothing would match";
    SES_IDX_002 "SES-IDX-002" Should "3.4.1" 1 "behaviour"
        "An ordered index that has run out of buffers answers DISABLED_GEN until its generation is raised";

    SES_MEM_001 "SES-MEM-001" Must "3.4.1" 2 "behaviour"
        "The memory key selects the region, in the table of the index";
    SES_MEM_002 "SES-MEM-002" Should "3.4.1" 1 "behaviour"
        "Of an optimised key bits 11 to 0 name the region; reserved bits of a key are ignored";
    SES_MEM_003 "SES-MEM-003" Must "3.4.1" 2 "behaviour"
        "A region is neither read nor changed in a way that it does not permit";
    SES_MEM_004 "SES-MEM-004" Must "3.4.1" 2 "behaviour"
        "An access that does not lie inside its region touches nothing, neither inside nor outside";
    SES_MEM_005 "SES-MEM-005" Should "3.4.1" 2 "behaviour"
        "A key that selects no region is answered BAD_MKEY, an access that is not permitted PERM_VIOLATION or AT_PERM";

    SES_CUT_001 "SES-CUT-001" Must "3.4.2" 2 "behaviour"
        "Packet k of a message starts at offset k times the payload MTU";
    SES_CUT_002 "SES-CUT-002" Must "3.4.2" 2 "behaviour"
        "The first packet of a message has som = 1, the last eom = 1, and no other has either";
    SES_CUT_003 "SES-CUT-003" Must "3.4.2" 2 "behaviour"
        "All packets of a message have its message_id and its request_length";
    SES_CUT_004 "SES-CUT-004" Must "3.4.2" 2 "behaviour"
        "A message of no bytes is one packet without payload, and completes like any other";
    SES_CUT_005 "SES-CUT-005" Must "3.4.2" 2 "behaviour"
        "The first packet carries header_data; the others carry payload_length and message_offset in its place";
    SES_CUT_006 "SES-CUT-006" Must "3.4.2" 2 "behaviour"
        "The buffer_offset is that of the message, the same in all its packets";
    SES_ORDER_001 "SES-ORDER-001" Should "3.5.8" 1 "behaviour"
        "A message leaves whole on its context before the next one starts";

    SES_PLACE_001 "SES-PLACE-001" Must "3.4.1" 2 "behaviour"
        "Data goes to the base of the region plus buffer_offset plus message_offset";
    SES_PLACE_002 "SES-PLACE-002" Should "3.4.1" 2 "behaviour"
        "Packets that arrive out of order are placed directly: none waits for another";
    SES_PLACE_003 "SES-PLACE-003" Must "3.4.1" 2 "behaviour"
        "Whatever the order in which the packets of a message arrive, memory is in the end what was sent";

    SES_RESP_001 "SES-RESP-001" Must "3.5.4" 2 "behaviour"
        "Each request that packet delivery hands over gets exactly one response";
    SES_RESP_002 "SES-RESP-002" Should "3.5.17" 2 "behaviour"
        "A plain success is the default response: list EXPECTED, OK, without guaranteed delivery";
    SES_RESP_003 "SES-RESP-003" Should "3.4.2" 2 "worked-examples"
        "A response repeats the message_id and the job_id of its request";
    SES_RESP_004 "SES-RESP-004" Must "3.4.2" 2 "behaviour"
        "The response that ends a message says in modified_length how many bytes were accepted, when that is not all";
    SES_RESP_005 "SES-RESP-005" Must "3.4.2" 2 "behaviour"
        "With dc = 1 the last packet of a message is answered when all data of the message is visible";
    SES_RESP_006 "SES-RESP-006" Must "3.5.17" 1 "behaviour"
        "In a default response with OK, a modified_length of 0 stands for the whole length";
    SES_RESP_007 "SES-RESP-007" Must "3.5.17" 1 "behaviour"
        "The return code NULL proves that a packet arrived, not that its request succeeded";
    SES_DONE_001 "SES-DONE-001" Must "3.4.1" 2 "behaviour"
        "An operation completes once, not before all its packets are answered and all data it asked for has come";
    SES_DONE_002 "SES-DONE-002" Must "3.4.1" 2 "behaviour"
        "A message completes once at its target, not before all of it is there";

    SES_MATCH_001 "SES-MATCH-001" Must "3.4.1" 2 "behaviour"
        "A tagged send matches a receive by the match bits that the receive's mask does not ignore";
    SES_MATCH_002 "SES-MATCH-002" Must "3.4.1" 2 "behaviour"
        "A tagged send matches a receive only if its initiator does";
    SES_MATCH_003 "SES-MATCH-003" Must "3.4.3.3" 2 "behaviour"
        "A send without match goes to the overflow list when there is room, and its response says list OVERFLOW";
    SES_MATCH_004 "SES-MATCH-004" Must "3.4.3.3" 2 "behaviour"
        "A send without match for which there is no room is answered NO_MATCH";
    SES_MATCH_005 "SES-MATCH-005" Must "3.4.1" 1 "behaviour"
        "A send longer than its buffer is cut to fit, and the response says how many bytes were placed, or it is refused with TOO_LONG";
    SES_MATCH_006 "SES-MATCH-006" Must "3.4.1" 2 "behaviour"
        "A receive gets the bytes of one message, and no other message gets that receive";
    SES_MATCH_007 "SES-MATCH-007" Must "3.4.3.3" 1 "behaviour"
        "A message on the overflow list gives its room back when it ends, in an error too";

    SES_GTD_001 "SES-GTD-001" Must "3.4.3.3" 2 "behaviour"
        "An error has guaranteed delivery";
    SES_GTD_002 "SES-GTD-002" Must "3.4.3.3" 2 "behaviour"
        "The response to a send on the overflow list has guaranteed delivery";
    SES_GTD_003 "SES-GTD-003" Must "3.4.3.3" 2 "behaviour"
        "The result of a fetching atomic has guaranteed delivery, and is kept until it has arrived";
    SES_GTD_004 "SES-GTD-004" May "3.4.3.3" 1 "behaviour"
        "Read data that rides in an ACK has guaranteed delivery, but need not be kept: a duplicate may read again";

    SES_ERR_001 "SES-ERR-001" Should "3.4.2" 2 "behaviour"
        "An error has modified_length 0 where nothing has been placed";
    SES_ERR_002 "SES-ERR-002" Should "3.4.2" 2 "behaviour"
        "An opcode that is not known is answered UNSUPPORTED_OP";
    SES_ERR_003 "SES-ERR-003" Must "3.4.2" 1 "behaviour"
        "A source that gets an error finishes the message with it";
    SES_ERR_004 "SES-ERR-004" Must "3.4.2" 1 "behaviour"
        "After an error the rest of the message is discarded, and answered with the same code";
    SES_ERR_005 "SES-ERR-005" Must "3.4.2" 2 "behaviour"
        "A packet with ie = 1 ends its message, and touches no memory";
    SES_ERR_006 "SES-ERR-006" Should "3.4.2" 1 "behaviour"
        "A packet with ie = 1 is answered INITIATOR_ERR, or with the error that its message already has";
    SES_ERR_007 "SES-ERR-007" Must "3.4.2" 1 "behaviour"
        "UET_MSG_ERROR ends a message that will not be completed, with eom = 1 and som = 0, and message_offset where the data stops";

    SES_MODE_001 "SES-MODE-001" Should "3.5.7" 2 "behaviour"
        "A request that came by UUD is never answered";
    SES_MODE_002 "SES-MODE-002" Must "3.5.7" 1 "behaviour"
        "RUDI reaches only regions that are marked as safe to repeat operations on; others answer OP_VIOLATION";
    SES_MODE_003 "SES-MODE-003" Must "3.5.7" 2 "behaviour"
        "A request by RUDI may arrive more than once, and is answered each time";

    SES_READ_001 "SES-READ-001" Must "3.4.4.2" 2 "behaviour"
        "A read packet with som = 1 asks for its request_length, up to the MTU; one with som = 0 for payload_length at message_offset";
    SES_READ_002 "SES-READ-002" Must "3.4.4.2" 2 "behaviour"
        "A read is a request packet for each MTU of data wanted, all with the same message id and without payload";
    SES_READ_003 "SES-READ-003" Must "3.5.12.1" 2 "behaviour"
        "More data than Max_ACK_Data_Size goes on the return direction, and the request itself is acknowledged without data";
    SES_READ_004 "SES-READ-004" Must "3.5.12.1" 1 "behaviour"
        "All data of a read goes by one way, also where its last packet would have fitted an ACK";
    SES_READ_005 "SES-READ-005" Must "3.4.4.2" 2 "behaviour"
        "Data of a read with a standard header names it by read_request_message_id";
    SES_READ_006 "SES-READ-006" Must "3.4.4.2" 2 "behaviour"
        "Data of a read with a small or medium header names it by original_request_psn";
    SES_READ_007 "SES-READ-007" Must "3.4.4.2" 1 "behaviour"
        "In read data, modified_length is the length of the whole read";
    SES_READ_008 "SES-READ-008" Must "3.5.7" 1 "behaviour"
        "By RUDI read data rides in the response, up to an MTU, whatever Max_ACK_Data_Size";
    SES_READ_009 "SES-READ-009" Must "3.5.8" 1 "behaviour"
        "A context is kept open while read data is outstanding on it";
    SES_READ_010 "SES-READ-010" Should "3.4.4.2" 1 "behaviour"
        "Data on the return direction has a message id of the target's own, the same for all data of the read";

    SES_AMO_001 "SES-AMO-001" Must "3.4.2" 2 "behaviour"
        "An atomic changes each of its elements at once, in the arithmetic of its datatype";
    SES_AMO_002 "SES-AMO-002" Should "3.4.2" 2 "behaviour"
        "An atomic operation that is not supported is answered AMO_UNSUPPORTED_OP, and changes nothing";
    SES_AMO_003 "SES-AMO-003" Should "3.4.2" 2 "behaviour"
        "An atomic datatype that is not supported is answered AMO_UNSUPPORTED_DT, and changes nothing";
    SES_AMO_004 "SES-AMO-004" Should "3.4.2" 2 "behaviour"
        "An atomic size that is not supported is answered AMO_UNSUPPORTED_SIZE, and changes nothing";
    SES_AMO_005 "SES-AMO-005" Should "3.4.2" 2 "behaviour"
        "An atomic on an address that is not aligned is answered AMO_UNALIGNED, and changes nothing";
    SES_AMO_006 "SES-AMO-006" Should "3.4.2" 1 "behaviour"
        "An atomic of several packets is answered OP_VIOLATION";
    SES_AMO_007 "SES-AMO-007" Must "3.4.2" 2 "behaviour"
        "A fetching atomic gives back what was in memory before it";
    SES_AMO_008 "SES-AMO-008" Must "3.4.2" 2 "behaviour"
        "A compare and swap stores swap_value exactly when the comparison of compare_value with memory holds";
    SES_AMO_009 "SES-AMO-009" Must "3.4.2" 1 "behaviour"
        "The operands of a compare and swap are big-endian, right-aligned in their 128 bits";
    SES_AMO_010 "SES-AMO-010" Must "3.4.2" 2 "behaviour"
        "An atomic acts once, however often its packet arrives";
    SES_AMO_011 "SES-AMO-011" Must "3.4.2" 1 "wire-format"
        "An atomic by tag acts on the buffer that its tag selects";

    SES_RNDV_001 "SES-RNDV-001" Must "3.4.2" 2 "behaviour"
        "Of a rendezvous send eager_length bytes come with the request";
    SES_RNDV_002 "SES-RNDV-002" Must "3.4.2" 2 "behaviour"
        "The target of a rendezvous send reads the rest from the place that the extension names";
    SES_RNDV_003 "SES-RNDV-003" Must "3.4.2" 2 "behaviour"
        "A rendezvous send completes at its target when the rest has been read";

    SES_DEFER_001 "SES-DEFER-001" Must "3.4.2" 2 "behaviour"
        "The first attempt of a deferrable send has a token of the initiator's, and 0 for the target's";
    SES_DEFER_002 "SES-DEFER-002" Must "3.4.2" 1 "behaviour"
        "A target puts a deferrable send off by UET_RESPONSE with OK and modified_length 0";
    SES_DEFER_003 "SES-DEFER-003" Must "3.4.2" 2 "behaviour"
        "When it wants the send, the target sends DEFERRABLE_RTR with both tokens, on a context that it opens";
    SES_DEFER_004 "SES-DEFER-004" Must "3.4.2" 2 "behaviour"
        "After DEFERRABLE_RTR the initiator sends the message again, as a new message with both tokens";
    SES_DEFER_005 "SES-DEFER-005" Must "3.4.2" 1 "behaviour"
        "A deferrable send with both tokens goes to the buffer for which it was wanted";
}
