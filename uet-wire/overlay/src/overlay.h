/* A second description of the UET headers: packed structs, byte swaps and bounds checks, written by hand
 * from the tables of the specification and from nothing else. It shares nothing with the Rust codec, so the
 * two disagree when one of them is wrong. It is also the yardstick for the codec's speed. */
#ifndef UET_OVERLAY_H
#define UET_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The headers, by the names that they have in the codec. */
#define UET_HEADERS(X) \
    X(ETH, "eth") X(VLAN, "vlan") X(IPV4, "ipv4") X(IPV6, "ipv6") X(IPV6_EXT, "ipv6_ext") \
    X(IPV6_FRAGMENT, "ipv6_fragment") X(UDP, "udp") X(ENTROPY, "entropy") \
    X(TSS_HEAD, "tss_head") X(TSS, "tss") X(TSS_SSI, "tss_ssi") \
    X(PROLOGUE, "prologue") X(REQUEST, "request") X(REQUEST_CC, "request_cc") X(RUDI, "rudi") X(UUD, "uud") \
    X(ACK, "ack") X(ACK_CC, "ack_cc") X(ACK_CCX, "ack_ccx") X(NACK, "nack") X(NACK_CCX, "nack_ccx") \
    X(CONTROL, "control") \
    X(SMALL, "small") X(MEDIUM, "medium") X(STD, "std") X(RESPONSE, "response") \
    X(RESPONSE_DATA, "response_data") X(RESPONSE_DATA_SMALL, "response_data_small") \
    X(RENDEZVOUS, "rendezvous") X(ATOMIC, "atomic") X(COMPARE_SWAP, "compare_swap") \
    X(CRC, "crc") X(ICV, "icv")

enum uet_header {
#define X(id, name) UET_##id,
    UET_HEADERS(X)
#undef X
    UET_HEADER_COUNT
};

