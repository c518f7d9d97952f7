"""The bench with a NIC in Python instead of RTL, to try it without a simulator:

    uet run --dut 'exec:python3 crates/uet-control/python/rtl_bench/python_nic.py'

The NIC is that of `example_device`, in virtual time: each packet takes one microsecond on the link. A simulated
second costs only the work that happens in it.
"""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "example_device"))

from bench import Bench, Packet  # noqa: E402
from device import Device, Refused  # noqa: E402
from initiator import completion  # noqa: E402
from packets import Malformed  # noqa: E402

ECN_CE = 3
FLIGHT_NS = 1_000


class PythonNic(Device):
    """The example device, with a clock that only `run` moves."""

    capabilities = ["rud", "write", "ecn"]

    def __init__(self):
        super().__init__("127.0.0.1", 0, [])
        self.parameters = self.op_hello(1)["parameters"]
        self.time, self.coming, self.going, self.told = 0, [], [], set()
        self.initiator.now = lambda: self.time / 1e9

    def now_ns(self):
        return self.time

    def put(self, packet):
        self.coming.append((self.time + FLIGHT_NS, packet))

    def take(self):
        arrived = [packet for at, packet in self.going if at <= self.time]
        self.going = [entry for entry in self.going if entry[0] > self.time]
        return arrived

    def answer(self, address, entropy, packet):
        self.going.append((self.time + FLIGHT_NS, Packet(address, entropy, 0, packet)))
        self.sent += 1

    async def run(self, by_ns):
        until = self.time + by_ns
        while not self.news():
            timeout = self.initiator.timeout()
            due = [at for at, _ in self.coming + self.going]
            due += [round(timeout * 1e9) + 1] if timeout is not None else []
            self.time = max(self.time, min([until, *due]))
            arrived = [packet for at, packet in self.coming if at <= self.time]
            self.coming = [entry for entry in self.coming if entry[0] > self.time]
            for packet in arrived:
                self.arrive(packet)
            self.initiator.expire()
            if self.time >= until or any(at <= self.time for at, _ in self.going):
                return

    def arrive(self, packet):
        self.received += 1
        try:
            if not self.initiator.take(packet.address, packet.data):
                self.target.take(packet.address, packet.entropy, packet.tos & 3 == ECN_CE, packet.data)
        except Malformed:
            self.target.drop("malformed")

    def news(self):
        """Returns whether an operation has ended since the last call."""
        ended = {number for number, message in self.initiator.messages.items() if message.status is not None}
        news, self.told = ended - self.told, ended
        return bool(news)

    def op_reset(self):
        super().op_reset()
        self.coming, self.going, self.told = [], [], set()

    def op_wait_completion(self, operation, timeout_ns):
        """Time stands still, so the operation has ended or has not."""
        message = self.initiator.messages.get(operation)
        if message is None:
            raise Refused("not_found", f"there is no operation {operation}")
        if message.status is None:
            raise Refused("timeout", "still under way")
        return completion(operation, message)


if __name__ == "__main__":
    asyncio.run(Bench(PythonNic()).serve(sys.stdin, sys.stdout))
