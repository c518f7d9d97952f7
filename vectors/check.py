#!/usr/bin/env python3
"""Check the golden vectors against a second description of the wire format.

The layouts below were written by hand from the tables of the wire format, and share nothing with the codec. If the
two disagree, one of them has misread a table. Standard library only: packets that their keys open are left to
check_tss.py.

    check.py                      every vector beside this file
    check.py FILE|DIRECTORY...    every vector in these: a line of a file, or of a .jsonl file in a directory
    check.py --decode FILE        lines of {"from":...,"options":...,"hex":...}, decoded to lines of JSON; - is stdin

Exit code: 0 all agree, 1 a disagreement, 2 usage, no vectors, or something that cannot be read as a vector.
"""

import argparse
import ipaddress
import json
import pathlib
import re
import sys

# ---------------------------------------------------------------------------------------------------------------------
# The tables
#
# name(n) is a field of n bits, name(n,signed) one in two's complement, -(n) are reserved bits. { condition: fields |
# condition: fields } is a choice by a field that has been read. `+` reads a field without stepping over it, `/` ends a
# run of reserved bits: both are for pds.flags, a field whose parts are fields.
# ---------------------------------------------------------------------------------------------------------------------


def flags(row):
    """Seven bits of pds.flags from a row of the table, bit 6 first; a name on two bits is one field of two."""
    fields = []
    for bit in row.split():
        name = bit if bit == "-" else "pds.flags." + bit
        if fields and fields[-1][0] == name:
            fields[-1][1] += 1
        else:
            fields.append([name, 1])
    assert sum(width for _, width in fields) == 7, row
    return "+pds.flags(7) " + " ".join("%s(%d)" % (name, width) for name, width in fields) + " /"


def prologue(row, next_hdr="pds.next_hdr"):
    return "pds.type(5) %s(4) " % next_hdr + flags(row)


PDC = "pds.spdcid(16) { pds.flags.syn=0: pds.dpdcid(16) | pds.flags.syn=1: pds.pdc_info(4) pds.psn_offset(12) } "
REQUEST = prologue("- - retx ar syn - -") + " pds.clear_psn_offset(16,signed) pds.psn(32) " + PDC
ACK = (
    prologue("- m retx p req req -")
    + "{ pds.flags.p=0: pds.ack_psn_offset(16,signed) | pds.flags.p=1: pds.probe_opaque(16) }"
    + "pds.cack_psn(32) pds.spdcid(16) pds.dpdcid(16) "
)
SACK = " pds.cc_flags(4) pds.mpr(8) pds.sack_psn_offset(16,signed) pds.sack_bitmap(64) "
NACK = (
    prologue("- m retx nt - - -")
    + "pds.nack_code(8) pds.vendor_code(8)"
    + "{ pds.flags.nt=0: pds.nack_psn(32) | pds.flags.nt=1: pds.nack_pkt_id(32) }"
    + "pds.spdcid(16) pds.dpdcid(16) pds.payload(32) "
)

SES_REQUEST = (
    "-(2) ses.opcode(6) ses.version(2) ses.dc(1) ses.ie(1) ses.rel(1) ses.hd(1) ses.eom(1) ses.som(1) %s "
    "ses.ri_generation(8) ses.job_id(24) -(4) ses.pid_on_fep(12) -(4) ses.resource_index(12) "
)
SES_RESPONSE = "ses.list(2) ses.opcode(6) ses.version(2) ses.return_code(6) "
TOKENS = "ses.initiator_restart_token(32) ses.target_restart_token(32)"
KEY = (
    "ses.opcode=UET_WRITE,UET_READ,UET_ATOMIC,UET_FETCHING_ATOMIC: ses.memory_key(64)"
    " | others: ses.match_bits(64)"
)
ATOMIC = "ses.atomic_opcode(8) ses.atomic_datatype(8) ses.semantic_control(8) -(8) "

