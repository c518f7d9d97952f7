/* A parser of Ultra Ethernet Transport under test: implement `uet_parse_under_test`, and see docs/fuzzing.md.
 *
 * Made by `cargo run -p uet-under-test --example header` from the tables of uet-wire. */
#ifndef UET_UNDER_TEST_H
#define UET_UNDER_TEST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum uet_field {
    UET_ETH_DST, /* eth.dst */
    UET_ETH_SRC, /* eth.src */
    UET_ETH_TYPE, /* eth.type */
    UET_VLAN_PCP, /* vlan.pcp */
    UET_VLAN_DEI, /* vlan.dei */
    UET_VLAN_ID, /* vlan.id */
    UET_VLAN_TYPE, /* vlan.type */
    UET_IP_VERSION, /* ip.version */
    UET_IP_IHL, /* ip.ihl */
    UET_IP_DSCP, /* ip.dscp */
    UET_IP_ECN, /* ip.ecn */
    UET_IP_TOTAL_LENGTH, /* ip.total_length */
    UET_IP_ID, /* ip.id */
    UET_IP_DF, /* ip.df */
    UET_IP_MF, /* ip.mf */
    UET_IP_FRAG_OFFSET, /* ip.frag_offset */
    UET_IP_TTL, /* ip.ttl */
    UET_IP_PROTO, /* ip.proto */
    UET_IP_CHECKSUM, /* ip.checksum */
    UET_IP_SRC, /* ip.src */
    UET_IP_DST, /* ip.dst */
    UET_IP_FLOW_LABEL, /* ip.flow_label */
    UET_IP_PAYLOAD_LENGTH, /* ip.payload_length */
    UET_UDP_SRC_PORT, /* udp.src_port */
    UET_UDP_DST_PORT, /* udp.dst_port */
    UET_UDP_LENGTH, /* udp.length */
    UET_UDP_CHECKSUM, /* udp.checksum */
    UET_PDS_ENTROPY, /* pds.entropy */
    UET_TSS_TYPE, /* tss.type */
    UET_TSS_SP, /* tss.sp */
    UET_TSS_AN, /* tss.an */
    UET_TSS_SDI, /* tss.sdi */
    UET_TSS_EPOCH, /* tss.epoch */
    UET_TSS_COUNTER, /* tss.counter */
    UET_TSS_SSI, /* tss.ssi */
    UET_PDS_TYPE, /* pds.type */
    UET_PDS_NEXT_HDR, /* pds.next_hdr */
    UET_PDS_FLAGS, /* pds.flags */
    UET_PDS_FLAGS_RETX, /* pds.flags.retx */
    UET_PDS_FLAGS_AR, /* pds.flags.ar */
    UET_PDS_FLAGS_SYN, /* pds.flags.syn */
    UET_PDS_CLEAR_PSN_OFFSET, /* pds.clear_psn_offset */
    UET_PDS_PSN, /* pds.psn */
    UET_PDS_SPDCID, /* pds.spdcid */
    UET_PDS_DPDCID, /* pds.dpdcid */
    UET_PDS_PDC_INFO, /* pds.pdc_info */
    UET_PDS_PSN_OFFSET, /* pds.psn_offset */
    UET_PDS_CCC_ID, /* pds.ccc_id */
    UET_PDS_CREDIT_TARGET, /* pds.credit_target */
    UET_PDS_FLAGS_M, /* pds.flags.m */
    UET_PDS_PKT_ID, /* pds.pkt_id */
    UET_PDS_FLAGS_P, /* pds.flags.p */
    UET_PDS_FLAGS_REQ, /* pds.flags.req */
    UET_PDS_ACK_PSN_OFFSET, /* pds.ack_psn_offset */
    UET_PDS_PROBE_OPAQUE, /* pds.probe_opaque */
    UET_PDS_CACK_PSN, /* pds.cack_psn */
    UET_PDS_CC_TYPE, /* pds.cc_type */
    UET_PDS_CC_FLAGS, /* pds.cc_flags */
    UET_PDS_MPR, /* pds.mpr */
    UET_PDS_SACK_PSN_OFFSET, /* pds.sack_psn_offset */
    UET_PDS_SACK_BITMAP, /* pds.sack_bitmap */
    UET_PDS_SERVICE_TIME, /* pds.service_time */
    UET_PDS_RC, /* pds.rc */
    UET_PDS_RCV_CWND_PEND, /* pds.rcv_cwnd_pend */
    UET_PDS_RCVD_BYTES, /* pds.rcvd_bytes */
    UET_PDS_CREDIT, /* pds.credit */
    UET_PDS_OOO_COUNT, /* pds.ooo_count */
    UET_PDS_ACK_CC_STATE, /* pds.ack_cc_state */
    UET_PDS_CCX_TYPE, /* pds.ccx_type */
    UET_PDS_ACK_CCX_STATE, /* pds.ack_ccx_state */
    UET_PDS_FLAGS_NT, /* pds.flags.nt */
    UET_PDS_NACK_CODE, /* pds.nack_code */
    UET_PDS_VENDOR_CODE, /* pds.vendor_code */
    UET_PDS_NACK_PSN, /* pds.nack_psn */
    UET_PDS_NACK_PKT_ID, /* pds.nack_pkt_id */
    UET_PDS_PAYLOAD, /* pds.payload */
    UET_PDS_NCCX_TYPE, /* pds.nccx_type */
    UET_PDS_NACK_CCX_STATE, /* pds.nack_ccx_state */
    UET_PDS_CTL_TYPE, /* pds.ctl_type */
    UET_PDS_FLAGS_ISROD, /* pds.flags.isrod */
    UET_SES_OPCODE, /* ses.opcode */
    UET_SES_VERSION, /* ses.version */
    UET_SES_DC, /* ses.dc */
    UET_SES_IE, /* ses.ie */
    UET_SES_REL, /* ses.rel */
    UET_SES_HD, /* ses.hd */
    UET_SES_EOM, /* ses.eom */
    UET_SES_SOM, /* ses.som */
    UET_SES_REQUEST_LENGTH, /* ses.request_length */
    UET_SES_RI_GENERATION, /* ses.ri_generation */
    UET_SES_JOB_ID, /* ses.job_id */
    UET_SES_PID_ON_FEP, /* ses.pid_on_fep */
    UET_SES_RESOURCE_INDEX, /* ses.resource_index */
    UET_SES_BUFFER_OFFSET, /* ses.buffer_offset */
    UET_SES_HEADER_DATA, /* ses.header_data */
    UET_SES_INITIATOR, /* ses.initiator */
    UET_SES_MEMORY_KEY, /* ses.memory_key */
    UET_SES_MATCH_BITS, /* ses.match_bits */
    UET_SES_MESSAGE_ID, /* ses.message_id */
    UET_SES_INITIATOR_RESTART_TOKEN, /* ses.initiator_restart_token */
    UET_SES_TARGET_RESTART_TOKEN, /* ses.target_restart_token */
    UET_SES_PAYLOAD_LENGTH, /* ses.payload_length */
    UET_SES_MESSAGE_OFFSET, /* ses.message_offset */
    UET_SES_LIST, /* ses.list */
    UET_SES_RETURN_CODE, /* ses.return_code */
    UET_SES_MODIFIED_LENGTH, /* ses.modified_length */
    UET_SES_RESPONSE_MESSAGE_ID, /* ses.response_message_id */
    UET_SES_READ_REQUEST_MESSAGE_ID, /* ses.read_request_message_id */
    UET_SES_ORIGINAL_REQUEST_PSN, /* ses.original_request_psn */
    UET_SES_EAGER_LENGTH, /* ses.eager_length */
    UET_SES_READ_RI_GENERATION, /* ses.read_ri_generation */
    UET_SES_READ_PID_ON_FEP, /* ses.read_pid_on_fep */
    UET_SES_READ_RESOURCE_INDEX, /* ses.read_resource_index */
    UET_SES_READ_OFFSET, /* ses.read_offset */
    UET_SES_READ_MEMORY_KEY, /* ses.read_memory_key */
    UET_SES_ATOMIC_OPCODE, /* ses.atomic_opcode */
    UET_SES_ATOMIC_DATATYPE, /* ses.atomic_datatype */
    UET_SES_SEMANTIC_CONTROL, /* ses.semantic_control */
    UET_SES_COMPARE_VALUE, /* ses.compare_value */
    UET_SES_SWAP_VALUE, /* ses.swap_value */
    UET_FIELDS
};

