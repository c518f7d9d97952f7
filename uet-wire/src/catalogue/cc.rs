//! Congestion control: `CC-` (contexts, NSCC, paths) and `RCCC-`. `uet-model` implements these requirements.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    CC_RCVD_001 "CC-RCVD-001" Must "3.6.13" 2 "congestion"
        "A destination adds the nominal size of each new packet to rcvd_bytes: the transport's size plus 40 bytes";
    CC_RCVD_002 "CC-RCVD-002" Should "3.6.13" 2 "congestion"
        "A destination adds nothing to rcvd_bytes for a duplicate or trimmed packet";
    CC_RCVD_003 "CC-RCVD-003" Should "3.6.13" 1 "congestion"
        "A source ignores an rcvd_bytes that is serially behind the newest one";
    CC_RCVD_004 "CC-RCVD-004" Must "3.6.13" 2 "congestion"
        "rcvd_bytes counts units of 256 bytes, a partial unit as a whole one, and wraps at 2^24";
    CC_RCVD_005 "CC-RCVD-005" Must "3.6.13" 1 "congestion"
        "rcvd_bytes counts for each context by itself: a source compares it with the last one of the same context";
    CC_SERVICE_001 "CC-SERVICE-001" Should "3.6.13" 2 "congestion"
        "service_time is the time from the arrival of the packet that ack_psn names to its ACK, in units of 128 ns";
    CC_SERVICE_002 "CC-SERVICE-002" Should "3.6.13" 1 "wire-format"
        "A service_time of 0xFFFF stands for 8.38848 ms or more: longer times do not wrap";
    CC_OOO_001 "CC-OOO-001" Should "3.6.13" 1 "wire-format"
        "ooo_count is the number of packets received above a gap at the time of the ACK; 0xFFFF if the destination does not count";
    CC_RTT_001 "CC-RTT-001" Should "3.6.13" 1 "congestion"
        "A source measures a round trip only if it knows which transmission of the packet was acknowledged";

    CC_WINDOW_001 "CC-WINDOW-001" Should "3.6.13" 2 "congestion"
        "A source sends a packet only if it fits into the window together with the bytes in flight";
    CC_WINDOW_002 "CC-WINDOW-002" Should "3.6.13" 2 "congestion"
        "The window is at most 1.5 times the bytes that the link carries in a base round trip";
    CC_WINDOW_003 "CC-WINDOW-003" Must "3.6.13" 2 "congestion"
        "The window never falls below one packet";
    CC_WINDOW_004 "CC-WINDOW-004" Must "3.6.12" 1 "congestion"
        "A context that fails or closes takes its outstanding bytes and packets out of the window";
    CC_WINDOW_005 "CC-WINDOW-005" Should "3.6.12" 1 "congestion"
        "Contexts to another peer or of another traffic class have a window of their own";
    CC_ACKREQ_001 "CC-ACKREQ-001" Should "3.6.13" 1 "congestion"
        "A source sets ar = 1 in a packet that leaves no room in the window for another one";
    CC_ACKREQ_002 "CC-ACKREQ-002" Should "3.6.13" 1 "congestion"
        "A source whose window is smaller than ACK_Gen_Trigger sets ar = 1 in every packet";
    CC_QUAD_001 "CC-QUAD-001" Should "3.6.13" 2 "congestion"
        "Without a mark and with a delay below the target, the window grows, faster with a smaller delay";
    CC_QUAD_002 "CC-QUAD-002" Should "3.6.13" 2 "congestion"
        "Without a mark and with a delay at or above the target, the window grows by the same amount at every source";
    CC_QUAD_003 "CC-QUAD-003" Should "3.6.13" 2 "congestion"
        "With a mark and a delay below the target, the window stays the same";
    CC_QUAD_004 "CC-QUAD-004" Should "3.6.13" 2 "congestion"
        "With a mark and a delay at or above the target, the window shrinks, at most once per base round trip and at most by half";
    CC_QUAD_005 "CC-QUAD-005" Should "3.6.13" 1 "congestion"
        "Each base round trip with acknowledged bytes adds eta to the window, with or without marks";
    CC_NACK_001 "CC-NACK-001" Should "3.6.13" 1 "congestion"
        "A NACK that reports no trim takes its packet out of flight and leaves the window as it is";
    CC_TRIM_001 "CC-TRIM-001" Should "3.6.13" 2 "congestion"
        "A packet trimmed within the fabric shrinks the window";
    CC_TRIM_002 "CC-TRIM-002" May "3.6.13" 1 "congestion"
        "After trims, if little of a window arrived, quick adapt sets the window to the bytes that arrived";
    CC_TRIM_003 "CC-TRIM-003" Should "3.6.14" 1 "congestion"
        "With receiver credit, a trim at the last hop neither shrinks the window nor triggers quick adapt";
    CC_TRIM_004 "CC-TRIM-004" Should "3.6.14" 1 "congestion"
        "Without receiver credit, a trim at the last hop shrinks the window like one within the fabric";
    CC_LOSS_001 "CC-LOSS-001" Should "3.6.13" 1 "congestion"
        "A packet assumed lost shrinks the window";
    CC_PENALTY_001 "CC-PENALTY-001" Should "3.6.13" 2 "congestion"
        "Each ACK with a receiver penalty shrinks the window";
    CC_PENALTY_002 "CC-PENALTY-002" Should "3.6.13" 1 "congestion"
        "At the end of a penalty the destination sets rc = 1, and the source restores its previous window";
    CC_PENALTY_003 "CC-PENALTY-003" Should "3.6.13" 1 "congestion"
        "rc = 1 restores a window once: the next penalty remembers the window of its own time";
    CC_PROBE_001 "CC-PROBE-001" May "3.6.13" 1 "congestion"
        "A source that is new to a destination sends a PROBE after the first answer";

    CC_PATH_001 "CC-PATH-001" Should "3.6.10" 2 "congestion"
        "An ACK or NACK carries the entropy value of the packet that it answers";
    CC_PATH_002 "CC-PATH-002" Should "3.6.16" 2 "congestion"
        "A source with many paths spreads its packets evenly over its entropy values";
    CC_PATH_003 "CC-PATH-003" Should "3.6.16" 1 "congestion"
        "A source with a single path changes its entropy value only when idle, or at most once every t_reroute";

    RCCC_TYPE_001 "RCCC-TYPE-001" Must "3.6.14" 2 "congestion"
        "With receiver credit, a source sends requests of the types RUD_CC_REQ and ROD_CC_REQ, which carry its demand";
    RCCC_COUNT_001 "RCCC-COUNT-001" Must "3.6.14" 2 "congestion"
        "credit and credit_target are cumulative, count units of 256 bytes and wrap at 2^24";
    RCCC_COUNT_002 "RCCC-COUNT-002" Should "3.6.14" 1 "congestion"
        "An endpoint ignores a credit or credit_target that is serially behind the newest one";
    RCCC_CREDIT_001 "RCCC-CREDIT-001" Should "3.6.14" 2 "congestion"
        "A source sends only while its credit is positive";
    RCCC_START_001 "RCCC-START-001" Should "3.6.14" 2 "congestion"
        "Before the first grant, a source sends at most about as many bytes as the network holds";
    RCCC_GRANT_001 "RCCC-GRANT-001" Must "3.6.14" 2 "congestion"
        "A destination grants credit to every source with demand";
    RCCC_PACE_001 "RCCC-PACE-001" Should "3.6.14" 2 "congestion"
        "The total rate of a destination's grants is about the rate of its link";
    RCCC_TRIM_001 "RCCC-TRIM-001" Should "3.6.14" 1 "congestion"
        "A destination takes the demand of a trimmed request into account";
}
