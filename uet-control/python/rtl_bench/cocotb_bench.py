"""The bench with RTL in a simulator, for cocotb 2 with Verilator or another simulator. Adapt the names of your signals.

    UET_CONTROL_PORT=9000 make SIM=verilator COCOTB_TEST_MODULES=cocotb_bench
    uet run --control 127.0.0.1:9000

The RTL in this sketch has a clock `clk`, a reset `rst`, and two byte-wide AXI streams: `rx_*` takes packets from the
network and `tx_*` sends them. A frame is a header of 8 bytes and UET: IPv4 address of the suite, UDP source port (the
entropy value), TOS byte, and a byte of 0.
"""

import ipaddress
import os
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Event, First, RisingEdge, Timer
from cocotb.utils import get_sim_time

from bench import Bench, Packet, Refused, listen

CLOCK_NS = 4


class Rtl:
    """A simulation as `bench.py` describes it."""

    capabilities = ["rud", "write"]
    parameters = {"payload_mtu": 4096, "rto_init_time": 50_000}

    def __init__(self, dut):
        self.dut, self.incoming, self.sent, self.has_sent = dut, deque(), [], Event()
        dut.rx_tvalid.value = 0
        dut.tx_tready.value = 1
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        cocotb.start_soon(self.drive())
        cocotb.start_soon(self.monitor())

    # Time.

    def now_ns(self):
        return int(get_sim_time("ns"))

    async def run(self, by_ns):
        """All coroutines stand still outside of this function, because the bench blocks the simulator."""
        if by_ns and not self.sent:
            self.has_sent.clear()
            await First(Timer(by_ns, "ns"), self.has_sent.wait())

    # Packets.

    def put(self, packet):
        head = ipaddress.IPv4Address(packet.address).packed + packet.entropy.to_bytes(2, "big")
        self.incoming.append(head + bytes([packet.tos, 0]) + packet.data)

    def take(self):
        sent, self.sent = self.sent, []
        return sent

    async def drive(self):
        """Shifts waiting packets into the RTL, one byte per clock."""
        while True:
            await RisingEdge(self.dut.clk)
            if not self.incoming:
                continue
            frame = self.incoming.popleft()
            for place, byte in enumerate(frame):
                self.dut.rx_tdata.value = byte
                self.dut.rx_tlast.value = int(place + 1 == len(frame))
                self.dut.rx_tvalid.value = 1
                await RisingEdge(self.dut.clk)
                while not self.dut.rx_tready.value:
                    await RisingEdge(self.dut.clk)
            self.dut.rx_tvalid.value = 0

    async def monitor(self):
        """Collects the packets that the RTL sends, and ends `run` after each."""
        frame = bytearray()
        while True:
            await RisingEdge(self.dut.clk)
            if not self.dut.tx_tvalid.value:
                continue
            frame.append(int(self.dut.tx_tdata.value))
            if self.dut.tx_tlast.value:
                address = str(ipaddress.IPv4Address(bytes(frame[:4])))
                entropy = int.from_bytes(frame[4:6], "big")
                self.sent.append(Packet(address, entropy, frame[6], bytes(frame[8:])))
                self.has_sent.set()
                frame.clear()

    # Operations: registers and memory of the RTL.

    def op_reset(self):
        """Restarts the RTL. Real benches toggle `rst` for some clocks at the start of the next `run`."""
        self.incoming.clear()
        self.sent.clear()
        raise Refused("unsupported", "toggle your reset here, and clear your memory model")

    def op_expose_region(self, length, key, **more):
        raise Refused("unsupported", "write the entry of a region into your table of memory keys")

    def op_read_memory(self, region, offset, length):
        raise Refused("unsupported", "return {'data': ...} from your memory model")


@cocotb.test()
async def conformance(dut):
    """Runs until the suite ends the control channel."""
    await listen(Bench(Rtl(dut)), int(os.environ.get("UET_CONTROL_PORT", "9000")))
