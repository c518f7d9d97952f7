"""The host of `stream_parser.sv`: it reads descriptors, and no headers of requests.

    python3 run_cocotb_nic.py --parser
    uet run --control 127.0.0.1:9000 --group ack
"""

import struct

import cocotb

from cocotb_bench import serve, unframed
from cocotb_nic import CocotbNic
from python_nic import ECN_CE
from packets import CLEAR_REQUEST, CP, RUD_CC_REQ, RUD_REQ, Malformed, Request, signed

# `descriptor_t` of stream_parser.sv.
DESCRIPTOR = struct.Struct(">BBBHIHHHI")
FRAME = 8


class ParserNic(CocotbNic):
    def arrives(self, frame):
        kind, following, flags, clear, psn, spdcid, dpdcid, offset, low = DESCRIPTOR.unpack_from(frame, FRAME)
        packet = unframed(frame[:FRAME] + frame[FRAME + DESCRIPTOR.size:])
        if kind:
            retx, ar, syn, isrod = (bool(flags & bit) for bit in (128, 64, 32, 16))
            clear = clear if kind == CP else psn + signed(clear, 16) & 0xFFFFFFFF
            kind = RUD_REQ if kind == RUD_CC_REQ else kind
            self.request(packet, Request(
                kind, following, retx, ar, syn, isrod, clear, psn, spdcid, dpdcid, offset, low, packet.data))
        else:
            self.host.arrive(packet)
        self.expire()

    def request(self, packet, request):
        initiator, target = self.host.initiator, self.host.target
        self.host.received += 1
        context = initiator.by_own.get(request.dpdcid)
        if request.type == CP and request.next == CLEAR_REQUEST and context:
            if (context.key[0], context.remote) == (packet.address, request.spdcid):
                initiator.tell_clear(context)
            return
        try:
            target.request(packet.address, packet.entropy, packet.tos & 3 == ECN_CE, request)
        except Malformed:
            target.drop("malformed")


@cocotb.test()
async def conformance(dut):
    await serve(ParserNic(dut))
