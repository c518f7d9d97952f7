"""The target of the example device: it takes the writes of others (docs/behaviour.md). It speaks RUD only and
acknowledges every packet at once: the simplest correct device."""

import os

from packets import *

RANGE = 1024
MOST_CONTEXTS = 16384


def names(key):
    """Returns the part of a key that names a region, without reserved bits: twelve bits of an optimized key."""
    optimized = key >> 62 & 1
    return optimized, key & 0xFFF if optimized else key & 0xC0FF_FFFF_FFFF_FFFF


class Context:
    """The target's side of a context, or what the initiator's side takes of the return direction. `above` are the PSNs beyond
    the cumulative one."""

    def __init__(self, address, peer, own, start):
        self.address, self.peer, self.own, self.start = address, peer, own, start
        self.cack = self.start - 1 & 0xFFFFFFFF
        self.above, self.closed = set(), None
        self.kept = {}  # responses that are to be cleared, by PSN
        self.waiting = {}  # requests whose response is not ready: PSN to message
        self.messages = {}
        self.mpr = RANGE // 128
        self.returns = False
        # The arguments of the last ACK, and whether ACKs ask for the close.
        self.latest, self.asks = None, False

    def distance(self, psn):
        return signed(psn - self.cack, 32)

    def has(self, psn):
        return self.distance(psn) <= 0 or (psn & 0xFFFFFFFF) in self.above

    def received(self, psn):
        self.above.add(psn)
        self.move()

    def cleared(self, psn):
        for kept in [kept for kept in self.kept if signed(psn - kept, 32) >= 0]:
            del self.kept[kept]
        self.move()

    def move(self):
        following = self.cack + 1 & 0xFFFFFFFF
        while following in self.above and following not in self.kept:
            self.above.discard(following)
            self.cack = following
            following = following + 1 & 0xFFFFFFFF


class Message:
    """A write of several packets on its way."""

    def __init__(self):
        self.places, self.error = {}, None

    def bytes(self):
        return sum(self.places.values())


