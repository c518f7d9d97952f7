"""The headers that the example device reads and writes (docs/wire-format.md), as plain structs."""

import struct
from collections import namedtuple

RUD_REQ, ROD_REQ, ACK, ACK_CC, NACK, CP, RUD_CC_REQ = 2, 3, 7, 8, 10, 11, 13
NEXT_NONE, NEXT_SMALL, NEXT_MEDIUM, NEXT_STD, NEXT_RESPONSE = 0, 1, 2, 3, 4
NOOP, ACK_REQUEST, CLEAR_COMMAND, CLEAR_REQUEST, CLOSE_COMMAND, CLOSE_REQUEST, PROBE, NEGOTIATION = 0, 1, 2, 3, 4, 5, 6, 9
INV_DPDCID, PDC_HDR_MISMATCH, CLOSING, PKT_NOT_RCVD = 0x0E, 0x0F, 0x10, 0x12
INVALID_SYN, PDC_MODE_MISMATCH, PSN_OOR_WINDOW, UNEXP_EVENT = 0x15, 0x16, 0x0B, 0x19
RCVD_SES_PROCG, NO_PDC_AVAIL = 0x18, 0x04
NULL, OK, UNSUPPORTED_OP, AT_OUT_OF_RANGE, PERM_VIOLATION = 0x00, 0x01, 0x06, 0x0C, 0x17
BAD_INDEX, BAD_PID, BAD_JOB_ID, BAD_MKEY, INITIATOR_ERR = 0x19, 0x1A, 0x1B, 0x1C, 0x23
UET_WRITE, UET_MSG_ERROR = 1, 15
DEFAULT_RESPONSE, UET_RESPONSE = 0, 1

# A request or a control packet: all that stands in the first 12 bytes. `low` is a control packet's payload.
Request = namedtuple("Request", "type next retx ar syn isrod clear psn spdcid dpdcid offset low rest")
Ses = namedtuple("Ses", "opcode ie rel dc som eom message job process index offset key length at payload")


class Malformed(Exception):
    pass


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unpack(form, data, at=0):
    try:
        return struct.unpack_from(form, data, at)
    except struct.error as error:
        raise Malformed(str(error)) from error


def read(packet):
    """A request or control packet; None for what is neither."""
    prologue, clear, psn, spdcid, last = unpack(">HHIHH", packet)
    kind, following, flags = prologue >> 11, prologue >> 7 & 15, prologue & 0x7F
    retx, ar, syn, isrod = (bool(flags & bit) for bit in (16, 8, 4, 32))
    low, rest, isrod = 0, packet[12:], isrod and kind == CP
    if kind == CP:
        (low,) = unpack(">I", packet, 12)
        rest = packet[16:]
    elif kind == RUD_CC_REQ:
        unpack(">I", packet, 12)
        kind, rest = RUD_REQ, packet[16:]
    elif kind not in (RUD_REQ, ROD_REQ):
        return None
    clear = clear if kind == CP else psn + signed(clear, 16) & 0xFFFFFFFF
    dpdcid, offset = (0, last & 0xFFF) if syn else (last, 0)
    return Request(kind, following, retx, ar, syn, isrod, clear, psn, spdcid, dpdcid, offset, low, rest)


def read_ses(following, data):
    """A SES request with its payload."""
    if following not in (NEXT_SMALL, NEXT_MEDIUM, NEXT_STD):
        raise Malformed(f"next header {following}")
    first, second, job, process, index = unpack(">HHIHH", data)
    opcode = first >> 8 & 63
    dc, ie, rel, hd, eom, som = (bool(first & bit) for bit in (32, 16, 8, 4, 2, 1))
    common = dict(opcode=opcode, ie=ie, rel=rel, dc=dc, job=job & 0xFFFFFF, process=process & 0xFFF, index=index & 0xFFF)
    if following == NEXT_STD:
        offset, _initiator, key, tail, length = unpack(">QIQQI", data, 12)
        payload, at = data[44:], 0 if som else tail & 0xFFFFFFFF
        return Ses(**common, som=som, eom=eom, message=second, offset=offset, key=key, length=length, at=at, payload=payload)
    (offset,) = unpack(">Q", data, 12)
    key, payload = None, data[20:]
    if following == NEXT_MEDIUM:
        _initiator, key = unpack(">IQ", data, 20)
        # With header data there is no place for an offset.
        offset, payload = 0 if hd else offset, data[32:]
    whole = dict(som=True, eom=True, message=0, offset=offset, key=key, length=second & 0x3FFF, at=0)
    return Ses(**common, **whole, payload=payload)


def prologue(kind, following, flags):
    return struct.pack(">H", kind << 11 | following << 7 | flags)


def ack(context, psn, marked, retx, response=b"", clear=False, probe=None):
    """An ACK for this PSN; an ACK_CC where there is a gap to tell, or a probe to answer."""
    cack = context.cack
    flags = (32 if marked else 0) | (16 if retx else 0) | (0 if probe is None else 8)
    flags |= 2 if clear else 4 if context.asks and probe is None else 0
    gap = probe is not None or any(True for _ in context.above)
    kind = ACK_CC if gap else ACK
    word = signed(psn - cack, 32) & 0xFFFF if probe is None else probe
    head = prologue(kind, NEXT_RESPONSE if response else NEXT_NONE, flags)
    head += struct.pack(">HIHH", word, cack, context.own, context.peer)
    if gap:
        first = signed(psn - cack, 32)
        first = max(1, first - first % 64 if probe is None else first)
        has = (i for i in range(64) if context.has(cack + first + i))
        bitmap = sum(1 << i for i in has)
        # Type CREDIT with nothing in it: the device runs no congestion control.
        head += struct.pack(">BBHQQ", 1 << 4, context.mpr, first & 0xFFFF, bitmap, 0xFFFF)
    return head + response


def nack(code, psn, own, peer, marked, retx):
    flags = (32 if marked else 0) | (16 if retx else 0)
    return prologue(NACK, NEXT_NONE, flags) + struct.pack(">BBIHHI", code, 0, psn, own, peer, 0)


def response(code, message, job, length=0):
    """The default response for a success, a full one for an error."""
    opcode = DEFAULT_RESPONSE if code == OK else UET_RESPONSE
    return struct.pack(">BBHII", opcode, code, message, job, length)
