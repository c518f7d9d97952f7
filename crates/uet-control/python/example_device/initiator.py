"""The initiator of the example device: it writes to others, with a window of 64 packets and a timer for each packet."""

import os
import struct

from packets import *

AHEAD = 64
RTO, MOST_TRIES = 0.050, 5
NACK_WAIT, MOST_REFUSALS = 0.010, 5
TRIMMED, TRIMMED_LASTHOP, RCVR_INFER_LOSS = 0x01, 0x02, 0x1A
CLOSING_IN_ERR, GTD_RESP_UNAVAIL, EXP_FATAL, NEW_START_PSN = 0x11, 0x13, 0xFF, 0x17
RETRY_ELSEWHERE = {INV_DPDCID, PDC_HDR_MISMATCH, CLOSING, INVALID_SYN, PDC_MODE_MISMATCH, UNEXP_EVENT}
FATAL = {CLOSING_IN_ERR, GTD_RESP_UNAVAIL, EXP_FATAL}
LOSSES = {TRIMMED, TRIMMED_LASTHOP, RCVR_INFER_LOSS}
REFUSALS = {0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0D, 0x12, 0x14, 0x18, 0xFD, 0xFE}
# The return codes by number, from 0x00 to 0x24.
NAMES = ["NULL", "OK", "BAD_GENERATION", "DISABLED", "DISABLED_GEN", "NO_MATCH", "UNSUPPORTED_OP", "UNSUPPORTED_SIZE",
         "AT_INVALID", "AT_PERM", "AT_ATS_ERROR", "AT_NO_TRANS", "AT_OUT_OF_RANGE", "HOST_POISONED", "HOST_UNSUCCESS_CMPL",
         "AMO_UNSUPPORTED_OP", "AMO_UNSUPPORTED_DT", "AMO_UNSUPPORTED_SIZE", "AMO_UNALIGNED", "AMO_FP_NAN",
         "AMO_FP_UNDERFLOW", "AMO_FP_OVERFLOW", "AMO_FP_INEXACT", "PERM_VIOLATION", "OP_VIOLATION", "BAD_INDEX", "BAD_PID",
         "BAD_JOB_ID", "BAD_MKEY", "BAD_ADDR", "CANCELLED", "UNDELIVERABLE", "UNCOR", "UNCOR_TRNSNT", "TOO_LONG",
         "INITIATOR_ERR", "DROPPED"]


def completion(operation, message):
    """Reports a write that has ended on the control channel."""
    known = NAMES[message.code] if message.code < len(NAMES) else "NULL"
    code = known if message.status != "failed" else "UNDELIVERABLE"
    length = message.length if message.status == "ok" else 0
    return {"operation": operation, "status": message.status, "length": length, "return_code": code}


CLEAR_ASKED, CLOSE_ASKED = 1, 2


class Message:
    """A write, and what has become of it. `bodies` are its packets from SES on."""

    def __init__(self, operation, bodies, length):
        self.operation, self.bodies, self.length = operation, bodies, length
        self.left, self.code, self.status = len(bodies), OK, None


class Packet:
    """A packet of a message; CLOSE_COMMAND is of none."""

    def __init__(self, psn, message, body):
        self.psn, self.message, self.body = psn, message, body
        self.tries = self.refusals = 0
        self.arrived, self.asked, self.due = False, False, None


class Outgoing:
    """The initiator's side of a context."""

    def __init__(self, key, own):
        self.key, self.own, self.remote = key, own, None
        self.start = int.from_bytes(os.urandom(4), "big")
        self.next, self.cack = self.start, self.start - 1 & 0xFFFFFFFF
        self.clear, self.named, self.range = self.cack, set(), 1024
        self.queue, self.flight = [], {}
        # Up to where the target wants CLEAR_PSN told, and what it has been told.
        self.wanted, self.told = None, self.clear
        self.closing = False

    def covered(self, psn):
        return signed(psn - self.cack, 32) <= 0 or psn in self.named


