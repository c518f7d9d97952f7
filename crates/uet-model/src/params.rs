use crate::cc::{Algorithms, CcParams};
use core::time::Duration;

/// The parameters of packet delivery, with the names of the specification. "Open" marks values that public sources
/// leave open. "Ours" marks parameters that the specification does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct PdsParams {
    /// Payload_MTU: bytes of SES payload per packet; 1,024, 2,048, 4,096 or 8,192.
    pub payload_mtu: u16,
    /// Default_MPR: the window before the peer announces one, in units of 128 PSNs; 1 to 255.
    pub default_mpr: u8,
    /// The window that this endpoint announces, in units of 128 PSNs; 0 for no limit. Ours. The default equals
    /// `default_mpr`.
    pub announced_mpr: u8,
    /// Override_MPR_Zero_Value: the number of PSNs, 1 to 127, for which an announced window of 0 stands at both ends; `None`
    /// for no limit. Open: only its name is public.
    pub override_mpr_zero_value: Option<u32>,
    /// ACK_Gen_Trigger: the number of received bytes that triggers an ACK.
    pub ack_gen_trigger: u32,
    /// ACK_Gen_Min_Pkt_Add: the minimum number of bytes that a packet counts towards the trigger.
    pub ack_gen_min_pkt_add: u32,
    /// ACK_On_ECN: acknowledge a marked packet immediately.
    pub ack_on_ecn: bool,
    /// Enb_ACK_Per_Pkt: acknowledge every packet immediately.
    pub enb_ack_per_pkt: bool,
    /// The maximum delay of an ACK. Open: 10 us here.
    pub ack_delay: Duration,
    /// Max_ACK_Data_Size: the maximum amount of read data in an ACK, in bytes.
    pub max_ack_data_size: u16,
    /// RTO_Init_Time: the timeout of the first retransmission. It doubles with each further one.
    pub rto_init_time: Duration,
    /// Max_RTO_Retx_Cnt: the number of retransmissions; 15 (in hardware-sized configurations) or 31 means no limit.
    pub max_rto_retx_cnt: u8,
    /// NACK_Retx_Time: the back-off after a NACK of the normal class that is not a trim.
    pub nack_retx_time: Duration,
    /// Max_NACK_Retx_Cnt: the number of retransmissions after NACKs; 31 means no limit.
    pub max_nack_retx_cnt: u8,
    /// The time that a stored response waits for a clear before CLEAR_REQUEST asks for it. Open: 100 us here.
    pub clear_request_time: Duration,
    /// The number of CLEAR_REQUEST packets for one response. Open.
    pub max_clear_requests: u8,
    /// Close_REQ_Time: the time that a target waits for the CLOSE_COMMAND that it requested.
    pub close_req_time: Duration,
    /// New_PDC_Time: the time that a secured target keeps a context whose Start_PSN it refused. Open.
    pub new_pdc_time: Duration,
    /// PDS_Clear_Time: the time that CLEAR_PSN waits for a request that carries it. Open.
    pub pds_clear_time: Duration,
    /// Limit_PSN_Range: close a context before a direction has used `psn_range` PSNs.
    pub limit_psn_range: bool,
    /// The number of PSNs that a direction may use; 2^31. Tests set less.
    pub psn_range: u32,
    /// The Start_PSN of an unused PDCID, instead of a random one. For examples and tests only: a peer that can guess PSNs
    /// can interfere.
    pub start_psn: Option<u32>,
    /// The minimum distance of a Start_PSN from the last PSN used with the PDCID.
    pub start_psn_distance: u32,
    /// The number of bytes from which `rcvd_bytes` counts, here and at the peer. For tests of the wrap only.
    pub start_rcvd_bytes: u64,
    /// Syn_Retx_Safety_Time: the time that a closed target context is remembered, so that late syn packets do not open
    /// a context. Open.
    pub syn_retx_safety_time: Duration,
    /// The first PDCID of the general pool. The reserved pool follows it.
    pub first_pdcid: u16,
    /// The number of PDCIDs in the general pool.
    pub general_pdcs: u16,
    /// The number of PDCIDs in the reserved pool. Open: none here.
    pub reserved_pdcs: u16,
    /// The time after which an idle context is closed; zero for never. Open.
    pub idle_time: Duration,
    /// The number of requests that wait in one context before PDS asks SES to pause. Ours.
    pub tx_queue: u16,
    /// The maximum number of requests without a response of SES, over all contexts. Beyond it, the reply is NACK
    /// NO_PKT_BUFFER. Ours.
    pub rx_packets: u32,
    /// The maximum number of responses that are stored or may have to be, over all contexts. Beyond it, the reply is
    /// NACK NO_GTD_DEL_AVAIL. Ours.
    pub stored_responses: u32,
    /// The maximum number of tracked PSNs above the cumulative ones, over all contexts. Beyond it, the reply is NACK
    /// NO_RESOURCE, or NO_BITMAP for a new context. Ours.
    pub receive_slots: u32,
    /// The maximum number of ACKs, NACKs and other packets without a retransmission timer that wait for
    /// [`Pds::poll_transmit`](crate::pds::Pds::poll_transmit). Further ones are lost. Ours.
    pub answer_queue: u16,
    /// The maximum number of idempotent requests in flight in either direction. Beyond it, PDS asks SES to pause, or
    /// replies NACK NO_RESOURCE. Ours.
    pub rudi_requests: u16,
    /// The maximum number of congestion control contexts. Beyond it, the reply is NACK NO_CCC_AVAIL. Ours.
    pub cccs: u32,
    /// The maximum number of events in the queue; 0 switches events off. Ours.
    pub event_capacity: usize,
    /// True if a new context may replace an unconfirmed one when a resource is missing. A target context is unconfirmed
    /// if its peer has sent only syn packets. The oldest one is replaced first. After a second without confirmation it
    /// also gives way to a packet that lacks room. `PDS-OPEN-001` refuses a packet that lacks a resource, and leaves
    /// open who keeps it. Ours.
    pub reclaim_unconfirmed: bool,
    /// True if the last packet of a message requests an ACK. Open.
    pub ask_ack_at_eom: bool,
    /// True if an early syn packet opens a ROD context. Open.
    pub rod_opens_early: bool,
    /// True if NACK RCVD_SES_PROCG answers a retransmission whose response is not ready. Otherwise there is no reply.
    pub nack_ses_processing: bool,
    /// True if a NACK answers a trimmed packet that would open a context. Open.
    pub nack_trimmed_syn: bool,
    /// True if NACK UNEXP_EVENT answers an unknown control packet. Open.
    pub nack_unknown_control: bool,
    /// True if the endpoint supports NEGOTIATION (since v1.0.1). Otherwise it is an unknown control packet.
    pub negotiation: bool,
    /// True if an ACK answers a duplicate that is not marked as a retransmission.
    pub ack_unmarked_duplicates: bool,
    /// RUD: the number of packets that must arrive above a gap before the source declares a loss; 0 for never, the
    /// default.
    pub fast_loss_packets: u16,
    /// The number of packets above a gap after which the destination reports it by NACK RCVR_INFER_LOSS; 0 for never, the
    /// default.
    pub infer_loss_packets: u16,
    /// The congestion control, and the network for which it is set.
    pub congestion: CcParams,
}

