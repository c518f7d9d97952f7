"""The bench with RTL in a simulator, for cocotb 2. `cocotb_nic.py` is a complete example with it.

The RTL has a clock `clk`, a reset `rst`, and two byte-wide AXI streams: `rx_*` takes packets from the network and `tx_*`
sends them. A frame is a header of 8 bytes and UET: IPv4 address of the suite, UDP source port (the entropy value), TOS
byte, and a byte of 0. Inherit from `Rtl`, and adapt the names of your signals.
"""

import ipaddress
import os
from collections import deque

import cocotb
from cocotb.triggers import Event, First, RisingEdge, Timer
from cocotb.utils import get_sim_time

from bench import Bench, Packet, Refused, listen

RESET_NS = 40


class Stream:
    """The signals of an AXI stream: `rx` stands for rx_tdata, rx_tvalid, rx_tready and rx_tlast."""

    def __init__(self, dut, prefix):
        names = ("tdata", "tvalid", "tready", "tlast")
        self.data, self.valid, self.ready, self.last = (getattr(dut, f"{prefix}_{name}") for name in names)


class Driver:
    """Shifts frames into a stream, one byte per clock."""

    def __init__(self, clk, stream):
        self.clk, self.stream, self.frames, self.woken = clk, stream, deque(), Event()
        stream.valid.value = 0
        cocotb.start_soon(self.drive())

    def put(self, frame):
        self.frames.append(frame)
        self.woken.set()

    async def drive(self):
        stream, edge = self.stream, RisingEdge(self.clk)
        while True:
            if not self.frames:
                self.woken.clear()
                await self.woken.wait()
                await edge
                continue
            frame = self.frames.popleft()
            for place, byte in enumerate(frame):
                stream.data.value = byte
                stream.last.value = int(place + 1 == len(frame))
                stream.valid.value = 1
                await edge
                while stream.ready.value != 1:
                    await edge
            stream.valid.value = 0


class Monitor:
    """Collects the frames of a stream, and hands each one to `take`. It sleeps until the stream becomes valid, so an idle
    stream costs no time."""

    def __init__(self, clk, stream, take):
        self.clk, self.stream, self.take, self.frame = clk, stream, take, bytearray()
        stream.ready.value = 1
        cocotb.start_soon(self.collect())

    async def collect(self):
        stream, edge = self.stream, RisingEdge(self.clk)
        while True:
            # Before the reset, the signal has no value.
            if stream.valid.value != 1:
                await RisingEdge(stream.valid)
            await edge
            if stream.valid.value != 1:
                continue
            self.frame.append(int(stream.data.value))
            if stream.last.value == 1:
                frame, self.frame = bytes(self.frame), bytearray()
                self.take(frame)


def framed(packet):
    """Returns the frame of a packet of the suite."""
    address = ipaddress.IPv4Address(packet.address).packed
    return address + packet.entropy.to_bytes(2, "big") + bytes([packet.tos, 0]) + packet.data


def unframed(frame):
    """Returns the packet in a frame."""
    address = str(ipaddress.IPv4Address(frame[:4]))
    return Packet(address, int.from_bytes(frame[4:6], "big"), frame[6], frame[8:])


class Rtl:
    """A simulation as `bench.py` describes it."""

    capabilities = ["rud", "write"]
    parameters = {"payload_mtu": 4096, "rto_init_time": 50_000}

    def __init__(self, dut):
        self.dut, self.sent, self.stop, self.resetting = dut, [], Event(), True
        self.rx = Driver(dut.clk, Stream(dut, "rx"))
        self.tx = Monitor(dut.clk, Stream(dut, "tx"), self.leaves)

    # Time. All coroutines stand still outside of `run`, because the bench blocks the simulator.

    def now_ns(self):
        return int(get_sim_time("ns"))

    async def run(self, by_ns):
        if self.resetting:
            await self.reset()
        if by_ns and not self.sent:
            self.stop.clear()
            await First(Timer(by_ns, "ns"), self.stop.wait())

    async def reset(self):
        """Toggles the reset, and forgets what is in flight."""
        self.dut.rst.value = 1
        await Timer(RESET_NS, "ns")
        self.dut.rst.value = 0
        self.sent.clear()
        self.resetting = False

    # Packets.

    def put(self, packet):
        self.rx.put(framed(packet))

    def take(self):
        sent, self.sent = self.sent, []
        return sent

    def leaves(self, frame):
        """Keeps a packet for the suite, and ends `run`."""
        self.sent.append(unframed(frame))
        self.stop.set()

    # Operations: registers and memory of the RTL.

    def op_reset(self):
        """Restarts the RTL in the next `run`: outside of it, no time passes."""
        self.resetting = True

    def op_expose_region(self, length, key, **more):
        raise Refused("unsupported", "write the entry of a region into your table of memory keys")

    def op_read_memory(self, region, offset, length):
        raise Refused("unsupported", "return {'data': ...} from your memory model")


async def serve(simulation):
    """Runs until the simulator is killed, one suite after the other."""
    await listen(Bench(simulation), int(os.environ.get("UET_CONTROL_PORT", "9000")))