LAYOUTS = {
    # Around UET
    "eth": "eth.dst(48) eth.src(48) eth.type(16)",
    "vlan": "vlan.pcp(3) vlan.dei(1) vlan.id(12) vlan.type(16)",
    "ipv4": "ip.version(4) ip.ihl(4) ip.dscp(6) ip.ecn(2) ip.total_length(16) ip.id(16)"
    " -(1) ip.df(1) ip.mf(1) ip.frag_offset(13) ip.ttl(8) ip.proto(8) ip.checksum(16) ip.src(32) ip.dst(32)",
    "ipv6": "ip.version(4) ip.dscp(6) ip.ecn(2) ip.flow_label(20) ip.payload_length(16) ip.proto(8) ip.ttl(8)"
    " ip.src(128) ip.dst(128)",
    "ipv6_ext": "ip.ext.proto(8) ip.ext.length(8)",
    "ipv6_fragment": "ip.ext.proto(8) -(8) ip.frag_offset(13) -(2) ip.mf(1) ip.id(32)",
    "udp": "udp.src_port(16) udp.dst_port(16) udp.length(16) udp.checksum(16)",
    "entropy": "pds.entropy(16) -(16)",
    # TSS
    "tss": "tss.type(5) tss.sp(1) -(1) tss.an(1) tss.sdi(24) tss.epoch(16) tss.counter(48)",
    "tss_ssi": "tss.type(5) tss.sp(1) -(1) tss.an(1) tss.sdi(24) tss.ssi(32) tss.epoch(16) tss.counter(48)",
    # PDS
    "prologue": "pds.type(5) pds.next_hdr(4) pds.flags(7)",
    "request": REQUEST,
    "request_cc": REQUEST + "pds.ccc_id(8) pds.credit_target(24)",
    "ack": ACK,
    "ack_cc": ACK + "pds.cc_type(4)" + SACK + "{ pds.cc_type=NSCC:"
    "   pds.service_time(16) pds.rc(1) pds.rcv_cwnd_pend(7) pds.rcvd_bytes(24) pds.ooo_count(16)"
    " | pds.cc_type=CREDIT: pds.credit(24) -(24) pds.ooo_count(16)"
    " | others: pds.ack_cc_state(64) }",
    "ack_ccx": ACK + "pds.ccx_type(4)" + SACK + "pds.ack_ccx_state(128)",
    "control": prologue("- isrod retx ar syn - -", "pds.ctl_type")
    + "{ pds.ctl_type=PROBE: pds.probe_opaque(16) | others: -(16) } pds.psn(32) " + PDC + "pds.payload(32)",
    "rudi_req": prologue("- - retx - - - -") + "-(16) pds.pkt_id(32)",
    "rudi_resp": prologue("- m retx - - - -") + "-(16) pds.pkt_id(32)",
    "nack": NACK,
    "nack_ccx": NACK + "pds.nccx_type(4) pds.nack_ccx_state(124)",
    "uud": prologue("- - - - - - -") + "-(16)",
    # SES
    "std": SES_REQUEST % "ses.message_id(16)"
    + "{ ses.opcode=UET_DEFERRABLE_SEND,UET_DEFERRABLE_TSEND: " + TOKENS + " | others: ses.buffer_offset(64) }"
    + "ses.initiator(32)"
    + "{ ses.opcode=UET_DEFERRABLE_RTR: " + TOKENS + " | " + KEY + "}"
    + "{ ses.som=1: ses.header_data(64) | ses.som=0: -(18) ses.payload_length(14) ses.message_offset(32) }"
    + "ses.request_length(32)",
    "medium": SES_REQUEST % "-(2) ses.request_length(14)"
    + "{ ses.hd=1: ses.header_data(64) | ses.hd=0: ses.buffer_offset(64) } ses.initiator(32) {" + KEY + "}",
    "small": SES_REQUEST % "-(2) ses.request_length(14)" + "ses.buffer_offset(64)",
    "response": SES_RESPONSE + "ses.message_id(16) ses.ri_generation(8) ses.job_id(24) ses.modified_length(32)",
    "response_data": SES_RESPONSE + "ses.response_message_id(16) -(8) ses.job_id(24)"
    " ses.read_request_message_id(16) -(2) ses.payload_length(14) ses.modified_length(32) ses.message_offset(32)",
    "response_data_small": SES_RESPONSE + "-(2) ses.payload_length(14) -(8) ses.job_id(24)"
    " ses.original_request_psn(32)",
    # Extensions of a request
    "rendezvous": "ses.eager_length(32) ses.read_ri_generation(8) ses.read_pid_on_fep(12) ses.read_resource_index(12)"
    " ses.read_offset(64) ses.read_memory_key(64)",
    "atomic": ATOMIC,
    "compare_swap": ATOMIC + "ses.compare_value(128) ses.swap_value(128)",
}

# The header of each PDS type, and the next headers that may follow it; where next_hdr has no say, none are listed.
PDS = {
    2: ("request", {0, 1, 2, 3, 5, 6}),
    3: ("request", {0, 1, 2, 3, 5, 6}),
    4: ("rudi_req", {1, 2, 3}),
    5: ("rudi_resp", {4, 5, 6}),
    6: ("uud", {1, 2, 3}),
    7: ("ack", {0, 4, 5, 6}),
    8: ("ack_cc", {0, 4, 5, 6}),
    9: ("ack_ccx", {0, 4, 5, 6}),
    10: ("nack", {0}),
    11: ("control", None),
    12: ("nack_ccx", {0}),
    13: ("request_cc", {0, 1, 2, 3, 5, 6}),
    14: ("request_cc", {0, 1, 2, 3, 5, 6}),
}
SES = {1: "small", 2: "medium", 3: "std", 4: "response", 5: "response_data", 6: "response_data_small"}
# Both RUDI headers have one name outside this file.
OUTSIDE = {"rudi_req": "rudi", "rudi_resp": "rudi"}


def registry(text):
    pairs = re.findall(r"(\w+) (\w+)", text)
    return {int(code, 0): name for code, name in pairs}


