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
    /// Trimmable_ACK_Size: an ACK above it may be trimmed by switches.
    pub trimmable_ack_size: u32,
    /// RTO_Init_Time: until the first retransmission; each later one waits twice as long as the one before.
    pub rto_init_time: Duration,
    /// Max_RTO_Retx_Cnt: how often; 15 in hardware-sized configurations, or 31, means without end.
    pub max_rto_retx_cnt: u8,
    /// NACK_Retx_Time: wait after a NACK of the normal class that is not a trim.
    pub nack_retx_time: Duration,
    /// Max_NACK_Retx_Cnt: how often.
    pub max_nack_retx_cnt: u8,
    /// Close_REQ_Time: how long a target waits for the CLOSE_COMMAND that it has asked for.
    pub close_req_time: Duration,
    /// New_PDC_Time: how long a secured target keeps a context whose Start_PSN it has refused. Open.
    pub new_pdc_time: Duration,
    /// PDS_Clear_Time: how long CLEAR waits for a request to carry it. Open.
    pub pds_clear_time: Duration,
    /// Limit_PSN_Range: close before a direction has used 2^31 PSNs.
    pub limit_psn_range: bool,
    /// How far Start_PSN lies at least from the last PSN used with the PDCID.
    pub start_psn_distance: u32,
    /// Syn_Retx_Safety_Time: how long what late syn packets could hit is not used again. Open.
    pub syn_retx_safety_time: Duration,
    /// PDCIDs of the general pool.
    pub general_pdcs: u16,
    /// PDCIDs of the reserved pool. Open: none here.
    pub reserved_pdcs: u16,
    /// An idle context is closed after this time; never when it is zero. Open.
    pub idle_time: Duration,
    /// Requests that wait in one context before SES is asked to pause. Ours.
    pub tx_queue: u16,
    /// Whether an early syn packet opens a ROD context, and is answered from it. Open.
    pub rod_opens_early: bool,
    /// Whether what SES has not yet answered is told by NACK RCVD_SES_PROCG; else by silence.
    pub nack_ses_processing: bool,
    /// Whether a trimmed packet that would open a context is answered by a NACK. Open.
    pub nack_trimmed_syn: bool,
    /// Whether a control packet that is not known is answered by NACK UNEXP_EVENT. Open.
    pub nack_unknown_control: bool,
    /// Whether a duplicate that is not marked as a retransmission is acknowledged.
    pub ack_unmarked_duplicates: bool,
    /// Out-of-order packets seen above a missing one until it counts as lost (RUD); 0 for never, the default.
    pub fast_loss_packets: u16,
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
            trimmable_ack_size: 10 * 1024,
            rto_init_time: Duration::from_micros(100),
            max_rto_retx_cnt: 5,
            nack_retx_time: Duration::from_micros(10),
            max_nack_retx_cnt: 5,
            close_req_time: Duration::from_secs(1),
            new_pdc_time: Duration::from_millis(1),
            pds_clear_time: Duration::from_micros(20),
            limit_psn_range: true,
            start_psn_distance: 1 << 16,
            syn_retx_safety_time: Duration::from_millis(10),
            general_pdcs: 1024,
            reserved_pdcs: 0,
            idle_time: Duration::ZERO,
            tx_queue: 64,
            rod_opens_early: true,
            nack_ses_processing: true,
            nack_trimmed_syn: true,
            nack_unknown_control: true,
            ack_unmarked_duplicates: true,
            fast_loss_packets: 0,
        }
    }
}
