use crate::cc::{Algorithms, CcParams};
use core::time::Duration;

/// The parameters of packet delivery, by the names of the specification. What public sources leave open is a parameter
/// too, and its documentation says so.
#[derive(Clone, Debug, PartialEq)]
pub struct PdsParams {
    /// Payload_MTU: bytes of SES payload per packet; 1,024, 2,048, 4,096 or 8,192.
    pub payload_mtu: u16,
    /// Default_MPR: the window before the other side announces one, in units of 128 PSNs; 1 to 255.
    pub default_mpr: u8,
    /// The window that we announce, in the same units; 0 for no limit. Ours: equal to the default.
    pub announced_mpr: u8,
    /// ACK_Gen_Trigger: bytes received until an ACK leaves by itself.
    pub ack_gen_trigger: u32,
    /// ACK_Gen_Min_Pkt_Add: what a packet adds at least.
    pub ack_gen_min_pkt_add: u32,
    /// ACK_On_ECN: a marked packet is acknowledged at once.
    pub ack_on_ecn: bool,
    /// Enb_ACK_Per_Pkt: each packet is acknowledged at once.
    pub enb_ack_per_pkt: bool,
    /// How long an ACK may wait for more. Open: 10 us here.
    pub ack_delay: Duration,
    /// Max_ACK_Data_Size: read data that may ride in an ACK.
    pub max_ack_data_size: u16,
    /// RTO_Init_Time: until the first retransmission; each later one waits twice as long as the one before.
    pub rto_init_time: Duration,
    /// Max_RTO_Retx_Cnt: how often; 15 in hardware-sized configurations, or 31, means without end.
    pub max_rto_retx_cnt: u8,
    /// NACK_Retx_Time: wait after a NACK of the normal class that is not a trim.
    pub nack_retx_time: Duration,
    /// Max_NACK_Retx_Cnt: how often.
    pub max_nack_retx_cnt: u8,
    /// How long a stored response waits for being cleared until CLEAR_REQUEST asks. Open: 100 us here.
    pub clear_request_time: Duration,
    /// How often CLEAR_REQUEST asks for the same. Open.
    pub max_clear_requests: u8,
    /// Close_REQ_Time: how long a target waits for the CLOSE_COMMAND that it has asked for.
    pub close_req_time: Duration,
    /// New_PDC_Time: how long a secured target keeps a context whose Start_PSN it has refused. Open.
    pub new_pdc_time: Duration,
    /// PDS_Clear_Time: how long CLEAR waits for a request to carry it. Open.
    pub pds_clear_time: Duration,
    /// Limit_PSN_Range: close before a direction has used `psn_range` PSNs.
    pub limit_psn_range: bool,
    /// 2^31, but for tests.
    pub psn_range: u32,
    /// The Start_PSN of a PDCID that has not been used, instead of a random one. For examples and tests: whoever can guess a
    /// PSN can interfere.
    pub start_psn: Option<u32>,
    /// How far Start_PSN lies at least from the last PSN used with the PDCID.
    pub start_psn_distance: u32,
    /// Syn_Retx_Safety_Time: how long what late syn packets could hit is not used again. Open.
    pub syn_retx_safety_time: Duration,
    /// The first PDCID of the general pool; the reserved pool follows the general one.
    pub first_pdcid: u16,
    /// PDCIDs of the general pool.
    pub general_pdcs: u16,
    /// PDCIDs of the reserved pool. Open: none here.
    pub reserved_pdcs: u16,
    /// An idle context is closed after this time; never when it is zero. Open.
    pub idle_time: Duration,
    /// Requests that wait in one context before SES is asked to pause. Ours.
    pub tx_queue: u16,
    /// Requests that SES may owe the response of, over all contexts; beyond, NACK NO_PKT_BUFFER. Ours.
    pub rx_packets: u32,
    /// Responses that are kept or may have to be, over all contexts; beyond, NACK NO_GTD_DEL_AVAIL. Ours.
    pub stored_responses: u32,
    /// PSNs that are kept account of above cumulative ones, over all contexts; beyond, NACK NO_RESOURCE, or NO_BITMAP for
    /// a new context. Ours.
    pub receive_slots: u32,
    /// ACKs, NACKs and other packets that wait to be taken by [`Pds::poll_transmit`](crate::pds::Pds::poll_transmit) and are
    /// not sent again by themselves; beyond, they are lost. Ours.
    pub answer_queue: u16,
    /// Idempotent requests that wait for their response, in either direction; beyond, SES is asked to pause, or NACK
    /// NO_RESOURCE. Ours.
    pub rudi_requests: u16,
    /// Congestion control contexts; beyond, NACK NO_CCC_AVAIL. Ours.
    pub cccs: u32,
    /// Events that are kept until they are taken; 0 switches them off. Ours.
    pub event_capacity: usize,
    /// Whether the last packet of a message asks for an ACK. Open.
    pub ask_ack_at_eom: bool,
    /// Whether an early syn packet opens a ROD context, and is answered from it. Open.
    pub rod_opens_early: bool,
    /// Whether what SES has not yet answered is told by NACK RCVD_SES_PROCG; else by silence.
    pub nack_ses_processing: bool,
    /// Whether a trimmed packet that would open a context is answered by a NACK. Open.
    pub nack_trimmed_syn: bool,
    /// Whether a control packet that is not known is answered by NACK UNEXP_EVENT. Open.
    pub nack_unknown_control: bool,
    /// Whether NEGOTIATION is understood, which came with v1.0.2; else it is a control packet like one that is not known.
    pub negotiation: bool,
    /// Whether a duplicate that is not marked as a retransmission is acknowledged.
    pub ack_unmarked_duplicates: bool,
    /// Out-of-order packets seen above a missing one until it counts as lost (RUD); 0 for never, the default.
    pub fast_loss_packets: u16,
    /// The same at the destination, which then reports the gap by NACK RCVR_INFER_LOSS; 0 for never, the default.
    pub infer_loss_packets: u16,
    /// Congestion control, and the network it is for.
    pub congestion: CcParams,
}

impl Default for PdsParams {
    fn default() -> Self {
        PdsParams {
            payload_mtu: 4096,
            default_mpr: 8,
            announced_mpr: 8,
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
    /// The same without congestion control: a packet may leave at any time.
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
