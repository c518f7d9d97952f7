"""The bench with RTL, complete: `stream_pipe.v` carries the packets, and the example device in Python answers them.

    python3 run_cocotb_nic.py
    uet run --control 127.0.0.1:9000 --group ack

Replace the streams `up` and `down`, and the Python behind them, by your RTL.
"""

import cocotb
from cocotb.triggers import First, Timer

from bench import Refused
from cocotb_bench import Driver, Monitor, Rtl, Stream, framed, serve, unframed
from python_nic import Packet, PythonNic


class CocotbNic(Rtl):
    """RTL for the packets; memory, contexts and timers are those of the example device."""

    def __init__(self, dut):
        super().__init__(dut)
        self.down = Driver(dut.clk, Stream(dut, "down"))
        self.up = Monitor(dut.clk, Stream(dut, "up"), self.arrives)
        self.host = Host(self)
        self.capabilities, self.parameters = self.host.capabilities, self.host.parameters

    def __getattr__(self, name):
        """The operations of the host."""
        if name.startswith("op_"):
            return getattr(self.host, name)
        raise AttributeError(name)

    def arrives(self, frame):
        self.host.arrive(unframed(frame))
        self.expire()

    def expire(self):
        self.host.initiator.expire()
        if self.host.news():
            self.stop.set()

    async def run(self, by_ns):
        """Runs the RTL, and the timers of the host at their times."""
        until = self.now_ns() + by_ns
        await super().run(0)
        while not self.sent and not self.host.news() and (left := until - self.now_ns()) > 0:
            timeout = self.host.initiator.timeout()
            due = left if timeout is None else round(timeout * 1e9) + 1 - self.now_ns()
            self.stop.clear()
            await First(Timer(max(1, min(left, due)), "ns"), self.stop.wait())
            self.expire()

    def op_reset(self):
        super().op_reset()
        self.host.op_reset()

    def op_expose_region(self, **keys):
        return self.host.op_expose_region(**keys)

    def op_read_memory(self, **keys):
        return self.host.op_read_memory(**keys)


class Host(PythonNic):
    """The example device, with the clock of the simulator."""

    def __init__(self, rtl):
        super().__init__()
        self.rtl = rtl
        self.initiator.now = lambda: rtl.now_ns() / 1e9

    def answer(self, address, entropy, packet):
        self.rtl.down.put(framed(Packet(address, entropy, 0, packet)))
        self.sent += 1


@cocotb.test()
async def conformance(dut):
    await serve(CocotbNic(dut))
