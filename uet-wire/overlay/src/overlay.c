#include "overlay.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#define PACKED __attribute__((packed))
/* The parsers are inlined into each caller, as a program that reads one kind of packet would have them. */
#define INLINE static inline __attribute__((always_inline))

/* ---- the headers, as they lie on the wire; members are big-endian ---- */

struct eth { uint8_t dst[6], src[6]; uint16_t type; } PACKED;
struct vlan { uint16_t tci, type; } PACKED;
struct ipv4 {
    uint8_t version_ihl, tos;
    uint16_t total_length, id, fragment;
    uint8_t ttl, proto;
    uint16_t checksum;
    uint32_t src, dst;
} PACKED;
struct ipv6 {
    uint32_t version_class_flow;
    uint16_t payload_length;
    uint8_t next_header, hop_limit;
    uint64_t src[2], dst[2];
} PACKED;
struct ipv6_ext { uint8_t next_header, length; } PACKED;
struct ipv6_fragment { uint8_t next_header, reserved; uint16_t offset; uint32_t id; } PACKED;
struct udp { uint16_t src_port, dst_port, length, checksum; } PACKED;
struct entropy { uint16_t entropy, reserved; } PACKED;

struct tss_head { uint32_t word; } PACKED;
struct tss { uint32_t word; uint64_t tsc; } PACKED;
struct tss_ssi { uint32_t word, ssi; uint64_t tsc; } PACKED;

/* Every PDS header starts with type(5) next_hdr or ctl_type(4) flags(7). */
struct prologue { uint16_t prologue; } PACKED;
struct request {
    uint16_t prologue, clear_psn_offset;
    uint32_t psn;
    uint16_t spdcid, dpdcid;
} PACKED;
struct request_cc { struct request request; uint32_t ccc; } PACKED;
struct rudi { uint16_t prologue, reserved; uint32_t pkt_id; } PACKED;
struct uud { uint16_t prologue, reserved; } PACKED;
struct ack {
    uint16_t prologue, offset;
    uint32_t cack_psn;
    uint16_t spdcid, dpdcid;
} PACKED;
struct ack_cc {
    struct ack ack;
    uint8_t cc, mpr;
    uint16_t sack_psn_offset;
    uint64_t sack_bitmap, state;
} PACKED;
struct ack_ccx {
    struct ack ack;
    uint8_t cc, mpr;
    uint16_t sack_psn_offset;
    uint64_t sack_bitmap, state[2];
} PACKED;
struct nack {
    uint16_t prologue;
    uint8_t code, vendor_code;
    uint32_t psn;
    uint16_t spdcid, dpdcid;
    uint32_t payload;
} PACKED;
struct nack_ccx { struct nack nack; uint64_t state[2]; } PACKED;
struct control {
    uint16_t prologue, probe_opaque;
    uint32_t psn;
    uint16_t spdcid, dpdcid;
    uint32_t payload;
} PACKED;

/* Every request starts with these twelve bytes. */
struct common {
    uint8_t opcode, flags;
    uint16_t id_or_length;
    uint32_t generation_job;
    uint16_t pid, index;
} PACKED;
struct small { struct common common; uint64_t buffer_offset; } PACKED;
struct medium {
    struct common common;
    uint64_t data_or_offset;
    uint32_t initiator;
    uint64_t key;
} PACKED;
struct std {
    struct common common;
    uint64_t buffer_offset;
    uint32_t initiator;
    uint64_t key, header_data;
    uint32_t request_length;
} PACKED;
struct response {
    uint8_t list_opcode, version_code;
    uint16_t message_id;
    uint32_t generation_job, modified_length;
} PACKED;
struct response_data {
    uint8_t list_opcode, version_code;
    uint16_t response_message_id;
    uint32_t job;
    uint16_t read_request_message_id, payload_length;
    uint32_t modified_length, message_offset;
} PACKED;
struct response_data_small {
    uint8_t list_opcode, version_code;
    uint16_t payload_length;
    uint32_t job, original_request_psn;
} PACKED;
struct rendezvous {
    uint32_t eager_length, generation_pid_index;
    uint64_t read_offset, read_memory_key;
} PACKED;
struct atomic { uint8_t opcode, datatype, semantic_control, reserved; } PACKED;
struct compare_swap { struct atomic atomic; uint64_t compare[2], swap[2]; } PACKED;
struct crc { uint32_t crc; } PACKED;
struct icv { uint64_t icv[2]; } PACKED;

enum {
    TYPE_TSS = 1, TYPE_RUD_REQ, TYPE_ROD_REQ, TYPE_RUDI_REQ, TYPE_RUDI_RESP, TYPE_UUD_REQ, TYPE_ACK, TYPE_ACK_CC,
    TYPE_ACK_CCX, TYPE_NACK, TYPE_CP, TYPE_NACK_CCX, TYPE_RUD_CC_REQ, TYPE_ROD_CC_REQ,
};
enum { NEXT_SMALL = 1, NEXT_MEDIUM, NEXT_STD, NEXT_RESPONSE, NEXT_RESPONSE_DATA, NEXT_RESPONSE_DATA_SMALL };
enum {
    OP_WRITE = 0x01, OP_READ = 0x02, OP_ATOMIC = 0x03, OP_FETCHING_ATOMIC = 0x04, OP_RENDEZVOUS_SEND = 0x06,
    OP_DEFERRABLE_SEND = 0x08, OP_RENDEZVOUS_TSEND = 0x0a, OP_DEFERRABLE_TSEND = 0x0b, OP_DEFERRABLE_RTR = 0x0c,
    OP_TSEND_ATOMIC = 0x0d, OP_TSEND_FETCH_ATOMIC = 0x0e,
};
enum { CTL_PROBE = 6, CC_NSCC = 0, CC_CREDIT = 1, ATOMIC_CSWAP = 0x0d, ATOMIC_CSWAP_GT = 0x12 };
enum { FLAG_M = 0x20, FLAG_ISROD = 0x20, FLAG_RETX = 0x10, FLAG_AR = 0x08, FLAG_P = 0x08, FLAG_NT = 0x08,
       FLAG_SYN = 0x04 };
enum { SES_DC = 0x20, SES_IE = 0x10, SES_REL = 0x08, SES_HD = 0x04, SES_EOM = 0x02, SES_SOM = 0x01 };

INLINE uint8_t prologue_type(uint16_t prologue) { return prologue >> 11; }
INLINE uint8_t prologue_next(uint16_t prologue) { return prologue >> 7 & 15; }

INLINE bool is_deferrable(uint8_t opcode)
{
    return opcode == OP_DEFERRABLE_SEND || opcode == OP_DEFERRABLE_TSEND;
}