class Target:
    """`answer(address, port, bytes)` sends a packet to an address, with this entropy value."""

    def __init__(self, answer, bugs):
        self.answer, self.bugs, self.asked_to_close = answer, bugs, None
        self.reset()

    def reset(self):
        self.contexts, self.by_peer, self.gone = {}, {}, {}
        self.regions, self.dropped = [], {}

    def drop(self, why):
        self.dropped[why] = self.dropped.get(why, 0) + 1

    # Initiator contexts receive only control packets on the return direction, since the device reads nothing.

    def adopt(self, address, own, peer, start):
        self.contexts[own] = Context(address, peer, own, start)
        self.contexts[own].returns = True

    def abandon(self, own):
        self.contexts.pop(own, None)

    # Packet delivery.

    def take(self, address, entropy, marked, packet):
        try:
            request = read(packet)
            if request is None:
                return self.drop("not for a target")
            self.request(address, entropy, marked, request)
        except Malformed:
            self.drop("malformed")

    def request(self, address, entropy, marked, request):
        numbered = request.type != CP or request.next in (NOOP, CLOSE_COMMAND, CLOSE_REQUEST, NEGOTIATION)

        def refuse(code, context=None):
            own = context.own if context else 0
            packet = nack(code, request.psn, own, request.spdcid, marked, request.retx)
            self.answer(address, entropy, packet)

        if request.spdcid == 0:
            return self.drop("no PDCID")
        if request.type == CP and request.next not in (
            NOOP, ACK_REQUEST, CLEAR_COMMAND, CLOSE_COMMAND, CLOSE_REQUEST, PROBE, NEGOTIATION):
            return self.drop("a control packet of no use here")
        if request.syn:
            context = self.opened(address, request, refuse)
        else:
            context = self.contexts.get(request.dpdcid)
            if context is None:
                return refuse(INV_DPDCID) if numbered else self.drop("no such context")
            if (context.address, context.peer) != (address, request.spdcid):
                return refuse(PDC_HDR_MISMATCH) if numbered else self.drop("another's context")
        if context is None:
            return
        if request.type == ROD_REQ:
            return refuse(PDC_MODE_MISMATCH, context)
        if context.returns and (request.type != CP or request.next == CLOSE_COMMAND):
            return self.drop("a request for a target")
        if not context.returns and request.next == CLOSE_REQUEST and request.type == CP:
            return self.drop("a control packet for an initiator")
        if not numbered and context.closed is not None:
            return self.drop("for a closed context")
        if not numbered:
            return self.control(context, entropy, marked, request, refuse)

        distance = context.distance(request.psn)
        if context.closed is not None and signed(request.psn - context.closed, 32) > 0:
            return refuse(CLOSING, context)
        if distance > RANGE:
            return refuse(INVALID_SYN if request.syn else PSN_OOR_WINDOW, context)
        if distance < -RANGE:
            return refuse(PSN_OOR_WINDOW, context)
        if request.type != CP and signed(request.clear - request.psn, 32) < 0:
            context.cleared(request.clear)
        duplicate = context.has(request.psn)
        if duplicate and "delivers-twice" not in self.bugs:
            if request.psn in context.waiting:
                return refuse(RCVD_SES_PROCG, context)
            return self.acknowledge(context, entropy, marked, request, control=request.type == CP)
        if request.type == CP:
            context.received(request.psn)
            if request.next == CLOSE_COMMAND and "stays-open" not in self.bugs:
                self.close(context, request.psn)
            self.acknowledge(context, entropy, marked, request, control=True)
            if request.next == CLOSE_REQUEST:
                self.asked_to_close(context.own)
            return

        ses = read_ses(request.next, request.rest)
        message = context.messages.setdefault(ses.message, Message()) if not (ses.som and ses.eom) else Message()
        if ses.opcode == UET_MSG_ERROR:
            # The initiator has given the message up; its id may name another one.
            context.messages.pop(ses.message, None)
            code = OK
        else:
            code = self.write(message, ses)
        if code != OK:
            # It is received; the cumulative PSN waits until the error has been cleared.
            context.kept[request.psn] = response(code, ses.message, ses.job)
        if not duplicate:
            context.received(request.psn)
        whole = ses.opcode != UET_MSG_ERROR and message.bytes() >= ses.length
        done = code != OK or whole
        if whole:
            # Its id may name another message from here on.
            context.messages.pop(ses.message, None)
        if code == OK and ses.dc and ses.eom and not done:
            # All of the message has to be there before its last packet is answered.
            context.waiting[request.psn] = (message, entropy, marked, request, ses)
            return
        if request.retx or request.syn or not (request.ar and "ignores-ar" in self.bugs):
            self.acknowledge(context, entropy, marked, request, ses)
        for psn, (of, *late) in list(context.waiting.items()):
            if of is message and done:
                del context.waiting[psn]
                self.acknowledge(context, *late)

    def opened(self, address, request, refuse):
        """The context that a packet with syn finds, or makes."""
        start = request.psn - request.offset & 0xFFFFFFFF
        key = (address, request.spdcid)
        context = self.by_peer.get(key)
        if context is not None and "second-context" not in self.bugs:
            if context.start == start:
                return context
            return refuse(INVALID_SYN, context)
        before = self.gone.get(key)
        if before is not None and abs(signed(start - before.start, 32)) < 1 << 16:
            return before if request.retx and before.has(request.psn) else self.drop("of a closed context")
        if request.type == ROD_REQ or request.isrod:
            return self.drop("ordered")
        if request.type == CP and request.next not in (NOOP, NEGOTIATION):
            return self.drop("opens nothing")
        if request.offset >= RANGE:
            return refuse(INVALID_SYN)
        if len(self.contexts) >= MOST_CONTEXTS:
            return refuse(NO_PDC_AVAIL)
        # The initiator's own numbers are below these.
        own = int.from_bytes(os.urandom(2), "big") | 0x8000
        while own in self.contexts:
            own = own + 1 | 0x8000
        context = Context(address, request.spdcid, own, start)
        self.contexts[own] = self.by_peer[key] = context
        return context

    def close(self, context, psn):
        """Clears all responses, and keeps what is needed to answer a CLOSE_COMMAND that comes again."""
        context.closed, context.asks = psn, False
        context.kept.clear()
        context.move()
        key = (context.address, context.peer)
        self.by_peer.pop(key, None)
        self.gone[key] = context

    def ask_to_close(self, context):
        """Sends the last ACK again, which asks for the close. So does each later one."""
        context.asks = True
        if context.latest is not None:
            self.acknowledge(context, *context.latest)

    def acknowledge(self, context, entropy, marked, request, ses=None, control=False):
        context.latest = (entropy, marked, request, ses, control)
        kept = context.kept.get(request.psn)
        if control:
            answer = b""
        elif kept is not None:
            answer = kept
        else:
            answer = response(OK, ses.message if ses else 0, ses.job if ses else 0)
        retx = request.retx and "forgets-retx" not in self.bugs
        packet = ack(context, request.psn, marked, retx, answer, clear=kept is not None)
        self.answer(context.address, entropy, packet)

    def control(self, context, entropy, marked, request, refuse):
        if request.next == CLEAR_COMMAND:
            if context.distance(request.low) <= RANGE:
                context.cleared(request.low)
        elif request.next == PROBE:
            self.answer(context.address, entropy, ack(context, request.low, marked, request.retx, probe=request.clear))
        elif request.next == ACK_REQUEST:
            if not context.has(request.psn):
                refuse(PKT_NOT_RCVD, context)
            elif request.psn in context.waiting:
                refuse(RCVD_SES_PROCG, context)
            else:
                self.acknowledge(context, entropy, marked, request)

    # Semantics.

    def write(self, message, ses):
        """Puts what came into memory; a return code. A message that has failed stays failed until all of it came."""
        message.places[ses.at] = len(ses.payload)
        if message.error is None:
            region, code = self.region(ses)
            if code == OK and (len(ses.payload) > ses.length - ses.at or ses.at > ses.length):
                code = AT_OUT_OF_RANGE
            if code == OK and ses.offset + ses.length > len(region["memory"]):
                code = AT_OUT_OF_RANGE
            if code != OK:
                message.error = code
        if message.error is not None:
            return message.error
        at = ses.offset + (0 if "wrong-place" in self.bugs else ses.at)
        if "places-nothing" not in self.bugs:
            region["memory"][at:at + len(ses.payload)] = ses.payload
        return OK

    def region(self, ses):
        if ses.ie:
            return None, INITIATOR_ERR
        if ses.opcode != UET_WRITE:
            return None, UNSUPPORTED_OP
        found = self.regions
        for what, code in (
            (lambda r: (r["job"] == ses.job) if ses.rel else r["job"] is None, BAD_JOB_ID if ses.rel else BAD_PID),
            (lambda r: r["process"] == ses.process, BAD_PID),
            (lambda r: r["index"] == ses.index or ses.key is None, BAD_INDEX),
            # A small request has no key: its index names the region.
            (lambda r: names(ses.key) == names(r["key"]) if ses.key is not None else r["key"] & 0xFFF == ses.index, BAD_MKEY),
        ):
            found = [region for region in found if what(region)]
            if not found:
                return None, code
        region = found[-1]
        return (region, OK) if "write" in region["permissions"] else (region, PERM_VIOLATION)