/* The fields, by their canonical names. */
#define UET_FIELDS(X) \
    X(ETH_DST, "eth.dst") X(ETH_SRC, "eth.src") X(ETH_TYPE, "eth.type") \
    X(VLAN_PCP, "vlan.pcp") X(VLAN_DEI, "vlan.dei") X(VLAN_ID, "vlan.id") X(VLAN_TYPE, "vlan.type") \
    X(IP_VERSION, "ip.version") X(IP_IHL, "ip.ihl") X(IP_DSCP, "ip.dscp") X(IP_ECN, "ip.ecn") \
    X(IP_TOTAL_LENGTH, "ip.total_length") X(IP_ID, "ip.id") X(IP_DF, "ip.df") X(IP_MF, "ip.mf") \
    X(IP_FRAG_OFFSET, "ip.frag_offset") X(IP_TTL, "ip.ttl") X(IP_PROTO, "ip.proto") \
    X(IP_CHECKSUM, "ip.checksum") X(IP_SRC, "ip.src") X(IP_DST, "ip.dst") \
    X(IP_FLOW_LABEL, "ip.flow_label") X(IP_PAYLOAD_LENGTH, "ip.payload_length") \
    X(IP_EXT_PROTO, "ip.ext.proto") X(IP_EXT_LENGTH, "ip.ext.length") \
    X(UDP_SRC_PORT, "udp.src_port") X(UDP_DST_PORT, "udp.dst_port") X(UDP_LENGTH, "udp.length") \
    X(UDP_CHECKSUM, "udp.checksum") X(PDS_ENTROPY, "pds.entropy") \
    X(TSS_TYPE, "tss.type") X(TSS_SP, "tss.sp") X(TSS_AN, "tss.an") X(TSS_SDI, "tss.sdi") \
    X(TSS_SSI_FIELD, "tss.ssi") X(TSS_EPOCH, "tss.epoch") X(TSS_COUNTER, "tss.counter") \
    X(PDS_TYPE, "pds.type") X(PDS_NEXT_HDR, "pds.next_hdr") X(PDS_CTL_TYPE, "pds.ctl_type") \
    X(PDS_FLAGS, "pds.flags") X(PDS_RETX, "pds.flags.retx") X(PDS_AR, "pds.flags.ar") \
    X(PDS_SYN, "pds.flags.syn") X(PDS_M, "pds.flags.m") X(PDS_P, "pds.flags.p") X(PDS_REQ, "pds.flags.req") \
    X(PDS_NT, "pds.flags.nt") X(PDS_ISROD, "pds.flags.isrod") \
    X(PDS_CLEAR_PSN_OFFSET, "pds.clear_psn_offset") X(PDS_PSN, "pds.psn") X(PDS_SPDCID, "pds.spdcid") \
    X(PDS_DPDCID, "pds.dpdcid") X(PDS_PDC_INFO, "pds.pdc_info") X(PDS_PSN_OFFSET, "pds.psn_offset") \
    X(PDS_CCC_ID, "pds.ccc_id") X(PDS_CREDIT_TARGET, "pds.credit_target") X(PDS_PKT_ID, "pds.pkt_id") \
    X(PDS_ACK_PSN_OFFSET, "pds.ack_psn_offset") X(PDS_PROBE_OPAQUE, "pds.probe_opaque") \
    X(PDS_CACK_PSN, "pds.cack_psn") X(PDS_CC_TYPE, "pds.cc_type") X(PDS_CCX_TYPE, "pds.ccx_type") \
    X(PDS_CC_FLAGS, "pds.cc_flags") X(PDS_MPR, "pds.mpr") X(PDS_SACK_PSN_OFFSET, "pds.sack_psn_offset") \
    X(PDS_SACK_BITMAP, "pds.sack_bitmap") X(PDS_SERVICE_TIME, "pds.service_time") X(PDS_RC, "pds.rc") \
    X(PDS_RCV_CWND_PEND, "pds.rcv_cwnd_pend") X(PDS_RCVD_BYTES, "pds.rcvd_bytes") \
    X(PDS_CREDIT, "pds.credit") X(PDS_OOO_COUNT, "pds.ooo_count") X(PDS_ACK_CC_STATE, "pds.ack_cc_state") \
    X(PDS_ACK_CCX_STATE, "pds.ack_ccx_state") X(PDS_NACK_CODE, "pds.nack_code") \
    X(PDS_VENDOR_CODE, "pds.vendor_code") X(PDS_NACK_PSN, "pds.nack_psn") \
    X(PDS_NACK_PKT_ID, "pds.nack_pkt_id") X(PDS_PAYLOAD, "pds.payload") X(PDS_NCCX_TYPE, "pds.nccx_type") \
    X(PDS_NACK_CCX_STATE, "pds.nack_ccx_state") \
    X(SES_OPCODE, "ses.opcode") X(SES_VERSION, "ses.version") X(SES_DC, "ses.dc") X(SES_IE, "ses.ie") \
    X(SES_REL, "ses.rel") X(SES_HD, "ses.hd") X(SES_EOM, "ses.eom") X(SES_SOM, "ses.som") \
    X(SES_MESSAGE_ID, "ses.message_id") X(SES_REQUEST_LENGTH, "ses.request_length") \
    X(SES_RI_GENERATION, "ses.ri_generation") X(SES_JOB_ID, "ses.job_id") \
    X(SES_PID_ON_FEP, "ses.pid_on_fep") X(SES_RESOURCE_INDEX, "ses.resource_index") \
    X(SES_BUFFER_OFFSET, "ses.buffer_offset") X(SES_INITIATOR, "ses.initiator") \
    X(SES_INITIATOR_RESTART_TOKEN, "ses.initiator_restart_token") \
    X(SES_TARGET_RESTART_TOKEN, "ses.target_restart_token") X(SES_MEMORY_KEY, "ses.memory_key") \
    X(SES_MATCH_BITS, "ses.match_bits") X(SES_HEADER_DATA, "ses.header_data") \
    X(SES_PAYLOAD_LENGTH, "ses.payload_length") X(SES_MESSAGE_OFFSET, "ses.message_offset") \
    X(SES_EAGER_LENGTH, "ses.eager_length") X(SES_READ_RI_GENERATION, "ses.read_ri_generation") \
    X(SES_READ_PID_ON_FEP, "ses.read_pid_on_fep") X(SES_READ_RESOURCE_INDEX, "ses.read_resource_index") \
    X(SES_READ_OFFSET, "ses.read_offset") X(SES_READ_MEMORY_KEY, "ses.read_memory_key") \
    X(SES_ATOMIC_OPCODE, "ses.atomic_opcode") X(SES_ATOMIC_DATATYPE, "ses.atomic_datatype") \
    X(SES_SEMANTIC_CONTROL, "ses.semantic_control") X(SES_COMPARE_VALUE, "ses.compare_value") \
    X(SES_SWAP_VALUE, "ses.swap_value") X(SES_LIST, "ses.list") X(SES_RETURN_CODE, "ses.return_code") \
    X(SES_MODIFIED_LENGTH, "ses.modified_length") X(SES_RESPONSE_MESSAGE_ID, "ses.response_message_id") \
    X(SES_READ_REQUEST_MESSAGE_ID, "ses.read_request_message_id") \
    X(SES_ORIGINAL_REQUEST_PSN, "ses.original_request_psn") \
    X(CRC_VALUE, "crc") X(ICV_VALUE, "icv")

enum uet_field {
#define X(id, name) UET_F_##id,
    UET_FIELDS(X)
#undef X
    UET_FIELD_COUNT
};

extern const size_t uet_header_count, uet_field_count;
extern const char *const uet_header_names[UET_HEADER_COUNT];
extern const size_t uet_header_sizes[UET_HEADER_COUNT];
extern const char *const uet_field_names[UET_FIELD_COUNT];

/* One header, every field of it: a field that the header has, or has in this form, is marked present. Values
 * are the raw bits, right-aligned. */
struct uet_view {
    uint64_t hi[UET_FIELD_COUNT];
    uint64_t lo[UET_FIELD_COUNT];
    uint8_t present[UET_FIELD_COUNT];
};

/* Returns true and fills `view` if the header is complete. */
bool uet_read_header(size_t header, const uint8_t *bytes, size_t length, struct uet_view *view);