INLINE bool is_keyed(uint8_t opcode) { return opcode >= OP_WRITE && opcode <= OP_FETCHING_ATOMIC; }

/* ---- one header, every field ---- */

#define SET(id, value) (v->present[UET_F_##id] = 1, v->hi[UET_F_##id] = 0, v->lo[UET_F_##id] = (value))
#define SET2(id, words) \
    (v->present[UET_F_##id] = 1, v->hi[UET_F_##id] = be64toh((words)[0]), v->lo[UET_F_##id] = be64toh((words)[1]))
#define VIEW(name) static void view_##name(const struct name *h, struct uet_view *v)

static uint64_t mac(const uint8_t *m)
{
    uint64_t value = 0;
    for (int i = 0; i < 6; i++)
        value = value << 8 | m[i];
    return value;
}

VIEW(eth) { SET(ETH_DST, mac(h->dst)); SET(ETH_SRC, mac(h->src)); SET(ETH_TYPE, ntohs(h->type)); }

VIEW(vlan)
{
    uint16_t tci = ntohs(h->tci);
    SET(VLAN_PCP, tci >> 13); SET(VLAN_DEI, tci >> 12 & 1); SET(VLAN_ID, tci & 0xfff); SET(VLAN_TYPE, ntohs(h->type));
}

VIEW(ipv4)
{
    uint16_t fragment = ntohs(h->fragment);
    SET(IP_VERSION, h->version_ihl >> 4); SET(IP_IHL, h->version_ihl & 15);
    SET(IP_DSCP, h->tos >> 2); SET(IP_ECN, h->tos & 3);
    SET(IP_TOTAL_LENGTH, ntohs(h->total_length)); SET(IP_ID, ntohs(h->id));
    SET(IP_DF, fragment >> 14 & 1); SET(IP_MF, fragment >> 13 & 1); SET(IP_FRAG_OFFSET, fragment & 0x1fff);
    SET(IP_TTL, h->ttl); SET(IP_PROTO, h->proto); SET(IP_CHECKSUM, ntohs(h->checksum));
    SET(IP_SRC, ntohl(h->src)); SET(IP_DST, ntohl(h->dst));
}

VIEW(ipv6)
{
    uint32_t word = ntohl(h->version_class_flow);
    SET(IP_VERSION, word >> 28); SET(IP_DSCP, word >> 22 & 63); SET(IP_ECN, word >> 20 & 3);
    SET(IP_FLOW_LABEL, word & 0xfffff); SET(IP_PAYLOAD_LENGTH, ntohs(h->payload_length));
    SET(IP_PROTO, h->next_header); SET(IP_TTL, h->hop_limit); SET2(IP_SRC, h->src); SET2(IP_DST, h->dst);
}

VIEW(ipv6_ext) { SET(IP_EXT_PROTO, h->next_header); SET(IP_EXT_LENGTH, h->length); }

VIEW(ipv6_fragment)
{
    uint16_t offset = ntohs(h->offset);
    SET(IP_EXT_PROTO, h->next_header); SET(IP_FRAG_OFFSET, offset >> 3); SET(IP_MF, offset & 1);
    SET(IP_ID, ntohl(h->id));
}

VIEW(udp)
{
    SET(UDP_SRC_PORT, ntohs(h->src_port)); SET(UDP_DST_PORT, ntohs(h->dst_port));
    SET(UDP_LENGTH, ntohs(h->length)); SET(UDP_CHECKSUM, ntohs(h->checksum));
}

VIEW(entropy) { SET(PDS_ENTROPY, ntohs(h->entropy)); }

VIEW(tss_head)
{
    uint32_t word = ntohl(h->word);
    SET(TSS_TYPE, word >> 27); SET(TSS_SP, word >> 26 & 1); SET(TSS_AN, word >> 24 & 1); SET(TSS_SDI, word & 0xffffff);
}

static void view_tsc(uint64_t tsc, struct uet_view *v)
{
    SET(TSS_EPOCH, tsc >> 48); SET(TSS_COUNTER, tsc & 0xffffffffffff);
}

VIEW(tss) { view_tss_head((const struct tss_head *)h, v); view_tsc(be64toh(h->tsc), v); }

VIEW(tss_ssi)
{
    view_tss_head((const struct tss_head *)h, v);
    SET(TSS_SSI_FIELD, ntohl(h->ssi));
    view_tsc(be64toh(h->tsc), v);
}

VIEW(prologue)
{
    uint16_t word = ntohs(h->prologue);
    SET(PDS_TYPE, prologue_type(word)); SET(PDS_NEXT_HDR, prologue_next(word)); SET(PDS_FLAGS, word & 0x7f);
}

/* The last word of the first twelve bytes: where the packet goes, or how the context opens. */
static void view_syn(uint16_t prologue, uint16_t word, struct uet_view *v)
{
    SET(PDS_SYN, !!(prologue & FLAG_SYN));
    if (prologue & FLAG_SYN) {
        SET(PDS_PDC_INFO, word >> 12); SET(PDS_PSN_OFFSET, word & 0xfff);
    } else {
        SET(PDS_DPDCID, word);
    }
}

VIEW(request)
{
    uint16_t word = ntohs(h->prologue);
    view_prologue((const struct prologue *)h, v);
    SET(PDS_RETX, !!(word & FLAG_RETX)); SET(PDS_AR, !!(word & FLAG_AR));
    SET(PDS_CLEAR_PSN_OFFSET, ntohs(h->clear_psn_offset)); SET(PDS_PSN, ntohl(h->psn));
    SET(PDS_SPDCID, ntohs(h->spdcid));
    view_syn(word, ntohs(h->dpdcid), v);
}

VIEW(request_cc)
{
    uint32_t ccc = ntohl(h->ccc);
    view_request(&h->request, v);
    SET(PDS_CCC_ID, ccc >> 24); SET(PDS_CREDIT_TARGET, ccc & 0xffffff);
}

VIEW(rudi)
{
    uint16_t word = ntohs(h->prologue);
    view_prologue((const struct prologue *)h, v);
    if (prologue_type(word) == TYPE_RUDI_RESP)
        SET(PDS_M, !!(word & FLAG_M));
    SET(PDS_RETX, !!(word & FLAG_RETX)); SET(PDS_PKT_ID, ntohl(h->pkt_id));
}

VIEW(uud) { view_prologue((const struct prologue *)h, v); }

VIEW(ack)
{
    uint16_t word = ntohs(h->prologue);
    view_prologue((const struct prologue *)h, v);
    SET(PDS_M, !!(word & FLAG_M)); SET(PDS_RETX, !!(word & FLAG_RETX)); SET(PDS_P, !!(word & FLAG_P));
    SET(PDS_REQ, word >> 1 & 3);
    if (word & FLAG_P)
        SET(PDS_PROBE_OPAQUE, ntohs(h->offset));
    else
        SET(PDS_ACK_PSN_OFFSET, ntohs(h->offset));
    SET(PDS_CACK_PSN, ntohl(h->cack_psn)); SET(PDS_SPDCID, ntohs(h->spdcid)); SET(PDS_DPDCID, ntohs(h->dpdcid));
}

static void view_sack(const struct ack_cc *h, struct uet_view *v)
{
    view_ack(&h->ack, v);
    SET(PDS_CC_FLAGS, h->cc & 15); SET(PDS_MPR, h->mpr);
    SET(PDS_SACK_PSN_OFFSET, ntohs(h->sack_psn_offset)); SET(PDS_SACK_BITMAP, be64toh(h->sack_bitmap));
}

VIEW(ack_cc)
{
    uint64_t state = be64toh(h->state);
    view_sack(h, v);
    SET(PDS_CC_TYPE, h->cc >> 4);
    switch (h->cc >> 4) {
    case CC_NSCC:
        SET(PDS_SERVICE_TIME, state >> 48); SET(PDS_RC, state >> 47 & 1); SET(PDS_RCV_CWND_PEND, state >> 40 & 0x7f);
        SET(PDS_RCVD_BYTES, state >> 16 & 0xffffff); SET(PDS_OOO_COUNT, state & 0xffff);
        break;
    case CC_CREDIT:
        SET(PDS_CREDIT, state >> 40); SET(PDS_OOO_COUNT, state & 0xffff);
        break;
    default:
        SET(PDS_ACK_CC_STATE, state);
    }
}

VIEW(ack_ccx)
{
    /* Up to the bitmap an ACK_CCX lies as an ACK_CC does. */
    view_sack((const struct ack_cc *)h, v);
    SET(PDS_CCX_TYPE, h->cc >> 4); SET2(PDS_ACK_CCX_STATE, h->state);
}

VIEW(nack)
{
    uint16_t word = ntohs(h->prologue);
    view_prologue((const struct prologue *)h, v);
    SET(PDS_M, !!(word & FLAG_M)); SET(PDS_RETX, !!(word & FLAG_RETX)); SET(PDS_NT, !!(word & FLAG_NT));
    SET(PDS_NACK_CODE, h->code); SET(PDS_VENDOR_CODE, h->vendor_code);
    if (word & FLAG_NT)
        SET(PDS_NACK_PKT_ID, ntohl(h->psn));
    else
        SET(PDS_NACK_PSN, ntohl(h->psn));
    SET(PDS_SPDCID, ntohs(h->spdcid)); SET(PDS_DPDCID, ntohs(h->dpdcid)); SET(PDS_PAYLOAD, ntohl(h->payload));
}

VIEW(nack_ccx)
{
    view_nack(&h->nack, v);
    SET2(PDS_NACK_CCX_STATE, h->state);
    SET(PDS_NCCX_TYPE, v->hi[UET_F_PDS_NACK_CCX_STATE] >> 60);
    v->hi[UET_F_PDS_NACK_CCX_STATE] &= 0x0fffffffffffffff;
}

VIEW(control)
{
    uint16_t word = ntohs(h->prologue);
    SET(PDS_TYPE, prologue_type(word)); SET(PDS_CTL_TYPE, prologue_next(word)); SET(PDS_FLAGS, word & 0x7f);
    SET(PDS_ISROD, !!(word & FLAG_ISROD)); SET(PDS_RETX, !!(word & FLAG_RETX)); SET(PDS_AR, !!(word & FLAG_AR));
    if (prologue_next(word) == CTL_PROBE)
        SET(PDS_PROBE_OPAQUE, ntohs(h->probe_opaque));
    SET(PDS_PSN, ntohl(h->psn)); SET(PDS_SPDCID, ntohs(h->spdcid));
    view_syn(word, ntohs(h->dpdcid), v);
    SET(PDS_PAYLOAD, ntohl(h->payload));
}

VIEW(common)
{
    uint32_t job = ntohl(h->generation_job);
    SET(SES_OPCODE, h->opcode & 0x3f); SET(SES_VERSION, h->flags >> 6);
    SET(SES_DC, !!(h->flags & SES_DC)); SET(SES_IE, !!(h->flags & SES_IE)); SET(SES_REL, !!(h->flags & SES_REL));
    SET(SES_HD, !!(h->flags & SES_HD)); SET(SES_EOM, !!(h->flags & SES_EOM)); SET(SES_SOM, !!(h->flags & SES_SOM));
    SET(SES_RI_GENERATION, job >> 24); SET(SES_JOB_ID, job & 0xffffff);
    SET(SES_PID_ON_FEP, ntohs(h->pid) & 0xfff); SET(SES_RESOURCE_INDEX, ntohs(h->index) & 0xfff);
}

VIEW(small)
{
    view_common(&h->common, v);
    SET(SES_REQUEST_LENGTH, ntohs(h->common.id_or_length) & 0x3fff);
    SET(SES_BUFFER_OFFSET, be64toh(h->buffer_offset));
}

VIEW(medium)
{
    view_common(&h->common, v);
    SET(SES_REQUEST_LENGTH, ntohs(h->common.id_or_length) & 0x3fff);
    if (h->common.flags & SES_HD)
        SET(SES_HEADER_DATA, be64toh(h->data_or_offset));
    else
        SET(SES_BUFFER_OFFSET, be64toh(h->data_or_offset));
    SET(SES_INITIATOR, ntohl(h->initiator));
    if (is_keyed(h->common.opcode & 0x3f))
        SET(SES_MEMORY_KEY, be64toh(h->key));
    else
        SET(SES_MATCH_BITS, be64toh(h->key));
}

static void view_tokens(uint64_t both, struct uet_view *v)
{
    SET(SES_INITIATOR_RESTART_TOKEN, both >> 32); SET(SES_TARGET_RESTART_TOKEN, both & 0xffffffff);
}

VIEW(std)
{
    uint8_t opcode = h->common.opcode & 0x3f;
    view_common(&h->common, v);
    SET(SES_MESSAGE_ID, ntohs(h->common.id_or_length));
    if (is_deferrable(opcode))
        view_tokens(be64toh(h->buffer_offset), v);
    else
        SET(SES_BUFFER_OFFSET, be64toh(h->buffer_offset));
    SET(SES_INITIATOR, ntohl(h->initiator));
    if (opcode == OP_DEFERRABLE_RTR)
        view_tokens(be64toh(h->key), v);
    else if (is_keyed(opcode))
        SET(SES_MEMORY_KEY, be64toh(h->key));
    else
        SET(SES_MATCH_BITS, be64toh(h->key));
    if (h->common.flags & SES_SOM) {
        SET(SES_HEADER_DATA, be64toh(h->header_data));
    } else {
        SET(SES_PAYLOAD_LENGTH, be64toh(h->header_data) >> 32 & 0x3fff);
        SET(SES_MESSAGE_OFFSET, be64toh(h->header_data) & 0xffffffff);
    }
    SET(SES_REQUEST_LENGTH, ntohl(h->request_length));
}

static void view_response_head(uint8_t first, uint8_t second, struct uet_view *v)
{
    SET(SES_LIST, first >> 6); SET(SES_OPCODE, first & 0x3f);
    SET(SES_VERSION, second >> 6); SET(SES_RETURN_CODE, second & 0x3f);
}

VIEW(response)
{
    uint32_t job = ntohl(h->generation_job);
    view_response_head(h->list_opcode, h->version_code, v);
    SET(SES_MESSAGE_ID, ntohs(h->message_id)); SET(SES_RI_GENERATION, job >> 24); SET(SES_JOB_ID, job & 0xffffff);
    SET(SES_MODIFIED_LENGTH, ntohl(h->modified_length));
}

VIEW(response_data)
{
    view_response_head(h->list_opcode, h->version_code, v);
    SET(SES_RESPONSE_MESSAGE_ID, ntohs(h->response_message_id)); SET(SES_JOB_ID, ntohl(h->job) & 0xffffff);
    SET(SES_READ_REQUEST_MESSAGE_ID, ntohs(h->read_request_message_id));
    SET(SES_PAYLOAD_LENGTH, ntohs(h->payload_length) & 0x3fff);
    SET(SES_MODIFIED_LENGTH, ntohl(h->modified_length)); SET(SES_MESSAGE_OFFSET, ntohl(h->message_offset));
}

VIEW(response_data_small)
{
    view_response_head(h->list_opcode, h->version_code, v);
    SET(SES_PAYLOAD_LENGTH, ntohs(h->payload_length) & 0x3fff); SET(SES_JOB_ID, ntohl(h->job) & 0xffffff);
    SET(SES_ORIGINAL_REQUEST_PSN, ntohl(h->original_request_psn));
}

VIEW(rendezvous)
{
    uint32_t word = ntohl(h->generation_pid_index);
    SET(SES_EAGER_LENGTH, ntohl(h->eager_length)); SET(SES_READ_RI_GENERATION, word >> 24);
    SET(SES_READ_PID_ON_FEP, word >> 12 & 0xfff); SET(SES_READ_RESOURCE_INDEX, word & 0xfff);
    SET(SES_READ_OFFSET, be64toh(h->read_offset)); SET(SES_READ_MEMORY_KEY, be64toh(h->read_memory_key));
}

VIEW(atomic)
{
    SET(SES_ATOMIC_OPCODE, h->opcode); SET(SES_ATOMIC_DATATYPE, h->datatype);
    SET(SES_SEMANTIC_CONTROL, h->semantic_control);
}

VIEW(compare_swap)
{
    view_atomic(&h->atomic, v);
    SET2(SES_COMPARE_VALUE, h->compare); SET2(SES_SWAP_VALUE, h->swap);
}

VIEW(crc) { SET(CRC_VALUE, ntohl(h->crc)); }
VIEW(icv) { SET2(ICV_VALUE, h->icv); }

const size_t uet_header_count = UET_HEADER_COUNT, uet_field_count = UET_FIELD_COUNT;

const char *const uet_header_names[UET_HEADER_COUNT] = {
#define X(id, name) [UET_##id] = name,
    UET_HEADERS(X)
#undef X
};

const char *const uet_field_names[UET_FIELD_COUNT] = {
#define X(id, name) [UET_F_##id] = name,
    UET_FIELDS(X)
#undef X
};

/* The structs above in the order of UET_HEADERS. */
#define STRUCTS(X) \
    X(ETH, eth) X(VLAN, vlan) X(IPV4, ipv4) X(IPV6, ipv6) X(IPV6_EXT, ipv6_ext) X(IPV6_FRAGMENT, ipv6_fragment) \
    X(UDP, udp) X(ENTROPY, entropy) X(TSS_HEAD, tss_head) X(TSS, tss) X(TSS_SSI, tss_ssi) X(PROLOGUE, prologue) \
    X(REQUEST, request) X(REQUEST_CC, request_cc) X(RUDI, rudi) X(UUD, uud) X(ACK, ack) X(ACK_CC, ack_cc) \
    X(ACK_CCX, ack_ccx) X(NACK, nack) X(NACK_CCX, nack_ccx) X(CONTROL, control) X(SMALL, small) \
    X(MEDIUM, medium) X(STD, std) X(RESPONSE, response) X(RESPONSE_DATA, response_data) \
    X(RESPONSE_DATA_SMALL, response_data_small) X(RENDEZVOUS, rendezvous) X(ATOMIC, atomic) \
    X(COMPARE_SWAP, compare_swap) X(CRC, crc) X(ICV, icv)

const size_t uet_header_sizes[UET_HEADER_COUNT] = {
#define X(id, name) [UET_##id] = sizeof(struct name),
    STRUCTS(X)
#undef X
};

bool uet_read_header(size_t header, const uint8_t *bytes, size_t length, struct uet_view *view)
{
    if (header >= UET_HEADER_COUNT || length < uet_header_sizes[header])
        return false;
    memset(view, 0, sizeof *view);
    switch (header) {
#define X(id, name) \
    case UET_##id: \
        view_##name((const struct name *)bytes, view); \
        break;
        STRUCTS(X)
#undef X
    }
    return true;
}

/* ---- a packet, from where UET starts ---- */

struct packet {
    const uint8_t *tss, *pds, *ses, *ext, *payload;
    size_t payload_length;
    uint8_t tss_is, pds_is, ses_is, ext_is;
    /* Where reading stopped. */
    uint8_t stopped_in;
    const uint8_t *stopped_at;
};

#define STOP(header) \
    do { \
        out->stopped_in = (header); \
        out->stopped_at = p; \
        return false; \
    } while (0)

/* The header at `p`, or the end of the parse. */
#define TAKE(layer, header, type) \
    do { \
        if (n < sizeof(struct type)) \
            STOP(UET_##header); \
        out->layer = p; \
        out->layer##_is = UET_##header; \
        p += sizeof(struct type); \
        n -= sizeof(struct type); \
    } while (0)

INLINE bool parse(const uint8_t *p, size_t n, struct packet *out)
{
    *out = (struct packet){ .stopped_in = UET_HEADER_COUNT };
    uint16_t prologue;
    if (n >= sizeof(struct prologue))
        prologue = ntohs(((const struct prologue *)p)->prologue);
    else if (n)
        prologue = p[0] << 8; /* the first byte tells which header is cut */
    else
        STOP(UET_PROLOGUE);
    uint8_t next = prologue_next(prologue);
    switch (prologue_type(prologue)) {
    case TYPE_TSS:
        if (p[0] & 4)
            TAKE(tss, TSS_SSI, tss_ssi);
        else
            TAKE(tss, TSS, tss);
        next = 0;
        break;
    case TYPE_RUD_REQ:
    case TYPE_ROD_REQ:
        TAKE(pds, REQUEST, request);
        break;
    case TYPE_RUD_CC_REQ:
    case TYPE_ROD_CC_REQ:
        TAKE(pds, REQUEST_CC, request_cc);
        break;
    case TYPE_RUDI_REQ:
    case TYPE_RUDI_RESP:
        TAKE(pds, RUDI, rudi);
        break;
    case TYPE_UUD_REQ:
        TAKE(pds, UUD, uud);
        break;
    case TYPE_ACK:
        TAKE(pds, ACK, ack);
        break;
    case TYPE_ACK_CC:
        TAKE(pds, ACK_CC, ack_cc);
        break;
    case TYPE_ACK_CCX:
        TAKE(pds, ACK_CCX, ack_ccx);
        break;
    case TYPE_NACK:
        TAKE(pds, NACK, nack);
        break;
    case TYPE_NACK_CCX:
        TAKE(pds, NACK_CCX, nack_ccx);
        break;
    case TYPE_CP:
        TAKE(pds, CONTROL, control);
        next = 0;
        break;
    default:
        TAKE(pds, PROLOGUE, prologue);
        next = 0;
    }
    switch (next) {
    case NEXT_SMALL:
        TAKE(ses, SMALL, small);
        break;
    case NEXT_MEDIUM:
        TAKE(ses, MEDIUM, medium);
        break;
    case NEXT_STD:
        TAKE(ses, STD, std);
        break;
    case NEXT_RESPONSE:
        TAKE(ses, RESPONSE, response);
        break;
    case NEXT_RESPONSE_DATA:
        TAKE(ses, RESPONSE_DATA, response_data);
        break;
    case NEXT_RESPONSE_DATA_SMALL:
        TAKE(ses, RESPONSE_DATA_SMALL, response_data_small);
        break;
    }
    if (next >= NEXT_SMALL && next <= NEXT_STD) {
        switch (((const struct common *)out->ses)->opcode & 0x3f) {
        case OP_RENDEZVOUS_SEND:
        case OP_RENDEZVOUS_TSEND:
            TAKE(ext, RENDEZVOUS, rendezvous);
            break;
        case OP_ATOMIC:
        case OP_FETCHING_ATOMIC:
        case OP_TSEND_ATOMIC:
        case OP_TSEND_FETCH_ATOMIC:
            if (n > 0 && p[0] >= ATOMIC_CSWAP && p[0] <= ATOMIC_CSWAP_GT)
                TAKE(ext, COMPARE_SWAP, compare_swap);
            else
                TAKE(ext, ATOMIC, atomic);
        }
    }
    out->payload = p;
    out->payload_length = n;
    return true;
}

static void add(struct uet_walk *walk, const uint8_t *start, const uint8_t *header, uint32_t is)
{
    if (header) {
        walk->at[walk->count].header = is;
        walk->at[walk->count].offset = header - start;
        walk->count++;
    }
}

static void add_packet(struct uet_walk *walk, const uint8_t *start, const struct packet *packet)
{
    add(walk, start, packet->tss, packet->tss_is);
    add(walk, start, packet->pds, packet->pds_is);
    add(walk, start, packet->ses, packet->ses_is);
    add(walk, start, packet->ext, packet->ext_is);
    walk->stopped_in = packet->stopped_in;
    if (packet->stopped_in != UET_HEADER_COUNT) {
        walk->stopped_at = packet->stopped_at - start;
    } else {
        walk->payload_offset = packet->payload - start;
        walk->payload_length = packet->payload_length;
    }
}

void uet_walk_packet(const uint8_t *bytes, size_t length, struct uet_walk *walk)
{
    struct packet packet;
    memset(walk, 0, sizeof *walk);
    walk->is_uet = true;
    parse(bytes, length, &packet);
    add_packet(walk, bytes, &packet);
}

/* ---- a frame, from Ethernet ---- */

enum {
    ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86dd,
    ETHERTYPE_VLAN = 0x8100, ETHERTYPE_QINQ = 0x88a8, ETHERTYPE_OLD_QINQ = 0x9100,
};
enum { PROTO_UDP = 17, UET_PORT = 4793, UET_PROTO = 253 };

struct frame {
    const uint8_t *eth, *vlan[2], *ip, *udp, *entropy;
    uint8_t ip_is;
    bool is_uet, trimmed;
    /* The bytes behind the outer headers, if the packet is not UET. */
    const uint8_t *rest;
    size_t rest_length;
    size_t trailer_length;
    uint8_t stopped_in;
    const uint8_t *stopped_at;
    struct packet uet;
};

/* The IPv6 extension headers that can be skipped. */
static bool skip_extensions(const uint8_t **at, size_t *left, uint8_t *next, bool *fragment, struct frame *out)
{
    const uint8_t *p = *at;
    size_t n = *left;
    for (;;) {
        const struct ipv6_ext *ext = (const struct ipv6_ext *)p;
        const struct ipv6_fragment *frag = (const struct ipv6_fragment *)p;
        size_t length;
        switch (*next) {
        case 0: case 43: case 60: case 135: case 139: case 140:
        case 51: /* authentication: in words of 4 bytes */
            if (n < sizeof *ext)
                STOP(UET_IPV6_EXT);
            length = 8 + (size_t)ext->length * (*next == 51 ? 4 : 8);
            if (n < length)
                STOP(UET_IPV6_EXT);
            *next = ext->next_header;
            break;
        case 44:
            if (n < sizeof *frag)
                STOP(UET_IPV6_FRAGMENT);
            length = sizeof *frag;
            *fragment = (ntohs(frag->offset) & 0xfff9) != 0;
            *next = frag->next_header;
            break;
        default:
            *at = p;
            *left = n;
            return true;
        }
        p += length;
        n -= length;
        if (*fragment) {
            *at = p;
            *left = n;
            return true;
        }
    }
}

INLINE bool parse_frame(const uint8_t *p, size_t n, uint16_t udp_port, uint8_t ip_proto, size_t trailer_length,
                        struct frame *out)
{
    *out = (struct frame){ .stopped_in = UET_HEADER_COUNT };
    if (n < sizeof(struct eth))
        STOP(UET_ETH);
    out->eth = p;
    uint16_t type = ntohs(((const struct eth *)p)->type);
    p += sizeof(struct eth);
    n -= sizeof(struct eth);
    for (int i = 0; i < 2; i++) {
        if (type != ETHERTYPE_VLAN && type != ETHERTYPE_QINQ && type != ETHERTYPE_OLD_QINQ)
            break;
        if (n < sizeof(struct vlan))
            STOP(UET_VLAN);
        out->vlan[i] = p;
        type = ntohs(((const struct vlan *)p)->type);
        p += sizeof(struct vlan);
        n -= sizeof(struct vlan);
    }
    bool fragment = false;
    uint8_t proto;
    if (type == ETHERTYPE_IPV4) {
        const struct ipv4 *ip = (const struct ipv4 *)p;
        if (n == 0 || p[0] >> 4 != 4 || n < sizeof *ip)
            STOP(UET_IPV4);
        size_t header = (ip->version_ihl & 15) * 4, total = ntohs(ip->total_length);
        if (header < sizeof *ip || total < header || n < total)
            STOP(UET_IPV4);
        out->ip = p;
        out->ip_is = UET_IPV4;
        fragment = (ntohs(ip->fragment) & 0x3fff) != 0;
        proto = ip->proto;
        p += header;
        n = total - header;
    } else if (type == ETHERTYPE_IPV6) {
        const struct ipv6 *ip = (const struct ipv6 *)p;
        if (n == 0 || p[0] >> 4 != 6 || n < sizeof *ip || n - sizeof *ip < ntohs(ip->payload_length))
            STOP(UET_IPV6);
        out->ip = p;
        out->ip_is = UET_IPV6;
        proto = ip->next_header;
        p += sizeof *ip;
        n = ntohs(ip->payload_length);
        if (!skip_extensions(&p, &n, &proto, &fragment, out))
            return false;
    } else {
        goto other;
    }
    if (fragment)
        goto other;
    if (proto == PROTO_UDP) {
        const struct udp *udp = (const struct udp *)p;
        if (n < sizeof *udp)
            STOP(UET_UDP);
        size_t length = ntohs(udp->length);
        if (ntohs(udp->dst_port) == udp_port && length < sizeof *udp)
            STOP(UET_UDP);
        out->udp = p;
        p += sizeof *udp;
        n -= sizeof *udp;
        if (ntohs(udp->dst_port) != udp_port)
            goto other;
        length -= sizeof *udp;
        if (length > n)
            out->trimmed = true;
        else
            n = length;
    } else if (proto == ip_proto) {
        if (n < sizeof(struct entropy))
            STOP(UET_ENTROPY);
        out->entropy = p;
        p += sizeof(struct entropy);
        n -= sizeof(struct entropy);
    } else {
        goto other;
    }
    out->is_uet = true;
    if (!out->trimmed && trailer_length) {
        if (n < trailer_length)
            STOP(trailer_length == sizeof(struct icv) ? UET_ICV : UET_CRC);
        out->trailer_length = trailer_length;
        n -= trailer_length;
    }
    return parse(p, n, &out->uet);
other:
    out->rest = p;
    out->rest_length = n;
    return true;
}

void uet_walk_frame(const uint8_t *bytes, size_t length, uint16_t udp_port, uint8_t ip_proto,
                    uint32_t trailer_length, struct uet_walk *walk)
{
    struct frame frame;
    memset(walk, 0, sizeof *walk);
    parse_frame(bytes, length, udp_port, ip_proto, trailer_length, &frame);
    add(walk, bytes, frame.eth, UET_ETH);
    add(walk, bytes, frame.vlan[0], UET_VLAN);
    add(walk, bytes, frame.vlan[1], UET_VLAN);
    add(walk, bytes, frame.ip, frame.ip_is);
    add(walk, bytes, frame.udp, UET_UDP);
    add(walk, bytes, frame.entropy, UET_ENTROPY);
    walk->is_uet = frame.is_uet;
    walk->trimmed = frame.trimmed;
    walk->trailer_length = frame.trailer_length;
    walk->stopped_in = frame.stopped_in;
    if (frame.stopped_in != UET_HEADER_COUNT) {
        walk->stopped_at = frame.stopped_at - bytes;
    } else if (frame.is_uet) {
        add_packet(walk, bytes, &frame.uet);
    } else {
        walk->payload_offset = frame.rest - bytes;
        walk->payload_length = frame.rest_length;
    }
}

/* ---- the packets that are measured ---- */

INLINE void get_request_std(const struct packet *packet, struct uet_request_std *restrict out)
{
    const struct request *pds = (const struct request *)packet->pds;
    const struct std *ses = (const struct std *)packet->ses;
    uint16_t prologue = ntohs(pds->prologue), last = ntohs(pds->dpdcid);
    uint8_t opcode = ses->common.opcode & 0x3f, flags = ses->common.flags;
    uint32_t job = ntohl(ses->common.generation_job);

    out->type = prologue_type(prologue);
    out->next_hdr = prologue_next(prologue);
    out->retx = prologue & FLAG_RETX;
    out->ar = prologue & FLAG_AR;
    out->syn = prologue & FLAG_SYN;
    out->clear_psn_offset = ntohs(pds->clear_psn_offset);
    out->psn = ntohl(pds->psn);
    out->spdcid = ntohs(pds->spdcid);
    if (prologue & FLAG_SYN) {
        out->pdc_info = last >> 12;
        out->psn_offset = last & 0xfff;
    } else {
        out->dpdcid = last;
    }
    out->opcode = opcode;
    out->version = flags >> 6;
    out->dc = flags & SES_DC;
    out->ie = flags & SES_IE;
    out->rel = flags & SES_REL;
    out->hd = flags & SES_HD;
    out->eom = flags & SES_EOM;
    out->som = flags & SES_SOM;
    out->message_id = ntohs(ses->common.id_or_length);
    out->ri_generation = job >> 24;
    out->job_id = job & 0xffffff;
    out->pid_on_fep = ntohs(ses->common.pid) & 0xfff;
    out->resource_index = ntohs(ses->common.index) & 0xfff;
    uint64_t offset = be64toh(ses->buffer_offset), key = be64toh(ses->key), data = be64toh(ses->header_data);
    if (is_deferrable(opcode)) {
        out->initiator_restart_token = offset >> 32;
        out->target_restart_token = offset;
    } else {
        out->buffer_offset = offset;
    }
    out->initiator = ntohl(ses->initiator);
    if (is_keyed(opcode)) {
        out->memory_key = key;
    } else if (opcode == OP_DEFERRABLE_RTR) {
        out->initiator_restart_token = key >> 32;
        out->target_restart_token = key;
    } else {
        out->match_bits = key;
    }
    if (flags & SES_SOM) {
        out->header_data = data;
    } else {
        out->payload_length = data >> 32 & 0x3fff;
        out->message_offset = data;
    }
    out->request_length = ntohl(ses->request_length);
    out->payload = packet->payload;
    out->payload_bytes = packet->payload_length;
}

INLINE void get_ack_response(const struct packet *packet, struct uet_ack_response *restrict out)
{
    const struct ack *pds = (const struct ack *)packet->pds;
    const struct response *ses = (const struct response *)packet->ses;
    uint16_t prologue = ntohs(pds->prologue);
    uint32_t job = ntohl(ses->generation_job);

    out->type = prologue_type(prologue);
    out->next_hdr = prologue_next(prologue);
    out->m = prologue & FLAG_M;
    out->retx = prologue & FLAG_RETX;
    out->p = prologue & FLAG_P;
    out->req = prologue >> 1 & 3;
    if (prologue & FLAG_P)
        out->probe_opaque = ntohs(pds->offset);
    else
        out->ack_psn_offset = ntohs(pds->offset);
    out->cack_psn = ntohl(pds->cack_psn);
    out->spdcid = ntohs(pds->spdcid);
    out->dpdcid = ntohs(pds->dpdcid);
    out->list = ses->list_opcode >> 6;
    out->opcode = ses->list_opcode & 0x3f;
    out->version = ses->version_code >> 6;
    out->return_code = ses->version_code & 0x3f;
    out->message_id = ntohs(ses->message_id);
    out->ri_generation = job >> 24;
    out->job_id = job & 0xffffff;
    out->modified_length = ntohl(ses->modified_length);
}

INLINE void get_ack_cc(const struct packet *packet, struct uet_ack_cc_fields *restrict out)
{
    const struct ack_cc *pds = (const struct ack_cc *)packet->pds;
    uint16_t prologue = ntohs(pds->ack.prologue);
    uint64_t state = be64toh(pds->state);

    out->type = prologue_type(prologue);
    out->next_hdr = prologue_next(prologue);
    out->m = prologue & FLAG_M;
    out->retx = prologue & FLAG_RETX;
    out->p = prologue & FLAG_P;
    out->req = prologue >> 1 & 3;
    if (prologue & FLAG_P)
        out->probe_opaque = ntohs(pds->ack.offset);
    else
        out->ack_psn_offset = ntohs(pds->ack.offset);
    out->cack_psn = ntohl(pds->ack.cack_psn);
    out->spdcid = ntohs(pds->ack.spdcid);
    out->dpdcid = ntohs(pds->ack.dpdcid);
    out->cc_type = pds->cc >> 4;
    out->cc_flags = pds->cc & 15;
    out->mpr = pds->mpr;
    out->sack_psn_offset = ntohs(pds->sack_psn_offset);
    out->sack_bitmap = be64toh(pds->sack_bitmap);
    switch (pds->cc >> 4) {
    case CC_NSCC:
        out->service_time = state >> 48;
        out->rc = state >> 47 & 1;
        out->rcv_cwnd_pend = state >> 40 & 0x7f;
        out->rcvd_bytes = state >> 16 & 0xffffff;
        out->ooo_count = state;
        break;
    case CC_CREDIT:
        out->credit = state >> 40;
        out->ooo_count = state;
        break;
    default:
        out->ack_cc_state = state;
    }
}

INLINE void get_nack(const struct packet *packet, struct uet_nack_fields *restrict out)
{
    const struct nack *pds = (const struct nack *)packet->pds;
    uint16_t prologue = ntohs(pds->prologue);

    out->type = prologue_type(prologue);
    out->next_hdr = prologue_next(prologue);
    out->m = prologue & FLAG_M;
    out->retx = prologue & FLAG_RETX;
    out->nt = prologue & FLAG_NT;
    out->nack_code = pds->code;
    out->vendor_code = pds->vendor_code;
    if (prologue & FLAG_NT)
        out->nack_pkt_id = ntohl(pds->psn);
    else
        out->nack_psn = ntohl(pds->psn);
    out->spdcid = ntohs(pds->spdcid);
    out->dpdcid = ntohs(pds->dpdcid);
    out->payload = ntohl(pds->payload);
}

INLINE bool is_request_std(const struct packet *p) { return p->pds_is == UET_REQUEST && p->ses_is == UET_STD; }
INLINE bool is_ack_response(const struct packet *p) { return p->pds_is == UET_ACK && p->ses_is == UET_RESPONSE; }
INLINE bool is_ack_cc(const struct packet *p) { return p->pds_is == UET_ACK_CC; }
INLINE bool is_nack(const struct packet *p) { return p->pds_is == UET_NACK; }

INLINE bool get_outer(const struct frame *frame, struct uet_outer *restrict out)
{
    const struct ipv4 *ip = (const struct ipv4 *)frame->ip;
    if (frame->ip_is != UET_IPV4 || !frame->udp)
        return false;
    out->dscp = ip->tos >> 2;
    out->ecn = ip->tos & 3;
    out->ttl = ip->ttl;
    out->src = ntohl(ip->src);
    out->dst = ntohl(ip->dst);
    out->entropy = ntohs(((const struct udp *)frame->udp)->src_port);
    return true;
}

#define MEASURED(kind, fields) \
    bool uet_get_##kind(const uint8_t *bytes, size_t length, struct fields *out) \
    { \
        struct packet packet; \
        if (!parse(bytes, length, &packet) || !is_##kind(&packet)) \
            return false; \
        get_##kind(&packet, out); \
        return true; \
    } \
    bool uet_frame_##kind(const uint8_t *bytes, size_t length, struct uet_outer *outer, struct fields *out) \
    { \
        struct frame frame; \
        if (!parse_frame(bytes, length, UET_PORT, UET_PROTO, 0, &frame) || !frame.is_uet || frame.trimmed) \
            return false; \
        if (!is_##kind(&frame.uet) || !get_outer(&frame, outer)) \
            return false; \
        get_##kind(&frame.uet, out); \
        return true; \
    }

MEASURED(request_std, uet_request_std)
MEASURED(ack_response, uet_ack_response)
MEASURED(ack_cc, uet_ack_cc_fields)
MEASURED(nack, uet_nack_fields)

INLINE uint16_t prologue(uint8_t type, uint8_t next, uint8_t flags)
{
    return htons((uint16_t)(type << 11 | next << 7 | flags));
}

size_t uet_put_request_std(const struct uet_request_std *restrict in, uint8_t *restrict buffer, size_t length)
{
    if (length < sizeof(struct request) + sizeof(struct std) || in->opcode > 0x3f
        || in->version > 3 || in->job_id > 0xffffff || in->pid_on_fep > 0xfff || in->resource_index > 0xfff
        || (in->syn && (in->pdc_info > 15 || in->psn_offset > 0xfff)) || (!in->som && in->payload_length > 0x3fff))
        return 0;
    struct request *pds = (struct request *)buffer;
    struct std *ses = (struct std *)(buffer + sizeof *pds);
    pds->prologue = prologue(TYPE_RUD_REQ, NEXT_STD, in->retx << 4 | in->ar << 3 | in->syn << 2);
    pds->clear_psn_offset = htons(in->clear_psn_offset);
    pds->psn = htonl(in->psn);
    pds->spdcid = htons(in->spdcid);
    pds->dpdcid = htons(in->syn ? in->pdc_info << 12 | in->psn_offset : in->dpdcid);
    ses->common.opcode = in->opcode;
    ses->common.flags = in->version << 6 | in->dc << 5 | in->ie << 4 | in->rel << 3 | in->hd << 2 | in->eom << 1 | in->som;
    ses->common.id_or_length = htons(in->message_id);
    ses->common.generation_job = htonl((uint32_t)in->ri_generation << 24 | in->job_id);
    ses->common.pid = htons(in->pid_on_fep);
    ses->common.index = htons(in->resource_index);
    uint64_t tokens = (uint64_t)in->initiator_restart_token << 32 | in->target_restart_token;
    ses->buffer_offset = htobe64(is_deferrable(in->opcode) ? tokens : in->buffer_offset);
    ses->initiator = htonl(in->initiator);
    if (is_keyed(in->opcode))
        ses->key = htobe64(in->memory_key);
    else if (in->opcode == OP_DEFERRABLE_RTR)
        ses->key = htobe64(tokens);
    else
        ses->key = htobe64(in->match_bits);
    if (in->som)
        ses->header_data = htobe64(in->header_data);
    else
        ses->header_data = htobe64((uint64_t)in->payload_length << 32 | in->message_offset);
    ses->request_length = htonl(in->request_length);
    return sizeof *pds + sizeof *ses;
}

size_t uet_put_ack_response(const struct uet_ack_response *restrict in, uint8_t *restrict buffer, size_t length)
{
    if (length < sizeof(struct ack) + sizeof(struct response) || in->req > 3 || in->list > 3 || in->opcode > 0x3f
        || in->version > 3 || in->return_code > 0x3f || in->job_id > 0xffffff)
        return 0;
    struct ack *pds = (struct ack *)buffer;
    struct response *ses = (struct response *)(buffer + sizeof *pds);
    pds->prologue = prologue(TYPE_ACK, NEXT_RESPONSE, in->m << 5 | in->retx << 4 | in->p << 3 | in->req << 1);
    pds->offset = htons(in->p ? in->probe_opaque : (uint16_t)in->ack_psn_offset);
    pds->cack_psn = htonl(in->cack_psn);
    pds->spdcid = htons(in->spdcid);
    pds->dpdcid = htons(in->dpdcid);
    ses->list_opcode = in->list << 6 | in->opcode;
    ses->version_code = in->version << 6 | in->return_code;
    ses->message_id = htons(in->message_id);
    ses->generation_job = htonl((uint32_t)in->ri_generation << 24 | in->job_id);
    ses->modified_length = htonl(in->modified_length);
    return sizeof *pds + sizeof *ses;
}

size_t uet_put_ack_cc(const struct uet_ack_cc_fields *restrict in, uint8_t *restrict buffer, size_t length)
{
    if (length < sizeof(struct ack_cc) || in->req > 3 || in->cc_type > 15 || in->cc_flags > 15
        || (in->cc_type == CC_CREDIT && in->credit > 0xffffff)
        || (in->cc_type == CC_NSCC && (in->rcv_cwnd_pend > 0x7f || in->rcvd_bytes > 0xffffff)))
        return 0;
    struct ack_cc *pds = (struct ack_cc *)buffer;
    pds->ack.prologue = prologue(TYPE_ACK_CC, 0, in->m << 5 | in->retx << 4 | in->p << 3 | in->req << 1);
    pds->ack.offset = htons(in->p ? in->probe_opaque : (uint16_t)in->ack_psn_offset);
    pds->ack.cack_psn = htonl(in->cack_psn);
    pds->ack.spdcid = htons(in->spdcid);
    pds->ack.dpdcid = htons(in->dpdcid);
    pds->cc = in->cc_type << 4 | in->cc_flags;
    pds->mpr = in->mpr;
    pds->sack_psn_offset = htons(in->sack_psn_offset);
    pds->sack_bitmap = htobe64(in->sack_bitmap);
    switch (in->cc_type) {
    case CC_NSCC:
        pds->state = htobe64((uint64_t)in->service_time << 48 | (uint64_t)in->rc << 47
                             | (uint64_t)in->rcv_cwnd_pend << 40
                             | (uint64_t)in->rcvd_bytes << 16 | in->ooo_count);
        break;
    case CC_CREDIT:
        pds->state = htobe64((uint64_t)in->credit << 40 | in->ooo_count);
        break;
    default:
        pds->state = htobe64(in->ack_cc_state);
    }
    return sizeof *pds;
}

size_t uet_put_nack(const struct uet_nack_fields *restrict in, uint8_t *restrict buffer, size_t length)
{
    if (length < sizeof(struct nack))
        return 0;
    struct nack *pds = (struct nack *)buffer;
    pds->prologue = prologue(TYPE_NACK, 0, in->m << 5 | in->retx << 4 | in->nt << 3);
    pds->code = in->nack_code;
    pds->vendor_code = in->vendor_code;
    pds->psn = htonl(in->nt ? in->nack_pkt_id : in->nack_psn);
    pds->spdcid = htons(in->spdcid);
    pds->dpdcid = htons(in->dpdcid);
    pds->payload = htonl(in->payload);
    return sizeof *pds;
}