class Initiator:
    """`send(address, bytes)` sends a packet; `now()` is the time in seconds; `target` takes what comes on the return direction."""

    def __init__(self, send, now, target):
        self.send, self.now, self.target = send, now, target
        target.asked_to_close = lambda own: self.close(self.by_own[own])
        self.reset()

    def reset(self):
        self.contexts, self.by_own, self.messages, self.last = {}, {}, {}, 0

    def write(self, operation, key, bodies, length):
        message = Message(operation, bodies, length)
        self.messages[operation] = message
        self.put(key, message)

    def put(self, key, message):
        context = self.contexts.get(key)
        if context is None:
            # Targets' own numbers are above these.
            self.last = self.last % 0x7FFF + 1
            context = self.contexts[key] = self.by_own[self.last] = Outgoing(key, self.last)
        context.queue.extend((message, body) for body in message.bodies)
        self.pump(context)

    def pump(self, context):
        while context.queue and len(context.flight) < AHEAD:
            if context.range and signed(context.next - context.cack, 32) > context.range:
                return
            message, body = context.queue.pop(0)
            packet = context.flight[context.next] = Packet(context.next, message, body)
            context.next = context.next + 1 & 0xFFFFFFFF
            self.transmit(context, packet)
        if context.closing and context.remote is not None and not context.flight:
            packet = context.flight[context.next] = Packet(context.next, None, None)
            context.next = context.next + 1 & 0xFFFFFFFF
            self.transmit(context, packet)

    def close(self, context):
        """Closes a context when all of its requests are acknowledged. Later messages take another one."""
        if self.contexts.get(context.key) is context:
            del self.contexts[context.key]
        if not context.closing:
            context.closing = True
            self.pump(context)

    def transmit(self, context, packet, retx=False):
        if packet.message is None:
            packet.due = self.now() + RTO * 2 ** packet.tries
            return self.control(context, CLOSE_COMMAND, packet.psn, flags=8 | (16 if retx else 0))
        syn = context.remote is None
        last = packet.psn - context.start & 0xFFF if syn else context.remote
        flags = 8 | (4 if syn else 0) | (16 if retx else 0)
        head = prologue(RUD_REQ, NEXT_STD, flags)
        head += struct.pack(">HIHH", context.clear - packet.psn & 0xFFFF, packet.psn, context.own, last)
        packet.due = self.now() + RTO * 2 ** packet.tries
        context.told = context.clear
        self.send(context.key[0], head + packet.body)

    def control(self, context, kind, psn, payload=0, flags=0):
        head = prologue(CP, kind, flags) + struct.pack(">HIHHI", 0, psn, context.own, context.remote, payload)
        self.send(context.key[0], head)

    def tell_clear(self, context):
        context.told = context.clear
        self.control(context, CLEAR_COMMAND, 0, context.clear)

    # Received packets.

    def take(self, address, data):
        """Handles an ACK, a NACK or CLEAR_REQUEST. Returns false for other packets."""
        first, word, number, spdcid, dpdcid = unpack(">HHIHH", data)
        kind, flags = first >> 11, first & 0x7F
        if kind == CP and first >> 7 & 15 == CLEAR_REQUEST and dpdcid in self.by_own:
            context = self.by_own[dpdcid]
            if (context.key[0], context.remote) == (address, spdcid):
                self.tell_clear(context)
            return True
        if kind not in (ACK, ACK_CC, 9, NACK, 12):
            return False
        context = self.by_own.get(dpdcid)
        if context is None or context.key[0] != address or kind in (NACK, 12) and flags & 8:
            return True
        if kind in (NACK, 12):
            if context.remote is None or spdcid in (0, context.remote):
                self.refused(context, word >> 8, number, unpack(">I", data, 12)[0])
        elif spdcid and context.remote in (None, spdcid):
            self.acknowledged(context, kind, flags, word, number, spdcid, data)
        return True

    def acknowledged(self, context, kind, flags, word, cack, spdcid, data):
        if signed(cack - context.next, 32) >= 0 or signed(cack - context.start, 32) < -1:
            return
        if context.remote is None:
            context.remote = spdcid
            self.target.adopt(context.key[0], context.own, spdcid, context.start)
        probe = flags & 8
        named = cack + signed(word, 16) & 0xFFFFFFFF
        if kind in (ACK_CC, 9):
            _, mpr, first, bits = unpack(">BBHQ", data, 12)
            if signed(cack - context.cack, 32) >= 0:
                context.range = 128 * mpr
            base = cack + signed(first, 16)
            for psn in (base + i & 0xFFFFFFFF for i in range(64) if bits >> i & 1):
                if psn in context.flight:
                    context.flight[psn].arrived = True
        code = OK
        if (first := data[0] << 8 | data[1]) >> 7 & 15 == NEXT_RESPONSE:
            at = {ACK: 12, ACK_CC: 32}.get(kind, 40)
            code = unpack(">BB", data, at)[1] & 63
        if not probe:
            if named in context.flight:
                if code == NULL and signed(named - cack, 32) > 0:
                    # NULL proves arrival, not success: an error may follow.
                    context.flight[named].arrived = True
                else:
                    context.named.add(named)
                    self.done(context, named, code)
            if signed(cack - context.cack, 32) > 0:
                context.cack = cack
                for psn in [psn for psn in context.flight if signed(psn - cack, 32) <= 0]:
                    self.done(context, psn, OK)
        while context.covered(context.clear + 1 & 0xFFFFFFFF) and signed(context.next - context.clear, 32) > 1:
            context.clear = context.clear + 1 & 0xFFFFFFFF
            context.named.discard(context.clear)
        if flags >> 1 & 3 == CLOSE_ASKED:
            self.close(context)
        if context.own not in self.by_own:
            return
        if flags >> 1 & 3 == CLEAR_ASKED:
            if context.wanted is None or signed(named - context.wanted, 32) > 0:
                context.wanted = named
            context.told = None
        self.pump(context)
        if context.wanted is not None and context.told != context.clear:
            # No request has left that could say it.
            self.tell_clear(context)
        if context.wanted is not None and signed(context.clear - context.wanted, 32) >= 0:
            context.wanted = None

    def done(self, context, psn, code):
        message = context.flight.pop(psn).message
        if message is None:
            return self.leave(context, again=False)
        if code not in (NULL, OK):
            message.code = code
        message.left -= 1
        if message.left == 0:
            message.status = "ok" if message.code == OK else "refused"

    def refused(self, context, code, psn, payload):
        packet = context.flight.get(psn)
        if packet is None:
            return
        if code in RETRY_ELSEWHERE:
            self.leave(context, again=True)
        elif code in FATAL:
            self.leave(context, again=False)
        elif code == NEW_START_PSN:
            self.renumber(context, payload)
        elif code in LOSSES | REFUSALS and packet.refusals < MOST_REFUSALS:
            packet.refusals += 1
            if code in LOSSES | {PKT_NOT_RCVD, 0x14}:
                packet.arrived = False
            wait = 0 if code in LOSSES else NACK_WAIT
            packet.asked, packet.due = True, min(packet.due, self.now() + wait)

    def renumber(self, context, start):
        shift = start - context.start
        packets = sorted(context.flight.values(), key=lambda packet: packet.psn - context.start & 0xFFFFFFFF)
        context.start, context.next = start, context.next + shift & 0xFFFFFFFF
        context.cack = context.clear = start - 1 & 0xFFFFFFFF
        context.flight = {}
        for packet in packets:
            packet.psn = packet.psn + shift & 0xFFFFFFFF
            context.flight[packet.psn] = packet
            self.transmit(context, packet, retx=True)

    def leave(self, context, again):
        """Ends a context. Unfinished messages restart on another one if `again`, and fail otherwise."""
        if self.contexts.get(context.key) is context:
            del self.contexts[context.key]
        self.by_own.pop(context.own, None)
        self.target.abandon(context.own)
        under_way = [packet.message for packet in context.flight.values()] + [message for message, _ in context.queue]
        for message in dict.fromkeys(message for message in under_way if message is not None):
            if not again:
                message.status = "failed"
                continue
            message.left = len(message.bodies)
            self.put(context.key, message)

    # Time.

    def timeout(self):
        """When something is due."""
        dues = [packet.due for context in self.by_own.values() for packet in context.flight.values()]
        return min(dues, default=None)

    def expire(self):
        now = self.now()
        for context in list(self.by_own.values()):
            for packet in list(context.flight.values()):
                if packet.due > now or context.own not in self.by_own:
                    continue
                if not packet.asked:
                    if packet.tries == MOST_TRIES:
                        self.leave(context, again=False)
                        break
                    packet.tries += 1
                packet.asked = False
                if packet.arrived:
                    # It is there: only its response is missing.
                    packet.due = now + RTO * 2 ** packet.tries
                    self.control(context, ACK_REQUEST, packet.psn)
                else:
                    self.transmit(context, packet, retx=True)


def bodies(data, job, remote, message, initiator, mtu=4096):
    """The packets of a write, from SES on."""
    pieces = [data[at:at + mtu] for at in range(0, len(data), mtu)] or [b""]
    for number, piece in enumerate(pieces):
        som, eom = number == 0, number == len(pieces) - 1
        first = UET_WRITE << 8 | (0 if remote["absolute"] else 8) | (2 if eom else 0) | (1 if som else 0)
        tail = 0 if som else len(piece) << 32 | number * mtu
        address = remote["generation"] << 24 | job, remote["process"], remote["index"]
        yield struct.pack(">HHIHHQIQQI", first, message, *address, remote["offset"], initiator, remote["key"], tail,
                          len(data)) + piece
