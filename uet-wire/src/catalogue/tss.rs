//! Transport security: `TSS-`. `uet-conformance` tests it.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    TSS_KEY_001 "TSS-KEY-001" Must "3.7.8.4" 2 "security"
        "The key of a packet follows from the secret of its domain by SP 800-108 with CMAC, from label, epoch, rekey index and identity";
    TSS_KEY_002 "TSS-KEY-002" Must "3.7.8" 1 "security"
        "In a client-server domain, both directions use the key of the client";
    TSS_KEY_003 "TSS-KEY-003" Must "3.7.8" 2 "security"
        "A receiver takes epoch and rekey index from the header of each packet, in whatever order they come";
    TSS_IV_001 "TSS-IV-001" Must "3.7.8" 2 "security"
        "The IV is the source identifier or address, the epoch and the counter, combined with the IV mask";
    TSS_AAD_001 "TSS-AAD-001" Must "3.7.11" 1 "security"
        "The authenticated data goes from the IP source address to the confidentiality offset, with a UDP checksum of 0";
    TSS_HDR_001 "TSS-HDR-001" Must "3.7.11" 3 "security"
        "A secured packet has the security header of its domain: number, association number, and a source identifier exactly if the domain uses them";
    TSS_HDR_002 "TSS-HDR-002" Should "3.7.11" 1 "security"
        "A receiver ignores the reserved bit of the security header, which is authenticated as it came";
    TSS_HDR_003 "TSS-HDR-003" Should "3.7.11" 1 "security"
        "A sender sets the reserved bit of the security header to 0";
    TSS_HDR_004 "TSS-HDR-004" Should "3.7.11" 1 "security"
        "A receiver drops a packet without a source identifier in a domain that uses them";
    TSS_LEN_001 "TSS-LEN-001" Must "3.7" 1 "security"
        "Protection leaves the payload MTU and all lengths in the headers as they are";
    TSS_ICV_001 "TSS-ICV-001" Must "3.7" 2 "security"
        "The last 16 bytes of a secured packet are its ICV, and no CRC follows";
    TSS_ICV_002 "TSS-ICV-002" Must "3.7" 2 "security"
        "A packet that is not authentic changes nothing: no memory, no context, no acknowledgment, no window";
    TSS_ICV_003 "TSS-ICV-003" Should "3.7" 1 "security"
        "A packet that is not authentic gets no answer";
    TSS_CTR_001 "TSS-CTR-001" Must "3.7.8" 2 "security"
        "No counter is used twice under one key and epoch, by retransmissions neither";
    TSS_CTR_002 "TSS-CTR-002" Must "3.7.8" 1 "security"
        "Nothing is sent when the counter has reached its limit";
    TSS_SDI_001 "TSS-SDI-001" Should "3.7" 2 "security"
        "A packet of an unknown domain is dropped without an answer";
    TSS_AN_001 "TSS-AN-001" Must "3.7" 2 "security"
        "A receiver accepts packets under either key that is installed";
    TSS_AN_002 "TSS-AN-002" Must "3.7" 2 "security"
        "A sender uses the key of the current association number, for retransmissions too";
    TSS_AN_003 "TSS-AN-003" Must "3.7" 1 "security"
        "A receiver drops packets under a key that was removed";
    TSS_EPOCH_001 "TSS-EPOCH-001" Must "3.7" 1 "security"
        "A receiver drops packets whose epoch is older than the lifetime permits, by serial arithmetic";
    TSS_EPOCH_002 "TSS-EPOCH-002" Must "3.7" 1 "security"
        "A sender uses the current epoch of its key";
    TSS_CLEAR_001 "TSS-CLEAR-001" Must "3.7" 1 "security"
        "A packet in the clear has no effect and gets no answer where protection is required";
    TSS_CLEAR_002 "TSS-CLEAR-002" Must "3.7" 1 "security"
        "A secured context accepts and sends nothing in the clear";
    TSS_BIND_001 "TSS-BIND-001" Should "3.5.4" 1 "security"
        "An authentic packet of another domain or source than the one that opened a context does not reach the context";
    TSS_START_001 "TSS-START-001" Must "3.5.8" 1 "security"
        "A copy of an opening packet that comes after the context has closed executes nothing";
    TSS_START_002 "TSS-START-002" Must "3.5.8" 2 "security"
        "NACK NEW_START_PSN names the PSN of the refused request, no context of the target, and the required Start_PSN";
    TSS_START_003 "TSS-START-003" Must "3.5.8" 2 "security"
        "An initiator renumbers all packets from the Start_PSN of an authentic NACK NEW_START_PSN, and keeps their offsets";
    TSS_START_004 "TSS-START-004" Must "3.5.8" 1 "security"
        "A request that gets NACK NEW_START_PSN executes nothing until it comes with the required Start_PSN";
    TSS_START_005 "TSS-START-005" Must "3.5.8" 1 "security"
        "An initiator ignores NACK NEW_START_PSN after the first ACK of the context";
    TSS_START_006 "TSS-START-006" Should "3.5.8" 1 "security"
        "While a context is pending, each refusal of its requests names the same Start_PSN";
    TSS_START_007 "TSS-START-007" Should "3.5.8" 1 "security"
        "A Start_PSN that the ACK of CLOSE_COMMAND tells opens the next context at once";
    TSS_START_008 "TSS-START-008" Should "3.5.8" 1 "security"
        "A packet with a new PSN after NEW_START_PSN is no retransmission: retx is 0";
    TSS_START_009 "TSS-START-009" Should "3.5.8" 1 "security"
        "The Start_PSN that the ACK of CLOSE_COMMAND tells never lowers the one that its initiator knows";
    TSS_TRIM_001 "TSS-TRIM-001" Must "3.7" 1 "security"
        "A trimmed secured packet is no receipt: it changes no memory, no window and no credit";
}
