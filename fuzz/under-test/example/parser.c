/* A small example parser: it reads requests, acknowledgments and NACKs of the PDS, and nothing behind them. With BUG set
 * to 1, 2 or 3 it has a bug of the kind that such parsers have. */
#include "uet_under_test.h"

#ifndef BUG
#define BUG 0
#endif

static uint64_t number(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Marks the fields that this parser does not read: all but the PDS header. */
static void leave_out(struct uet_view *view, enum uet_field from, enum uet_field to)
{
    for (int field = from; field < (int)to; field++)
        view->state[field] = UET_NOT_REPORTED;
}

static int request(const uint8_t *p, size_t length, struct uet_view *view)
{
    int syn = p[1] >> 2 & 1;
    if (length < 12)
        return UET_REFUSED;
    uet_says(view, UET_PDS_FLAGS_RETX, p[1] >> 4 & 1);
    uet_says(view, UET_PDS_FLAGS_AR, p[1] >> 3 & 1);
    uet_says(view, UET_PDS_FLAGS_SYN, syn);
    uet_says(view, UET_PDS_CLEAR_PSN_OFFSET, number(p + 2, 2));
    uet_says(view, UET_PDS_PSN, number(p + 4, 4));
    uet_says(view, UET_PDS_SPDCID, number(p + 8, 2));
    if (syn) {
        uet_says(view, UET_PDS_PDC_INFO, p[10] >> 4);
        /* Bug 1: with information about the context, the offset is read over it. */
        uet_says(view, UET_PDS_PSN_OFFSET, number(p + 10, 2) & (BUG == 1 ? 0x1fff : 0x0fff));
    } else {
        uet_says(view, UET_PDS_DPDCID, number(p + 10, 2));
    }
    return UET_READ;
}

static int ack(const uint8_t *p, size_t length, struct uet_view *view)
{
    int probed = p[1] >> 3 & 1;
    /* Bug 2: nobody looks whether the last identifier is all there. */
    if (length < (BUG == 2 ? 11 : 12))
        return UET_REFUSED;
    uet_says(view, UET_PDS_FLAGS_M, p[1] >> 5 & 1);
    uet_says(view, UET_PDS_FLAGS_RETX, p[1] >> 4 & 1);
    uet_says(view, UET_PDS_FLAGS_P, probed);
    uet_says(view, UET_PDS_FLAGS_REQ, p[1] >> 1 & 3);
    uet_says(view, probed ? UET_PDS_PROBE_OPAQUE : UET_PDS_ACK_PSN_OFFSET, number(p + 2, 2));
    uet_says(view, UET_PDS_CACK_PSN, number(p + 4, 4));
    uet_says(view, UET_PDS_SPDCID, number(p + 8, 2));
    uet_says(view, UET_PDS_DPDCID, number(p + 10, length < 12 ? 1 : 2));
    return UET_READ;
}

static int nack(const uint8_t *p, size_t length, struct uet_view *view)
{
    int of_rudi = p[1] >> 3 & 1;
    if (length < 16)
        return UET_REFUSED;
    uet_says(view, UET_PDS_FLAGS_M, p[1] >> 5 & 1);
    uet_says(view, UET_PDS_FLAGS_RETX, p[1] >> 4 & 1);
    uet_says(view, UET_PDS_FLAGS_NT, of_rudi);
    uet_says(view, UET_PDS_NACK_CODE, p[2]);
    /* Bug 3: for one code the vendor's code is taken from elsewhere. */
    uet_says(view, UET_PDS_VENDOR_CODE, BUG == 3 && p[2] == 0x0f ? p[7] : p[3]);
    uet_says(view, of_rudi ? UET_PDS_NACK_PKT_ID : UET_PDS_NACK_PSN, number(p + 4, 4));
    uet_says(view, UET_PDS_SPDCID, number(p + 8, 2));
    uet_says(view, UET_PDS_DPDCID, number(p + 10, 2));
    uet_says(view, UET_PDS_PAYLOAD, number(p + 12, 4));
    return UET_READ;
}

int uet_parse_under_test(const uint8_t *bytes, size_t length, struct uet_view *view)
{
    if (length < 2)
        return UET_REFUSED;
    int type = bytes[0] >> 3, next = (bytes[0] & 7) << 1 | bytes[1] >> 7;
    if (next != 0)
        return UET_LEFT_OUT;
    uet_says(view, UET_PDS_TYPE, type);
    uet_says(view, UET_PDS_NEXT_HDR, next);
    uet_says(view, UET_PDS_FLAGS, bytes[1] & 0x7f);
    leave_out(view, 0, UET_PDS_TYPE);
    switch (type) {
    case 2: /* RUD_REQ */
    case 3: /* ROD_REQ */
        return request(bytes, length, view);
    case 7: /* ACK */
        return ack(bytes, length, view);
    case 10: /* NACK */
        return nack(bytes, length, view);
    default:
        return UET_LEFT_OUT;
    }
}
