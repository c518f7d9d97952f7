//! Requirements on the network between endpoints: `NET-`. `uet switch` tests them. They are no part of
//! [`ALL`](super::ALL), which lists the requirements on endpoints: no report about a device counts them.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    NET_FWD_001 "NET-FWD-001" Must "3.6.17" 2 "switch"
        "A network forwards every byte behind the IP header unchanged, and sends no packet that no endpoint has sent";
    NET_FWD_002 "NET-FWD-002" Should "3.6.17" 2 "switch"
        "Each router lowers the TTL by 1, and keeps addresses, protocol and a correct IPv4 checksum";
    NET_FWD_003 "NET-FWD-003" Should "3.6.4" 1 "switch"
        "A packet that is not trimmed keeps its DSCP";
    NET_FWD_004 "NET-FWD-004" Should "3.6.17" 1 "switch"
        "A packet leaves the network only where its address leads";
    NET_DUP_001 "NET-DUP-001" Should "3.6.17" 1 "switch"
        "A network delivers a packet once";
    NET_LOSS_001 "NET-LOSS-001" Should "3.6.17" 2 "switch"
        "Without congestion a network loses no packet";
    NET_LOSS_002 "NET-LOSS-002" Should "3.6.17" 2 "switch"
        "Under congestion a network that trims loses no packet of a trimmable class: its trimmed rest arrives";
    NET_ORDER_001 "NET-ORDER-001" Should "3.6.16" 2 "switch"
        "Packets of equal addresses, entropy value and class take one path and keep their order";
    NET_SPRAY_001 "NET-SPRAY-001" Should "3.6.16" 2 "switch"
        "Packets of many entropy values spread evenly over equal paths";
    NET_ECN_001 "NET-ECN-001" Should "3.6.17" 2 "switch"
        "A network changes the ECN field of ECN-capable packets only from 1 or 2 to 3";
    NET_ECN_002 "NET-ECN-002" Should "3.6.17" 2 "switch"
        "A network leaves the ECN field of packets that are not ECN-capable at 0";
    NET_ECN_003 "NET-ECN-003" Should "3.6.17" 2 "switch"
        "Marking begins between the configured depths of the queue";
    NET_TRIM_001 "NET-TRIM-001" Should "3.6.17" 2 "switch"
        "A network trims only packets of trimmable classes";
    NET_TRIM_002 "NET-TRIM-002" Must "3.5.15" 2 "switch"
        "A trimmed packet keeps the configured number of first bytes unchanged, at least 24 behind the IP header";
    NET_TRIM_003 "NET-TRIM-003" Must "3.5.15" 2 "switch"
        "A trimmed packet has the DSCP configured for the place where it was trimmed";
    NET_TRIM_004 "NET-TRIM-004" Should "3.5.15" 2 "switch"
        "A switch corrects the IP length of a trimmed packet, or leaves it as it was, as configured";
    NET_TRIM_005 "NET-TRIM-005" Should "3.6.17" 2 "switch"
        "A network never trims ACKs, NACKs and control packets";
    NET_TRIM_006 "NET-TRIM-006" Should "3.6.17" 2 "switch"
        "Trimmed packets overtake data that waits";
    NET_PRIO_001 "NET-PRIO-001" Should "3.6.17" 2 "switch"
        "ACKs, NACKs and control packets overtake data that waits, and arrive although data is trimmed or lost";
}

/// The requirements on the network between endpoints.
pub const NETWORK: &[&Requirement] = ALL;
