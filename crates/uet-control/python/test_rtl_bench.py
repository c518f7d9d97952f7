"""The parts of the test bench that need no simulator: python3 -m unittest discover -s crates/uet-control/python"""

import asyncio
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from importlib.util import find_spec

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "rtl_bench"))

from bench import Bench, Packet  # noqa: E402
from python_nic import PythonNic  # noqa: E402

# Ends a test that hangs. No machine is so busy that this ends another.
ENDLESS = 60


class Echo:
    """Sends each packet back 5 microseconds after the suite has sent it."""

    capabilities, parameters = ["rud"], {"payload_mtu": 4096}

    def __init__(self):
        self.time, self.due, self.sent = 0, [], []

    def now_ns(self):
        return self.time

    def put(self, packet):
        self.due.append((self.time + 5_000, packet))

    async def run(self, by_ns):
        until = self.time + by_ns
        self.time = min([until] + [at for at, _ in self.due])
        self.sent = [packet for at, packet in self.due if at <= self.time]
        self.due = [entry for entry in self.due if entry[0] > self.time]

    def take(self):
        return self.sent

    def op_reset(self):
        self.due = []


class TestBench(unittest.TestCase):
    def setUp(self):
        self.bench = Bench(Echo())
        self.suite = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.suite.bind(("127.0.0.2", 0))
        self.suite.settimeout(ENDLESS)
        self.addCleanup(self.suite.close)
        self.addCleanup(self.bench.socket.close)

    def ask(self, op, bench=None, **keys):
        line = json.dumps({"id": 7, "op": op, **keys})
        answer = json.loads(asyncio.run((bench or self.bench).answer(line)))
        self.assertEqual(answer.pop("id"), 7)
        return answer

    def packet(self, data=b"request"):
        self.suite.sendto(data, (self.bench.address, self.bench.port))

    def test_time_passes_only_by_advance_and_stops_at_a_packet(self):
        self.ask("add_peer", address="127.0.0.2", port=self.suite.getsockname()[1], job=101)
        self.assertEqual(self.ask("now"), {"ok": True, "now_ns": 0})
        self.packet()
        self.assertEqual(self.ask("now")["now_ns"], 0)
        self.assertEqual(self.ask("advance", by_ns=1_000_000), {"ok": True, "now_ns": 5_000})
        self.assertEqual(self.suite.recv(100), b"request")
        self.assertEqual(self.ask("advance", by_ns=1_000), {"ok": True, "now_ns": 6_000})

    def test_reset_discards_packets_on_the_link(self):
        self.packet()
        self.assertEqual(self.ask("reset"), {"ok": True})
        self.assertEqual(self.ask("advance", by_ns=100_000)["now_ns"], 100_000)

    def test_missing_operations_are_unsupported(self):
        self.assertEqual(self.ask("post", kind="write")["error"]["code"], "unsupported")
        self.assertEqual(self.ask("advance", by="1 s")["error"]["code"], "bad_request")
        self.assertIn("time", self.ask("hello", protocol=1)["capabilities"])

    def test_connection_begins_with_hello(self):
        hello, now = '{"id": 1, "op": "hello", "protocol": 1}\n', '{"id": 2, "op": "now"}\n'
        for lines, answers in [(hello + now, 2), (now + hello, 1), ("POST / HTTP/1.1\n" + hello, 1)]:
            writer = io.StringIO()
            asyncio.run(self.bench.serve(io.StringIO(lines), writer))
            written = [json.loads(line) for line in writer.getvalue().splitlines()]
            self.assertEqual([len(written), "ok" in written[0]], [answers, answers == 2], lines)

    def test_nic_in_python_repeats_an_unanswered_write_after_its_timeout(self):
        bench = Bench(PythonNic())
        self.addCleanup(bench.socket.close)
        self.addCleanup(bench.simulation.socket.close)
        port = self.suite.getsockname()[1]
        peer = self.ask("add_peer", bench, address="127.0.0.2", port=port, job=101)["peer"]
        operation = self.ask("post", bench, kind="write", peer=peer, length=4)["operation"]
        self.assertEqual(self.ask("advance", bench, by_ns=10**9)["now_ns"], 1_000)
        first = self.suite.recv(100)
        self.assertEqual(self.ask("advance", bench, by_ns=10**9)["now_ns"], 50_001_001)
        self.assertEqual(self.suite.recv(100)[8:], first[8:])
        refused = self.ask("wait_completion", bench, operation=operation, timeout_ns=0)
        self.assertEqual(refused["error"]["code"], "timeout")


@unittest.skipUnless(find_spec("cocotb") and shutil.which("iverilog"), "needs cocotb and Icarus Verilog")
class TestCocotb(unittest.TestCase):
    """The RTL example in its simulator."""

    def setUp(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        settings = {**os.environ, "UET_CONTROL_PORT": str(self.port), "BUILD_DIR": directory.name}
        script = os.path.join(os.path.dirname(__file__), "rtl_bench", "run_cocotb_nic.py")
        simulator = subprocess.Popen(
            [sys.executable, script], env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.addCleanup(simulator.wait)
        self.addCleanup(os.killpg, simulator.pid, signal.SIGKILL)

    def connect(self):
        for _ in range(600):
            try:
                return socket.create_connection(("127.0.0.1", self.port))
            except ConnectionRefusedError:
                time.sleep(0.1)
        self.fail("the simulator does not start")

    def test_packet_passes_through_the_rtl(self):
        suite = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(suite.close)
        suite.bind(("127.0.0.2", 0))
        suite.settimeout(ENDLESS)
        with self.connect() as connection, connection.makefile("rw") as channel:
            def ask(op, **keys):
                channel.write(json.dumps({"id": 7, "op": op, **keys}) + "\n")
                channel.flush()
                return json.loads(channel.readline())

            self.assertIn("time", ask("hello", protocol=1)["capabilities"])
            self.assertTrue(ask("reset")["ok"])
            self.assertEqual(ask("advance", by_ns=1_000)["now_ns"], 1_000)
            peer = ask("add_peer", address="127.0.0.2", port=suite.getsockname()[1], job=101)["peer"]
            ask("post", kind="write", peer=peer, length=4)
            self.assertLess(ask("advance", by_ns=1_000_000)["now_ns"], 3_000, "it stops at the packet")
            # RUD_REQ of 12 bytes, a standard request of 44, and the payload.
            self.assertEqual(len(suite.recv(100)), 60)


if __name__ == "__main__":
    unittest.main()