/* Where the headers of a packet lie. */
struct uet_walk {
    struct {
        uint32_t header;
        uint32_t offset;
    } at[12];
    uint32_t count;
    uint32_t payload_offset;
    uint32_t payload_length;
    uint32_t trailer_length;
    /* The header at which reading stopped, UET_HEADER_COUNT when it did not, and where that header starts. */
    uint32_t stopped_in;
    uint32_t stopped_at;
    /* UDP promises more than IP has: a switch trimmed the packet. */
    bool trimmed;
    /* The packet is UET, or the start of it. */
    bool is_uet;
};

/* A packet that starts with UET. */
void uet_walk_packet(const uint8_t *bytes, size_t length, struct uet_walk *walk);

/* A packet that starts with Ethernet. */
void uet_walk_frame(const uint8_t *bytes, size_t length, uint16_t udp_port, uint8_t ip_proto,
                    uint32_t trailer_length, struct uet_walk *walk);

/* The fields of the packets that are measured, as a program would keep them. Of fields that exclude each
 * other, the one that the packet does not have is left alone. */
struct uet_request_std {
    uint8_t type, next_hdr;
    bool retx, ar, syn;
    int16_t clear_psn_offset;
    uint32_t psn;
    uint16_t spdcid, dpdcid;
    uint8_t pdc_info;
    uint16_t psn_offset;
    uint8_t opcode, version;
    bool dc, ie, rel, hd, eom, som;
    uint16_t message_id;
    uint8_t ri_generation;
    uint32_t job_id;
    uint16_t pid_on_fep, resource_index;
    uint64_t buffer_offset;
    uint32_t initiator_restart_token, target_restart_token;
    uint32_t initiator;
    uint64_t memory_key, match_bits;
    uint64_t header_data;
    uint16_t payload_length;
    uint32_t message_offset;
    uint32_t request_length;
    const uint8_t *payload;
    size_t payload_bytes;
};

struct uet_ack_response {
    uint8_t type, next_hdr;
    bool m, retx, p;
    uint8_t req;
    int16_t ack_psn_offset;
    uint16_t probe_opaque;
    uint32_t cack_psn;
    uint16_t spdcid, dpdcid;
    uint8_t list, opcode, version, return_code;
    uint16_t message_id;
    uint8_t ri_generation;
    uint32_t job_id;
    uint32_t modified_length;
};

struct uet_ack_cc_fields {
    uint8_t type, next_hdr;
    bool m, retx, p;
    uint8_t req;
    int16_t ack_psn_offset;
    uint16_t probe_opaque;
    uint32_t cack_psn;
    uint16_t spdcid, dpdcid;
    uint8_t cc_type, cc_flags, mpr;
    int16_t sack_psn_offset;
    uint64_t sack_bitmap;
    uint16_t service_time;
    bool rc;
    uint8_t rcv_cwnd_pend;
    uint32_t rcvd_bytes;
    uint32_t credit;
    uint16_t ooo_count;
    uint64_t ack_cc_state;
};

struct uet_nack_fields {
    uint8_t type, next_hdr;
    bool m, retx, nt;
    uint8_t nack_code, vendor_code;
    uint32_t nack_psn, nack_pkt_id;
    uint16_t spdcid, dpdcid;
    uint32_t payload;
};

/* The fields of the layers around UET that are kept. */
struct uet_outer {
    uint8_t dscp, ecn, ttl;
    uint32_t src, dst;
    uint16_t entropy;
};

/* Parse a packet and keep every field; false when it is not whole, or not of this kind. */
bool uet_get_request_std(const uint8_t *bytes, size_t length, struct uet_request_std *out);
bool uet_get_ack_response(const uint8_t *bytes, size_t length, struct uet_ack_response *out);
bool uet_get_ack_cc(const uint8_t *bytes, size_t length, struct uet_ack_cc_fields *out);
bool uet_get_nack(const uint8_t *bytes, size_t length, struct uet_nack_fields *out);

/* These start at Ethernet, over IPv4. */
bool uet_frame_request_std(const uint8_t *bytes, size_t length, struct uet_outer *outer, struct uet_request_std *out);
bool uet_frame_ack_response(const uint8_t *bytes, size_t length, struct uet_outer *outer, struct uet_ack_response *out);
bool uet_frame_ack_cc(const uint8_t *bytes, size_t length, struct uet_outer *outer, struct uet_ack_cc_fields *out);
bool uet_frame_nack(const uint8_t *bytes, size_t length, struct uet_outer *outer, struct uet_nack_fields *out);

/* Write the headers from the fields: byte swaps and stores, behind the check of the buffer and of every value that
 * its field might not hold. Gives the length, 0 when something does not fit. Type and next header are those of
 * the kind of packet. */
size_t uet_put_request_std(const struct uet_request_std *in, uint8_t *buffer, size_t length);
size_t uet_put_ack_response(const struct uet_ack_response *in, uint8_t *buffer, size_t length);
size_t uet_put_ack_cc(const struct uet_ack_cc_fields *in, uint8_t *buffer, size_t length);
size_t uet_put_nack(const struct uet_nack_fields *in, uint8_t *buffer, size_t length);

#endif
