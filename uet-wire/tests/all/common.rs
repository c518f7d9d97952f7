//! What the tests of all headers share. They need features, and without those nobody uses it.
#![allow(unused_macros, unused_imports)]

/// Calls a macro with every header of this crate, and what it is given besides.
macro_rules! for_every_header {
    ($do:ident $($with:tt)*) => {
        $do! { [$($with)*]
            outer::Ethernet outer::Vlan outer::Ipv4 outer::Ipv6 outer::Ipv6Extension outer::Ipv6Fragment
            outer::Udp outer::Entropy
            tss::TssHead tss::Tsc tss::TssShort tss::TssLong
            pds::Prologue pds::ControlPrologue pds::Request pds::RequestCc pds::Rudi pds::Uud
            pds::Ack pds::Sack pds::AckCc pds::AckCcx pds::Nack pds::NackCcx pds::Control
            ses::RequestHead ses::Address ses::Std ses::Medium ses::Small
            ses::Rendezvous ses::Atomic ses::CompareSwap
            ses::ResponseHead ses::Response ses::ResponseData ses::ResponseDataSmall
            trailer::Crc trailer::Icv
        }
    };
}
pub(crate) use for_every_header;
