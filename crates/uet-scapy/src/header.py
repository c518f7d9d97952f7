"""All headers of Ultra Ethernet Transport (UET).

    from scapy.all import *
    from uet import *                       # this file, in the working directory
    packet = IP()/UDP()/UETRequest(psn=7, syn=1)/UETStd(opcode="UET_WRITE", som=1, eom=1)/b"data"
    packet.show()

UDP port, IP protocol number and trailer are settings: see uet_settings().
"""

from scapy.config import conf
from scapy.fields import BitEnumField, BitField, ConditionalField, XBitField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, Raw, bind_top_down, split_bottom_up

conf.contribs.setdefault("UET", {"trailer": "none"})


class SignedBitField(BitField):
    """A number in two's complement."""

    def getfield(self, pkt, s):
        rest, value = super().getfield(pkt, s)
        return rest, value - (1 << self.size) if value >> (self.size - 1) else value

    def addfield(self, pkt, s, val):
        return super().addfield(pkt, s, (val or 0) & ((1 << self.size) - 1))


class UETHeader(Packet):
    """The common base of all headers of UET."""

    length = 0
    canonical = {}

    def announced(self, payload):
        """Returns the class of the next header, or None."""
        return None

    def guess_payload_class(self, payload):
        following = self.announced(payload)
        # An incomplete header stays raw bytes. Raw has no length.
        return following if following and len(payload) >= getattr(following, "length", 0) else Raw

    def is_first(self):
        """Returns whether a packet's security or delivery header is this one."""
        below = self.underlayer
        return not isinstance(self, UETEntropy) and (isinstance(below, UETEntropy) or not isinstance(below, UETHeader))

    def do_dissect_payload(self, s):
        trailer = _trailer() if self.is_first() else None
        if not trailer or len(s) < trailer.length:
            return super().do_dissect_payload(s)
        end = len(s) - trailer.length
        super().do_dissect_payload(s[:end])
        self.add_payload(trailer(s[end:]))