NAMES = {
    "pds.type": registry(
        "0 RESERVED, 1 TSS, 2 RUD_REQ, 3 ROD_REQ, 4 RUDI_REQ, 5 RUDI_RESP, 6 UUD_REQ, 7 ACK, 8 ACK_CC, 9 ACK_CCX,"
        "10 NACK, 11 CP, 12 NACK_CCX, 13 RUD_CC_REQ, 14 ROD_CC_REQ"
    ),
    "pds.next_hdr": registry(
        "0 UET_HDR_NONE, 1 UET_HDR_REQUEST_SMALL, 2 UET_HDR_REQUEST_MEDIUM, 3 UET_HDR_REQUEST_STD,"
        "4 UET_HDR_RESPONSE, 5 UET_HDR_RESPONSE_DATA, 6 UET_HDR_RESPONSE_DATA_SMALL"
    ),
    "pds.ctl_type": registry(
        "0 NOOP, 1 ACK_REQUEST, 2 CLEAR_COMMAND, 3 CLEAR_REQUEST, 4 CLOSE_COMMAND, 5 CLOSE_REQUEST, 6 PROBE,"
        "7 CREDIT, 8 CREDIT_REQUEST, 9 NEGOTIATION"
    ),
    "pds.flags.req": registry("0 NO_REQUEST, 1 REQ_CLEAR, 2 REQ_CLOSE"),
    "pds.cc_type": registry("0 NSCC, 1 CREDIT"),
    "pds.nack_code": registry(
        "0x01 TRIMMED, 0x02 TRIMMED_LASTHOP, 0x03 TRIMMED_ACK, 0x04 NO_PDC_AVAIL, 0x05 NO_CCC_AVAIL, 0x06 NO_BITMAP,"
        "0x07 NO_PKT_BUFFER, 0x08 NO_GTD_DEL_AVAIL, 0x09 NO_SES_MSG_AVAIL, 0x0A NO_RESOURCE, 0x0B PSN_OOR_WINDOW,"
        "0x0D ROD_OOO, 0x0E INV_DPDCID, 0x0F PDC_HDR_MISMATCH, 0x10 CLOSING, 0x11 CLOSING_IN_ERR, 0x12 PKT_NOT_RCVD,"
        "0x13 GTD_RESP_UNAVAIL, 0x14 ACK_WITH_DATA, 0x15 INVALID_SYN, 0x16 PDC_MODE_MISMATCH, 0x17 NEW_START_PSN,"
        "0x18 RCVD_SES_PROCG, 0x19 UNEXP_EVENT, 0x1A RCVR_INFER_LOSS, 0xFD EXP_NACK_NORMAL, 0xFE EXP_NACK_ERR,"
        "0xFF EXP_NACK_FATAL"
    ),
    "ses.opcode": registry(
        "0x00 UET_NO_OP, 0x01 UET_WRITE, 0x02 UET_READ, 0x03 UET_ATOMIC, 0x04 UET_FETCHING_ATOMIC, 0x05 UET_SEND,"
        "0x06 UET_RENDEZVOUS_SEND, 0x07 UET_DATAGRAM_SEND, 0x08 UET_DEFERRABLE_SEND, 0x09 UET_TAGGED_SEND,"
        "0x0A UET_RENDEZVOUS_TSEND, 0x0B UET_DEFERRABLE_TSEND, 0x0C UET_DEFERRABLE_RTR, 0x0D UET_TSEND_ATOMIC,"
        "0x0E UET_TSEND_FETCH_ATOMIC, 0x0F UET_MSG_ERROR, 0x3F EXTENDED"
    ),
    "ses.atomic_opcode": registry(
        "0x00 MIN, 0x01 MAX, 0x02 SUM, 0x03 DIFF, 0x04 PROD, 0x05 LOR, 0x06 LAND, 0x07 BOR, 0x08 BAND, 0x09 LXOR,"
        "0x0A BXOR, 0x0B READ, 0x0C WRITE, 0x0D CSWAP, 0x0E CSWAP_NE, 0x0F CSWAP_LE, 0x10 CSWAP_LT, 0x11 CSWAP_GE,"
        "0x12 CSWAP_GT, 0x13 MSWAP, 0x14 INVAL"
    ),
    "ses.atomic_datatype": registry(
        "0x00 INT8, 0x01 UINT8, 0x02 INT16, 0x03 UINT16, 0x04 INT32, 0x05 UINT32, 0x06 INT64, 0x07 UINT64,"
        "0x08 INT128, 0x09 UINT128, 0x0A FLOAT, 0x0B DOUBLE, 0x0C FLOAT_COMPLEX, 0x0D DOUBLE_COMPLEX,"
        "0x0E LONG_DOUBLE, 0x0F LONG_DOUBLE_COMPLEX, 0x10 BF16, 0x11 FP16"
    ),
    "ses.list": registry("0 UET_EXPECTED, 1 UET_OVERFLOW"),
    "ses.return_code": registry(
        "0x00 NULL, 0x01 OK, 0x02 BAD_GENERATION, 0x03 DISABLED, 0x04 DISABLED_GEN, 0x05 NO_MATCH,"
        "0x06 UNSUPPORTED_OP, 0x07 UNSUPPORTED_SIZE, 0x08 AT_INVALID, 0x09 AT_PERM, 0x0A AT_ATS_ERROR,"
        "0x0B AT_NO_TRANS, 0x0C AT_OUT_OF_RANGE, 0x0D HOST_POISONED, 0x0E HOST_UNSUCCESS_CMPL,"
        "0x0F AMO_UNSUPPORTED_OP, 0x10 AMO_UNSUPPORTED_DT, 0x11 AMO_UNSUPPORTED_SIZE, 0x12 AMO_UNALIGNED,"
        "0x13 AMO_FP_NAN, 0x14 AMO_FP_UNDERFLOW, 0x15 AMO_FP_OVERFLOW, 0x16 AMO_FP_INEXACT, 0x17 PERM_VIOLATION,"
        "0x18 OP_VIOLATION, 0x19 BAD_INDEX, 0x1A BAD_PID, 0x1B BAD_JOB_ID, 0x1C BAD_MKEY, 0x1D BAD_ADDR,"
        "0x1E CANCELLED, 0x1F UNDELIVERABLE, 0x20 UNCOR, 0x21 UNCOR_TRNSNT, 0x22 TOO_LONG, 0x23 INITIATOR_ERR,"
        "0x24 DROPPED, 0x3E EXTENDED"
    ),
}
NAMES["tss.type"] = NAMES["pds.type"]
RESPONSE_OPCODES = registry("0 UET_DEFAULT_RESPONSE, 1 UET_RESPONSE, 2 UET_RESPONSE_W_DATA, 3 UET_NO_RESPONSE")

# Code points left to vendors and to congestion control of one's own: without a name, and not reserved.
VENDOR = {
    "ses.opcode": range(0x30, 0x3F),
    "ses.return_code": range(0x30, 0x38),
    "ses.list": range(2, 4),
    "ses.atomic_opcode": range(0xE0, 0xFF),
    "ses.atomic_datatype": range(0xE0, 0xFF),
    "pds.cc_type": range(14, 16),
}

SHOWN = {"ip.dscp", "ip.ecn", "ip.ttl", "udp.src_port", "udp.dst_port", "udp.length", "vlan.id"}
VLAN, IPV4, IPV6 = (0x8100, 0x88A8, 0x9100), 0x0800, 0x86DD
UDP, FRAGMENT, AH = 17, 44, 51
SKIPPED = {0, 43, 60, 51, 135, 139, 140}  # hop-by-hop, routing, destination, AH, mobility, HIP, shim6
TRAILERS = {"crc": 4, "icv": 16}

# ---------------------------------------------------------------------------------------------------------------------
# Reading a layout
# ---------------------------------------------------------------------------------------------------------------------

FIELD = re.compile(r"(?P<peek>\+?)(?P<name>[\w.]+|-)\((?P<width>\d+)(?P<signed>,signed)?\)|(?P<end>/)")


