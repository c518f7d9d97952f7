//! The list of all headers. [`layout::ALL`](crate::layout::ALL) and the tests of all headers use it, including those in
//! `tests/`.

/// Calls a macro with every header and every shared part, in the order of the layers. Passes its own arguments on.
#[allow(unused_macros)] // some tests need features
macro_rules! every_header {
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
#[allow(unused_imports)]
pub(crate) use every_header;