/* The result of the parser for a field. */
enum uet_state {
    /* The packet does not have it. This is the default. */
    UET_ABSENT = 0,
    /* The packet has it, with this value. */
    UET_PRESENT = 1,
    /* The parser does not read it, and it is not compared. */
    UET_NOT_REPORTED = 2
};

/* The raw bits of a field, right-aligned; `high` only for fields of more than 64 bits. */
struct uet_value {
    uint64_t high, low;
};

struct uet_view {
    uint8_t state[UET_FIELDS];
    struct uet_value value[UET_FIELDS];
    /* The payload: set UET_PRESENT with its place. The default is UET_NOT_REPORTED. */
    uint8_t payload_state;
    size_t payload_offset, payload_length;
};

/* The return value of the parser. */
enum uet_answer {
    /* The parser does not implement this kind of packet, and nothing is compared. */
    UET_LEFT_OUT = -1,
    UET_READ = 0,
    /* A header is cut, or a length is wrong. */
    UET_REFUSED = 1
};

/* Reads the packet in `length` bytes. It starts with UET (behind UDP), or with Ethernet, IP or UDP if UET_START
 * says so. */
int uet_parse_under_test(const uint8_t *bytes, size_t length, struct uet_view *view);

static inline void uet_says(struct uet_view *view, enum uet_field field, uint64_t value)
{
    view->state[field] = UET_PRESENT;
    view->value[field].low = value;
}

/* Says that the parser reads only the fields that `uet_says` names from here on. Call it first. */
static inline void uet_reports_only(struct uet_view *view)
{
    for (int field = 0; field < UET_FIELDS; field++)
        view->state[field] = UET_NOT_REPORTED;
}

#ifdef __cplusplus
}
#endif

#endif
