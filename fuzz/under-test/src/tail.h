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
