//! Deliberate faults of the software switch, each of which breaks one requirement.

use uet_wire::catalogue::*;

// A variant, its name, what it does, and the requirement that it breaks.
macro_rules! faults {
    ($($Fault:ident $name:literal $what:literal $requirement:ident;)*) => {
        /// A deliberate fault of the software switch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SwitchFault {
            $(#[doc = concat!("It ", $what, ".")] $Fault,)*
        }

        impl SwitchFault {
            /// All faults.
            pub const ALL: &[SwitchFault] = &[$(SwitchFault::$Fault),*];

            /// Returns its name.
            pub const fn name(self) -> &'static str {
                match self { $(SwitchFault::$Fault => $name,)* }
            }

            /// Returns what it does.
            pub const fn what(self) -> &'static str {
                match self { $(SwitchFault::$Fault => $what,)* }
            }

            /// Returns the requirement that it breaks.
            pub const fn requirement(self) -> &'static Requirement {
                match self { $(SwitchFault::$Fault => $requirement,)* }
            }
        }
    };
}

faults! {
    RewritesPayload "rewrites-payload" "changes the last byte of every tenth packet" NET_FWD_001;
    KeepsTtl "keeps-ttl" "does not lower the TTL" NET_FWD_002;
    RemarksData "remarks-data" "gives whole packets of data another DSCP" NET_FWD_003;
    Floods "floods" "sends each packet to another port too" NET_FWD_004;
    Duplicates "duplicates" "sends every tenth packet twice" NET_DUP_001;
    LosesPackets "loses-packets" "loses every tenth packet" NET_LOSS_001;
    LosesTrims "loses-trims" "loses every other trimmed packet" NET_LOSS_002;
    ReordersFlow "reorders-flow" "puts every tenth packet before those that wait" NET_ORDER_001;
    PrefersOnePath "prefers-one-path" "sends three of four flows over the first path" NET_SPRAY_001;
    ClearsMarks "clears-marks" "turns a mark into ECN-capable" NET_ECN_001;
    MarksNotEct "marks-not-ect" "marks packets that are not ECN-capable" NET_ECN_002;
    MarksLate "marks-late" "begins to mark at one and a half times the upper depth" NET_ECN_003;
    TrimsUntrimmable "trims-untrimmable" "trims data of a class that is not trimmed" NET_TRIM_001;
    CutsOneByteMore "cuts-one-byte-more" "keeps a byte less of each trimmed packet" NET_TRIM_002;
    DamagesTrims "damages-trims" "changes the last byte of each trimmed packet" NET_TRIM_002;
    WrongDscp "wrong-dscp" "leaves the DSCP of trimmed packets" NET_TRIM_003;
    RecomputesNothing "recomputes-nothing" "leaves IP length and checksum of trimmed packets" NET_TRIM_004;
    TrimsAcks "trims-acks" "trims ACKs, NACKs and control packets" NET_TRIM_005;
    QueuesTrims "queues-trims" "puts trimmed packets behind the data that waits" NET_TRIM_006;
    QueuesAcks "queues-acks" "puts ACKs, NACKs and control packets behind the data" NET_PRIO_001;
}

impl SwitchFault {
    /// Returns the fault with this name.
    pub fn find(name: &str) -> Option<Self> {
        SwitchFault::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}