/// The maximum range of an 8-bit `mpr`. It also applies when no limit is stated, because offset fields have 16 bits.
const WIDEST: u32 = 255 * 128;

impl PdsParams {
    /// Returns the number of PSNs for `mpr`. `PDS-WIN-005`: 128 each, 0 for no limit or a configured range.
    pub(crate) fn mp_range(&self, mpr: u8) -> u32 {
        match mpr {
            0 => self.override_mpr_zero_value.unwrap_or(WIDEST).max(1),
            mpr => u32::from(mpr) * 128,
        }
    }
}

impl Default for PdsParams {
    fn default() -> Self {
        PdsParams {
            payload_mtu: 4096,
            default_mpr: 8,
            announced_mpr: 8,
            override_mpr_zero_value: None,
            ack_gen_trigger: 16_384,
            ack_gen_min_pkt_add: 1024,
            ack_on_ecn: true,
            enb_ack_per_pkt: false,
            ack_delay: Duration::from_micros(10),
            max_ack_data_size: 16,
            rto_init_time: Duration::from_micros(100),
            max_rto_retx_cnt: 5,
            nack_retx_time: Duration::from_micros(10),
            max_nack_retx_cnt: 5,
            clear_request_time: Duration::from_micros(100),
            max_clear_requests: 5,
            close_req_time: Duration::from_secs(1),
            new_pdc_time: Duration::from_millis(1),
            pds_clear_time: Duration::from_micros(20),
            limit_psn_range: true,
            psn_range: 1 << 31,
            start_psn: None,
            start_psn_distance: 1 << 16,
            start_rcvd_bytes: 0,
            syn_retx_safety_time: Duration::from_millis(10),
            first_pdcid: 1,
            general_pdcs: 1024,
            reserved_pdcs: 0,
            idle_time: Duration::ZERO,
            tx_queue: 64,
            rx_packets: 1 << 16,
            stored_responses: 1 << 16,
            receive_slots: 1 << 20,
            answer_queue: 4096,
            rudi_requests: 1024,
            cccs: 1 << 16,
            event_capacity: 0,
            reclaim_unconfirmed: true,
            ask_ack_at_eom: true,
            rod_opens_early: true,
            nack_ses_processing: true,
            nack_trimmed_syn: true,
            nack_unknown_control: true,
            negotiation: true,
            ack_unmarked_duplicates: true,
            fast_loss_packets: 0,
            infer_loss_packets: 0,
            congestion: CcParams::default(),
        }
    }
}

impl PdsParams {
    /// Returns the parameters without congestion control. A packet may then leave at any time.
    ///
    /// ```
    /// use uet_model::{PdsParams, cc::Algorithms};
    ///
    /// assert_eq!(PdsParams::default().uncontrolled().congestion.algorithms, Algorithms::None);
    /// ```
    pub fn uncontrolled(mut self) -> Self {
        self.congestion.algorithms = Algorithms::None;
        self
    }
}