def fields_of(text):
    return [
        (m["name"] or "/", int(m["width"] or 0), bool(m["signed"]), bool(m["peek"])) for m in FIELD.finditer(text)
    ]


def parse_layout(text):
    """A list of fields and of choices; a choice is a list of (field, values, fields), for `others` (None, None, fields)."""
    items = []
    for part in re.split(r"(\{[^}]*\})", text):
        if not part.startswith("{"):
            items += fields_of(part)
            continue
        choice = []
        for branch in part[1:-1].split("|"):
            condition, _, body = branch.partition(":")
            if condition.strip() == "others":
                choice.append((None, None, fields_of(body)))
                continue
            name, _, values = condition.strip().partition("=")
            codes = {label: code for code, label in NAMES.get(name, {}).items()}
            choice.append((name, {codes[v] if v in codes else int(v) for v in values.split(",")}, fields_of(body)))
        items.append(choice)
    return items


PARSED = {header: parse_layout(text) for header, text in LAYOUTS.items()}


class Stop(Exception):
    """Reading ends here: at a field that cannot be right, or, with `end`, in a header that is cut and would end there."""

    def __init__(self, layer, field, offset, needed, present, end=None):
        super().__init__(layer, field)
        self.layer, self.end = layer, end
        self.error = {"layer": layer, "field": field, "offset": offset, "needed": needed, "present": present}


def forms(header, seen):
    """The fields of a header, chosen by those that have been seen; neighboring reserved bits are one run."""
    run = 0
    for item in PARSED[header]:
        fields = [item]
        if isinstance(item, list):
            fields = next(body for name, values, body in item if name is None or seen[name] in values)
        for field in fields:
            if field[0] == "-":
                run += field[1]
                continue
            if run:
                yield "-", run, False, False
            run = 0
            if field[0] != "/":
                yield field
    if run:
        yield "-", run, False, False


def size_of(header):
    """In bytes. The forms of a choice are equally long."""
    bits = 0
    for item in PARSED[header]:
        for _, width, _, peek in [item] if isinstance(item, tuple) else item[0][2]:
            bits += 0 if peek else width
    return bits // 8


