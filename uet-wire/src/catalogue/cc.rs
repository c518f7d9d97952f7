//! Congestion control: `CC-` (contexts, NSCC, paths) and `RCCC-`. `uet-model` implements these requirements.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    CC_RCVD_001 "CC-RCVD-001" Must "3.6.13" 2 "congestion"
        "rcvd_bytes of a context grows by the nominal size of each new packet: the transport's size and 40";
    CC_RCVD_002 "CC-RCVD-002" Should "3.6.13" 2 "congestion"
        "A duplicate or trimmed packet adds nothing to rcvd_bytes";
    CC_RCVD_003 "CC-RCVD-003" Should "3.6.13" 1 "congestion"
        "A rcvd_bytes that is serially behind the last one says nothing new";
    CC_RCVD_004 "CC-RCVD-004" Must "3.6.13" 2 "congestion"
        "rcvd_bytes counts 256 bytes, a part of them as a whole, and wraps at 2^24";
    CC_RCVD_005 "CC-RCVD-005" Must "3.6.13" 1 "congestion"
        "rcvd_bytes counts for each context by itself: a source compares it with the last one of the same context";
    CC_SERVICE_001 "CC-SERVICE-001" Should "3.6.13" 2 "congestion"
        "service_time is the time from the arrival of the packet that ack_psn names to its ACK, in units of 128 ns";
    CC_SERVICE_002 "CC-SERVICE-002" Should "3.6.13" 1 "wire-format"
        "A service_time of 0xFFFF stands for 8.38848 ms or more: longer times do not wrap";
    CC_RTT_001 "CC-RTT-001" Should "3.6.13" 1 "congestion"
        "A round trip is measured only where it is certain which transmission of the packet was acknowledged";

    CC_WINDOW_001 "CC-WINDOW-001" Should "3.6.13" 2 "congestion"
        "A packet leaves only when it fits into the window beside what is in flight";
    CC_WINDOW_002 "CC-WINDOW-002" Should "3.6.13" 2 "congestion"
        "The window is at most 1.5 times what the link carries in a base round trip";
    CC_WINDOW_003 "CC-WINDOW-003" Must "3.6.13" 2 "congestion"
        "The window never falls below one packet";
    CC_WINDOW_004 "CC-WINDOW-004" Must "3.6.12" 1 "congestion"
        "A context that fails or closes takes its outstanding bytes and packets out of the window";
    CC_ACKREQ_001 "CC-ACKREQ-001" Should "3.6.13" 1 "congestion"
        "A packet after which the window has no room for another asks for an ACK";
    CC_QUAD_001 "CC-QUAD-001" Should "3.6.13" 2 "congestion"
        "Without a mark and with a delay below the target, the window grows, the more the smaller the delay";
    CC_QUAD_002 "CC-QUAD-002" Should "3.6.13" 2 "congestion"
        "Without a mark and with a delay from the target on, the window grows by the same amount at every source";
    CC_QUAD_003 "CC-QUAD-003" Should "3.6.13" 2 "congestion"
        "With a mark and a delay below the target, the window stays";
    CC_QUAD_004 "CC-QUAD-004" Should "3.6.13" 2 "congestion"
        "With a mark and a delay from the target on, the window shrinks, at most once in a base round trip, at most by half";
    CC_TRIM_001 "CC-TRIM-001" Should "3.6.13" 2 "congestion"
        "A packet trimmed within the fabric shrinks the window";
    CC_TRIM_002 "CC-TRIM-002" May "3.6.13" 1 "congestion"
        "When packets were trimmed and little of a window arrived, quick adapt sets the window to what arrived";
    CC_TRIM_003 "CC-TRIM-003" Should "3.6.14" 1 "congestion"
        "With receiver credit, a trim at the last hop neither shrinks the window nor triggers quick adapt";
    CC_LOSS_001 "CC-LOSS-001" Should "3.6.13" 1 "congestion"
        "A packet taken for lost shrinks the window";
    CC_PENALTY_001 "CC-PENALTY-001" Should "3.6.13" 2 "congestion"
        "A receiver penalty shrinks the window with every ACK that carries it";
    CC_PENALTY_002 "CC-PENALTY-002" Should "3.6.13" 1 "congestion"
        "When the penalty is over, the destination says rc = 1, and the window is again what it was before";
    CC_PENALTY_003 "CC-PENALTY-003" Should "3.6.13" 1 "congestion"
        "rc = 1 restores a window once: the next penalty remembers the window of its own time";
    CC_PROBE_001 "CC-PROBE-001" May "3.6.13" 1 "congestion"
        "A source that is new to a destination sends a PROBE after the first answer";

    CC_PATH_001 "CC-PATH-001" Should "3.6.10" 2 "congestion"
        "An ACK or NACK carries the entropy value of the packet that it answers";
    CC_PATH_002 "CC-PATH-002" Should "3.6.16" 2 "congestion"
        "A source with many paths spreads its packets evenly over its entropy values";
    CC_PATH_003 "CC-PATH-003" Should "3.6.16" 1 "congestion"
        "A single path changes its entropy value only when idle, or at most every t_reroute";

    RCCC_TYPE_001 "RCCC-TYPE-001" Must "3.6.14" 2 "congestion"
        "With receiver credit, requests are of the types RUD_CC_REQ and ROD_CC_REQ, which carry the demand";
    RCCC_COUNT_001 "RCCC-COUNT-001" Must "3.6.14" 2 "congestion"
        "credit and credit_target are cumulative, count 256 bytes and wrap at 2^24";
    RCCC_COUNT_002 "RCCC-COUNT-002" Should "3.6.14" 1 "congestion"
        "A credit or credit_target that is serially behind the newest says nothing new";
    RCCC_CREDIT_001 "RCCC-CREDIT-001" Should "3.6.14" 2 "congestion"
        "A source sends only while its credit is positive";
    RCCC_START_001 "RCCC-START-001" Should "3.6.14" 2 "congestion"
        "Before the first grant a source sends at most about what the network holds";
    RCCC_GRANT_001 "RCCC-GRANT-001" Must "3.6.14" 2 "congestion"
        "A destination grants credit to every source that has demand";
    RCCC_PACE_001 "RCCC-PACE-001" Should "3.6.14" 2 "congestion"
        "A destination grants to all its sources together about what its link carries";
    RCCC_TRIM_001 "RCCC-TRIM-001" Should "3.6.14" 1 "congestion"
        "The demand in a trimmed request counts";
}