def shown(value, width):
    return value if width <= 32 else "0x%0*x" % ((width + 3) // 4, value)


def ones_complement_sum(data):
    total = sum(data[::2]) * 256 + sum(data[1::2])
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


# ---------------------------------------------------------------------------------------------------------------------
# Reading a packet
# ---------------------------------------------------------------------------------------------------------------------


class Packet:
    """A packet, parsed from `data` on construction.

    `limit` is the end of the current part, by the lengths in the headers. It lies beyond `len(data)` if the packet was
    sliced or a length promises too much. `last` is the end of the packet with its trailer; padding follows it.
    `original` is the `limit` before a switch trimmed the packet. `opened` says that `data` has been decrypted.
    """

    def __init__(self, data, start, options, opened=False):
        self.data, self.options, self.opened = data, options, opened
        self.wire = max(options["wire"] or 0, len(data))
        self.limit = self.last = self.original = self.wire
        self.stack, self.fields, self.names, self.derived, self.reserved = [], {}, {}, {}, {}
        self.payload = self.padding = self.trailer = self.trimmed = self.error = None
        self.sliced = {"captured": len(data), "wire": self.wire} if self.wire > len(data) else None
        self.fragment = False
        self.src = self.dst = None
        self.whole = set()  # the headers that are whole, by name
        self.outer = {}  # every field of the layers around UET, shown or not
        self.address = None  # where the IP source address is: the CRC starts there
        self.checksum_ok = True  # that of the IPv4 header
        self.udp_at = None  # where the UDP header is
        self.promise = None  # a length that promises more than there is
        try:
            {"eth": self.eth, "ip": self.ip, "udp": self.udp, "uet": self.uet}[start](0)
        except Stop as stop:
            self.stopped(stop)
        self.error = self.error or self.promise
        if self.trailer:
            self.stack.append(self.trailer["kind"])
        if len(data) > self.last:
            self.padding = {"offset": self.last, "length": len(data) - self.last}
            self.stack.append("padding")

    def stopped(self, stop):
        if stop.end is None:
            self.error = stop.error
            return
        if self.trimmed:
            self.trimmed["layer"] = stop.layer
        # A header cut by a switch or by the capture is no error, but one that had no room in the first place is.
        room = self.original if not self.promise else min(self.original, self.wire)
        if stop.end > room or not (self.trimmed or self.sliced):
            self.error = stop.error

    def bounded(self, end):
        self.limit = self.last = self.original = end

    def end(self):
        return min(self.limit, len(self.data))

    def read(self, layer, header, at):
        """Read a header: its fields, and where it ends. Of the layers around UET few fields are shown."""
        name_outside = OUTSIDE.get(header, header)
        shows = layer in ("entropy", "tss", "pds", "ses", "ext")
        have, bit, seen, unnamed = 8 * max(0, self.end() - at), 0, {}, None
        for name, width, signed, peek in forms(header, seen):
            first, bit = bit, bit if peek else bit + width
            value = self.bits(at, first, width)
            if name == "-":
                if bit > have:
                    unnamed = first
                elif value and shows:
                    self.reserved["%s@%d:%d" % (name_outside, first, width)] = value
                continue
            if first + width > have:
                needed = (first + width + 7) // 8
                raise Stop(layer, name, at + first // 8, needed, have // 8, end=at + size_of(header))
            if signed and value >> width - 1:
                value -= 1 << width
            seen[name] = value
            if shows:
                self.fields[name] = shown(value, width)
                self.name(header, name, value)
            else:
                self.around(name, value)
        if unnamed is not None:
            # Only reserved bits are missing: they have no name but the header's.
            raise Stop(layer, name_outside, at + unnamed // 8, bit // 8, have // 8, end=at + bit // 8)
        self.stack.append(layer)
        self.whole.add(name_outside)
        return seen, at + bit // 8

    def bits(self, at, first, width):
        last = (first + width + 7) // 8
        chunk = int.from_bytes(self.data[at + first // 8 : at + last], "big")
        return chunk >> 8 * last - first - width & (1 << width) - 1

    def name(self, header, field, value):
        names = NAMES.get(field, {})
        if field == "ses.opcode" and header.startswith("response"):
            names = RESPONSE_OPCODES
        if value in names:
            self.names[field] = names[value]

    def around(self, name, value):
        if name == "vlan.id" and "vlan" in self.stack:
            self.fields["vlan.inner.id"] = value
            return
        self.outer[name] = value
        if name in SHOWN:
            self.fields[name] = value

    def rest(self, at):
        """Takes the bytes up to the limit as payload."""
        if self.end() > at:
            self.payload = {"offset": at, "length": self.end() - at}
            self.stack.append("payload")

    # Around UET

    def eth(self, at):
        header, at = self.read("eth", "eth", at)
        kind = header["eth.type"]
        for _ in range(2):
            if kind in VLAN:
                header, at = self.read("vlan", "vlan", at)
                kind = header["vlan.type"]
        if kind in (IPV4, IPV6):
            self.ip(at, 4 if kind == IPV4 else 6)
        else:
            self.rest(at)

    def ip(self, at, version=None):
        if at < self.end():
            seen = self.data[at] >> 4
            # Without an Ethernet header in front, the version says which layout it is.
            wanted = version or (6 if seen == 6 else 4)
            if seen != wanted:
                self.partly("ipv%d" % wanted, at)
                raise Stop("ipv%d" % wanted, "ip.version", at, wanted, seen)
            version = wanted
        self.ipv6(at) if version == 6 else self.ipv4(at)

    def partly(self, layer, at):
        """The fields of a header that is whole, or not, and is not believed."""
        try:
            self.read(layer, layer, at)
        except Stop:
            return
        self.stack.pop()
        self.whole.discard(layer)

    def bound(self, layer, field, at, field_at, length):
        """The packet at `at` has `length` bytes, says the IP header."""
        dscps = [self.options[name] for name in ("trimmed_dscp", "trimmed_lasthop_dscp")]
        # Many switches that trim leave the IP length as it was.
        self.checksum_counts = at + length <= self.wire
        if at + length > self.wire and self.outer.get("ip.dscp") not in dscps:
            there = self.wire - at
            self.promise = {"layer": layer, "field": field, "offset": field_at, "needed": length, "present": there}
        self.bounded(at + length)

    def ipv4(self, at):
        header, _ = self.read("ipv4", "ipv4", at)
        size, total = 4 * header["ip.ihl"], header["ip.total_length"]
        self.stack.pop()
        if size < 20:
            raise Stop("ipv4", "ip.ihl", at, 5, header["ip.ihl"])
        if total < size:
            raise Stop("ipv4", "ip.total_length", at + 2, size, total)
        self.bound("ipv4", "ip.total_length", at, at + 2, total)
        if at + size > len(self.data):
            raise Stop("ipv4", "ip.ihl", at, size, len(self.data) - at, end=at + size)
        self.stack.append("ipv4")
        self.addresses(at + 12, 4)
        self.checksum_ok = not self.checksum_counts or ones_complement_sum(self.data[at : at + size]) == 0xFFFF
        self.fragment = header["ip.mf"] == 1 or header["ip.frag_offset"] != 0
        self.above(at + size, header["ip.proto"])

    def ipv6(self, at):
        header, next_at = self.read("ipv6", "ipv6", at)
        self.addresses(at + 8, 16)
        if header["ip.payload_length"] == 0 and header["ip.proto"] == 0:
            # A jumbogram, whose length is in the hop-by-hop header: longer than any packet of UET.
            return self.rest(next_at)
        self.bound("ipv6", "ip.payload_length", at, at + 4, 40 + header["ip.payload_length"])
        at, proto = next_at, header["ip.proto"]
        while (proto in SKIPPED or proto == FRAGMENT) and not self.fragment:
            header = "ipv6_fragment" if proto == FRAGMENT else "ipv6_ext"
            extension, next_at = self.read("ipv6", header, at)
            self.stack.pop()
            if proto == FRAGMENT:
                # With offset 0 and nothing to follow, an atomic fragment: a whole packet.
                self.fragment = bool(extension["ip.mf"] or extension["ip.frag_offset"])
            else:
                units = extension["ip.ext.length"]
                size = 4 * (units + 2) if proto == AH else 8 * (units + 1)
                if at + size > self.end():
                    raise Stop("ipv6", "ip.ext.length", at + 1, size, self.end() - at, end=at + size)
                next_at = at + size
            at, proto = next_at, extension["ip.ext.proto"]
        self.above(at, proto)

    def addresses(self, at, size):
        self.address = at
        self.src, self.dst = (
            str(ipaddress.ip_address(self.data[i : i + size])) for i in (at, at + size)
        )

    def above(self, at, proto):
        if self.fragment:
            self.rest(at)
        elif proto == UDP:
            self.udp(at)
        elif proto == self.options["ip_proto"]:
            self.native(at)
        else:
            self.rest(at)

    def native(self, at):
        _, at = self.read("entropy", "entropy", at)
        self.uet(at)

    def udp(self, start):
        header, at = self.read("udp", "udp", start)
        if header["udp.dst_port"] != self.options["udp_port"]:
            return self.rest(at)
        self.udp_at, length = start, header["udp.length"]
        if length < 8:
            self.stack.pop()
            raise Stop("udp", "udp.length", start + 4, 8, length)
        missing = start + length - self.limit
        if missing > 0:
            self.trimmed = {"layer": "payload", "missing": missing, "last_hop": False}
            self.original = start + length
        else:
            self.bounded(start + length)
        self.uet(at)

    # UET

    def uet(self, at):
        dscp = self.outer.get("ip.dscp")
        for option, last_hop in (("trimmed_dscp", False), ("trimmed_lasthop_dscp", True)):
            if dscp is not None and dscp == self.options[option]:
                if not self.trimmed and self.limit > self.wire:
                    # The switch left the IP length as it was.
                    self.trimmed = {"layer": "payload", "missing": self.limit - self.wire}
                    self.original = self.limit
                elif not self.trimmed:
                    # Nothing says how long the packet was.
                    self.trimmed = {"layer": "payload", "missing": None}
                    self.original = float("inf")
                self.trimmed["last_hop"] = last_hop
        kind = self.options["trailer"]
        if kind != "none" and self.original < float("inf"):
            self.take_trailer(kind, at)
        self.pds(at)

    def take_trailer(self, kind, at):
        """A trailer's place is not payload, even where the trailer is not whole and so is not there."""
        size, end = TRAILERS[kind], self.original
        if end - at < size:
            raise Stop("trailer", kind, at, size, self.end() - at)
        self.original -= size
        self.limit = min(self.limit, self.original)
        if self.trimmed or self.sliced or end > len(self.data):
            return
        value = self.data[self.limit : end]
        expected = ok = None
        if kind == "crc" and self.address is not None:
            covered = self.data[self.address : self.limit]
            expected = crc32c(covered).to_bytes(4, "big")
            if value != expected and self.udp_at is not None:
                # Sources leave open whether a UDP checksum counts as it is or as 0.
                place = self.udp_at + 6 - self.address
                zeroed = crc32c(covered[:place] + bytes(2) + covered[place + 2 :]).to_bytes(4, "big")
                expected = zeroed if value == zeroed else expected
            ok, expected = value == expected, "0x" + expected.hex()
        self.trailer = {"kind": kind, "value": "0x" + value.hex(), "expected": expected, "ok": ok}

    def pds(self, at):
        if at >= self.end():
            self.read("pds", "prologue", at)  # stops there
        kind = self.data[at] >> 3
        if kind == 1:
            _, at = self.read("tss", "tss_ssi" if self.data[at] & 4 else "tss", at)
            if not self.opened:
                # The rest is encrypted.
                return self.rest(at)
            self.opened = False
            return self.pds(at)
        header, allowed = PDS.get(kind, ("prologue", None))
        fields, at = self.read("pds", header, at)
        if header != "prologue":
            self.derive_pds(header, fields)
        if allowed is not None and fields["pds.next_hdr"] in SES:
            at = self.ses(at, SES[fields["pds.next_hdr"]])
        self.rest(at)

    def ses(self, at, header):
        fields, at = self.read("ses", header, at)
        if "ses.message_offset" in fields:
            self.derived["ses.end_offset"] = fields["ses.message_offset"] + fields["ses.payload_length"]
        if header.startswith("response"):
            return at
        opcode = fields["ses.opcode"]
        if opcode in (0x06, 0x0A):
            _, at = self.read("ext", "rendezvous", at)
        elif opcode in (0x03, 0x04, 0x0D, 0x0E):
            swap = at < self.end() and 0x0D <= self.data[at] <= 0x12
            _, at = self.read("ext", "compare_swap" if swap else "atomic", at)
        return at

    def derive_pds(self, header, f):
        def psn(value):
            return value & 0xFFFFFFFF

        out = self.derived
        if "pds.clear_psn_offset" in f:
            out["pds.clear_psn"] = psn(f["pds.psn"] + f["pds.clear_psn_offset"])
        if "pds.psn_offset" in f:
            out["pds.start_psn"] = psn(f["pds.psn"] - f["pds.psn_offset"])
        if "pds.ack_psn_offset" in f:
            out["pds.ack_psn"] = psn(f["pds.cack_psn"] + f["pds.ack_psn_offset"])
        if "pds.sack_psn_offset" in f:
            base = psn(f["pds.cack_psn"] + f["pds.sack_psn_offset"])
            out["pds.sack_psn"] = base
            # Bit 0 first, the runs of ones are the ranges.
            ones = re.finditer("1+", bin(f["pds.sack_bitmap"])[:1:-1])
            out["pds.sacked"] = [[psn(base + run.start()), psn(base + run.end() - 1)] for run in ones]
        if f.get("pds.mpr"):
            out["pds.mp_range"] = 128 * f["pds.mpr"]
        if f.get("pds.service_time"):
            out["pds.service_time_ns"] = 128 * f["pds.service_time"]
        if "pds.rcvd_bytes" in f:
            out["pds.rcvd_bytes_bytes"] = 256 * f["pds.rcvd_bytes"]
        if "pds.credit" in f:
            out["pds.credit_bytes"] = 256 * f["pds.credit"]
        control = NAMES["pds.ctl_type"].get(f.get("pds.ctl_type"))
        if control in ("CLEAR_COMMAND", "CLEAR_REQUEST"):
            out["pds.clear_psn"] = f["pds.payload"]
        if control == "CREDIT":
            out["pds.credit_bytes"] = 256 * (f["pds.payload"] & 0xFFFFFF)


# ---------------------------------------------------------------------------------------------------------------------
# What the specification forbids
# ---------------------------------------------------------------------------------------------------------------------


def reserved_code(packet, field):
    value = packet.fields.get(field)
    return value is not None and field not in packet.names and value not in VENDOR.get(field, ())


def version(text):
    return tuple(map(int, text.split(".")))


def violations(packet):
    """Clear violations in headers that are whole: (field, value, severity, or None where any will do)."""
    fields, whole, found = packet.fields, packet.whole, []

    def flag(field, severity=None):
        found.append((field, fields[field], severity))

    for key, value in packet.reserved.items():
        header = key.split("@")[0]
        if header in whole:
            found.append((header, value, None))
    if packet.trailer and packet.trailer["ok"] is False:
        found.append(("crc", int(packet.trailer["value"], 0), "error"))

    if "pds" in packet.stack and "ipv4" in packet.stack:
        if not packet.outer["ip.df"]:
            found.append(("ip.df", 0, None))
        if not packet.checksum_ok and not packet.trimmed:
            found.append(("ip.checksum", packet.outer["ip.checksum"], "error"))

    if "pds" in packet.stack:
        header, allowed = PDS.get(fields["pds.type"], ("prologue", None))
        if header == "prologue":
            flag("pds.type", "error")
        elif allowed is not None and fields["pds.next_hdr"] not in allowed:
            flag("pds.next_hdr", "error")
        elif header == "uud" and fields["pds.next_hdr"] in (1, 2):
            flag("pds.next_hdr")
        for field in ("pds.ctl_type", "pds.cc_type", "pds.nack_code"):
            if reserved_code(packet, field):
                flag(field)
        if fields.get("pds.nack_code") == 0x03 and version(packet.options["spec"]) >= (1, 0, 3):
            flag("pds.nack_code")
        if fields.get("pds.ccx_type", 14) < 14:
            flag("pds.ccx_type")
        if fields.get("pds.flags.req") == 3:
            flag("pds.flags.req")
        if fields.get("pds.cc_flags"):
            flag("pds.cc_flags")
        if fields.get("pds.pdc_info", 0) & 0b1110:
            flag("pds.pdc_info")
        if fields.get("pds.flags.nt"):
            # One of the two is enough to say that a RUDI packet has no PDC.
            field = "pds.spdcid" if fields["pds.spdcid"] else "pds.dpdcid"
            if fields[field]:
                flag(field)

    if "ses" in packet.stack:
        header = SES[fields["pds.next_hdr"]]
        if fields["ses.version"]:
            flag("ses.version")
        if header in ("small", "medium"):
            # One of the two is enough to say that the message is not all here.
            field = "ses.eom" if fields["ses.som"] else "ses.som"
            if not fields[field]:
                flag(field)
        if not header.startswith("response"):
            if reserved_code(packet, "ses.opcode"):
                flag("ses.opcode")
        else:
            carried = (0, 1, 3) if header == "response" else (2,)
            if fields["ses.opcode"] not in carried and fields["ses.opcode"] < 0x30:
                flag("ses.opcode")
            if reserved_code(packet, "ses.return_code"):
                flag("ses.return_code")

    if "ext" in packet.stack:
        for field in ("ses.atomic_opcode", "ses.atomic_datatype"):
            if reserved_code(packet, field):
                flag(field)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Comparing
# ---------------------------------------------------------------------------------------------------------------------

OPTIONS = {
    "udp_port": 4793,
    "ip_proto": 253,
    "trailer": "none",
    "trimmed_dscp": None,
    "trimmed_lasthop_dscp": None,
    "spec": "1.0.3",
    "wire": None,
    "keys": None,
}
KEYS = (
    "stack fields names derived reserved payload padding trailer trimmed sliced fragment error".split()
)  # and findings
SEVERITIES = ("error", "warning", "note")


class NotAVector(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise NotAVector(what)


def decode(vector, opened=False):
    """The packet of a vector, whose bytes have been decrypted if `opened`; NotAVector says what is wrong with the question."""
    expect(isinstance(vector, dict), "not an object")
    start, text, given = vector.get("from", "eth"), vector.get("hex"), vector.get("options", {})
    expect(start in ("eth", "ip", "udp", "uet"), "from is %r" % (start,))
    expect(isinstance(text, str), "hex is not a text")
    expect(isinstance(given, dict), "options is not an object")
    options = dict(OPTIONS)
    for key, value in given.items():
        expect(key in OPTIONS, "options.%s is not known" % key)
        if key == "trailer":
            good = value in ("none", "crc", "icv")
        elif key == "spec":
            good = isinstance(value, str) and re.fullmatch(r"\d{1,4}(\.\d{1,4}){2}", value)
        elif key == "keys":
            good = isinstance(value, list) and value and all(isinstance(domain, dict) for domain in value)
        else:
            good = type(value) is int and value >= 0 or value is None and OPTIONS[key] is None
        expect(good, "options.%s is %r" % (key, value))
        options[key] = value
    try:
        data = bytes.fromhex(text)
    except ValueError as error:
        raise NotAVector("hex: %s" % error) from None
    expect(options["wire"] is None or options["wire"] >= len(data), "options.wire is less than hex has")
    return Packet(data, start, options, opened)


def as_json(packet):
    out = {"src": packet.src, "dst": packet.dst}
    out.update((key, getattr(packet, key)) for key in KEYS)
    return out


def text_of(value):
    """JSON, so that 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


class Report:
    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.vectors = self.packets = self.compared = self.disagreements = self.unreadable = 0

    def differ(self, where, key, expected, seen):
        self.disagreements += 1
        line = "%s: %s: expected %s, seen %s" % (where, key, expected, seen)
        # A key may hold anything, also what the terminal cannot show.
        print(line.encode("ascii", "backslashreplace").decode(), file=self.out)

    def compare(self, where, key, expected, seen):
        self.compared += 1
        if text_of(expected) != text_of(seen):
            self.differ(where, key, text_of(expected), text_of(seen))

    def summary(self):
        return "%d vectors, %d packets, %d fields compared, %d disagreements" % (
            self.vectors,
            self.packets,
            self.compared,
            self.disagreements,
        )

    def refuse(self, where, problem):
        self.unreadable += 1
        print("%s: not a vector: %s" % (where, problem), file=sys.stderr)

    def finish(self):
        """Prints the summary, and returns the exit code."""
        print(self.summary(), file=self.out)
        return 2 if self.unreadable else int(self.disagreements > 0)


def check_findings(report, where, packet, findings):
    if not isinstance(findings, list) or not all(isinstance(finding, dict) for finding in findings):
        return report.differ(where, "findings", "a list of objects", text_of(findings))
    for number, finding in enumerate(findings):
        key = "findings[%d]" % number
        field, value = finding.get("field"), finding.get("value")
        report.compared += 1
        if finding.get("severity") not in SEVERITIES:
            report.differ(where, key + ".severity", "one of " + ", ".join(SEVERITIES), text_of(finding.get("severity")))
        if not re.fullmatch(r"(WIRE|PDS|SES|CC|RCCC|ROB)-[A-Z0-9]+-\d{3}", str(finding.get("id"))):
            report.differ(where, key + ".id", "AREA-TOPIC-NNN", text_of(finding.get("id")))
        if not isinstance(field, str):
            report.differ(where, key + ".field", "a field of the packet", text_of(field))
            continue
        runs = [run for name, run in packet.reserved.items() if name.split("@")[0] == field]
        if field == "payload":
            known = [(packet.payload or {}).get("length")]
        elif field in ("crc", "icv"):
            known = [int(packet.trailer["value"], 0)] if packet.trailer else []
        elif field in packet.fields:
            known = [packet.fields[field]]
        elif field in packet.derived:
            known = [packet.derived[field]]
        elif field in packet.outer:
            known = [packet.outer[field]]
        else:
            known = runs
        if not known:
            report.differ(where, key + ".field", "a field of the packet", text_of(field))
        elif text_of(value) not in map(text_of, known):
            report.differ(where, key + ".value", " or ".join(map(text_of, known)), text_of(value))
    for field, value, severity in violations(packet):
        report.compared += 1
        same = [f for f in findings if f.get("field") == field and text_of(f.get("value")) == text_of(value)]
        if not same:
            report.differ(where, "findings", "one for %s = %s" % (field, text_of(value)), "none")
        elif severity and severity not in [f.get("severity") for f in same]:
            report.differ(where, "findings", "severity %s for %s" % (severity, field), same[0].get("severity"))


def check_packet(report, where, vector, opened=False):
    protection = vector.get("protection")
    if not opened and isinstance(protection, dict) and protection.get("authenticated"):
        decode(vector)
        return
    packet = decode(vector, opened)
    report.packets += 1
    mine = as_json(packet)
    for key in KEYS:
        if key not in vector:
            report.differ(where, key, text_of(mine[key]), "no such key")
            continue
        expected, seen = mine[key], vector[key]
        if key == "error" and isinstance(seen, dict):
            seen = {k: v for k, v in seen.items() if k != "message"}
        if isinstance(expected, dict) and isinstance(seen, dict):
            # Part by part, so that what differs can be seen.
            for part in sorted(set(expected) | set(seen)):
                if part in expected and part in seen:
                    report.compare(where, "%s.%s" % (key, part), expected[part], seen[part])
                elif part in expected:
                    report.differ(where, "%s.%s" % (key, part), text_of(expected[part]), "nothing")
                else:
                    report.differ(where, "%s.%s" % (key, part), "nothing", text_of(seen[part]))
        else:
            report.compare(where, key, expected, seen)
    for key in ("src", "dst"):
        if key in vector:
            report.compare(where, key, mine[key], vector[key])
    if "findings" in vector:
        check_findings(report, where, packet, vector["findings"])
    else:
        report.differ(where, "findings", "a list", "no such key")


def check_vector(report, where, vector):
    expect(isinstance(vector, dict), "not an object")
    for key in ("name", "description", "source"):
        expect(isinstance(vector.get(key), str), "no %s" % key)
    where = "%s: %s" % (where, vector["name"])
    report.vectors += 1
    if "packets" not in vector:
        return check_packet(report, where, vector)
    packets = vector["packets"]
    expect(isinstance(packets, list) and packets, "packets is not a list of packets")
    shared = {key: vector[key] for key in ("from", "options") if key in vector}
    now = 0
    for number, packet in enumerate(packets):
        here = "%s: packets[%d]" % (where, number)
        try:
            expect(isinstance(packet, dict), "not an object")
            expect(packet.get("direction") in ("initiator", "target"), "direction is %r" % (packet.get("direction"),))
            at = packet.get("at")
            expect(type(at) is int and at >= now, "at is %r, after %d" % (at, now))
            now = at
            check_packet(report, here, {**shared, **packet})
        except NotAVector as problem:
            raise NotAVector("packets[%d]: %s" % (number, problem)) from None


def unique(pairs):
    out = dict(pairs)
    expect(len(out) == len(pairs), "the same key twice")
    return out


def check_file(report, path, check=check_vector):
    """Checks each line of a file."""
    try:
        # An empty file has one empty line, which is no vector.
        lines = pathlib.Path(path).read_bytes().splitlines() or [b""]
    except OSError as problem:
        return report.refuse(path, problem)
    for number, line in enumerate(lines, 1):
        where = "%s:%d" % (path, number)
        try:
            check(report, where, json.loads(line.decode(), object_pairs_hook=unique))
        except (ValueError, RecursionError, NotAVector) as problem:
            report.refuse(where, problem)


def decode_lines(file):
    """Lines of questions to lines of answers. A line that is no question is answered by null, and makes the exit 2."""
    code = 0
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            answer = as_json(decode(json.loads(line)))
        except (ValueError, RecursionError, NotAVector) as problem:
            print("line %d: %s" % (number, problem), file=sys.stderr)
            answer, code = None, 2
        print(json.dumps(answer))
    return code


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        epilog="Exit code: 0 all agree, 1 a disagreement, 2 usage, no vectors, or a line that is not a vector.",
    )
    parser.add_argument("path", nargs="*", type=pathlib.Path, help="files of vectors, or directories of such files (default: here)")
    parser.add_argument("--decode", metavar="FILE", help="decode lines of {from, options, hex} instead; - is stdin")
    options = parser.parse_args(arguments)
    if options.decode is not None:
        if options.path:
            parser.error("--decode takes no vectors")
        if options.decode == "-":
            return decode_lines(sys.stdin)
        try:
            with open(options.decode, encoding="utf-8") as file:
                return decode_lines(file)
        except OSError as problem:
            print("check.py: %s" % problem, file=sys.stderr)
            return 2
    files = []
    for path in options.path or [pathlib.Path(__file__).resolve().parent]:
        files += sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        print("check.py: no vectors", file=sys.stderr)
        return 2
    report = Report()
    for path in files:
        check_file(report, path)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
