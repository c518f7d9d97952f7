"""A test bench for a simulated NIC: it connects the simulation to the control channel and to a UDP socket.

The suite sends packets to the socket, and then says `advance`. The bench gives the packets to the simulation and lets it
run until it sends a packet or the span is over. Time stands still while the bench waits for the next line.

A simulation has these functions:

    now_ns()           returns the time of the simulator
    put(packet)        hands it a packet from the suite
    async run(by_ns)   runs it for this span; ends early at the first packet to the suite, or when an operation ends
    take()             returns the packets that it has sent since the last call
    capabilities       names of capabilities for `hello`
    parameters         values of parameters for `hello`
    op_NAME(**keys)    other operations of the control channel, as far as it has them

Everything here runs without a simulator. `python_nic.py` shows a simulation in Python, and `cocotb_bench.py` one in cocotb.
docs/rtl.md explains the parts.
"""

import json
import socket
from dataclasses import dataclass

IP_RECVTOS = 13


@dataclass
class Packet:
    """UET without the headers of IP and UDP. `address` is the suite's, `entropy` the UDP source port."""

    address: str
    entropy: int
    tos: int
    data: bytes


class Refused(Exception):
    """An operation that the bench does not carry out; `code` is one of docs/control-channel.md."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


REFUSAL = '{"id": 0, "error": {"code": "bad_request", "message": "the first request must be hello"}}'


def is_hello(line):
    try:
        return json.loads(line)["op"] == "hello"
    except (KeyError, TypeError, ValueError):
        return False


class Bench:
    def __init__(self, simulation, address="127.0.0.1"):
        self.simulation = simulation
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 0))
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.address, self.port = self.socket.getsockname()
        self.ports = {}

    # The link.

    def arrived(self):
        """Yields the packets that wait in the socket."""
        while True:
            try:
                data, ancillary, _, (address, entropy) = self.socket.recvmsg(65536, 64)
            except BlockingIOError:
                return
            tos = next((value[0] for level, _, value in ancillary if level == socket.IPPROTO_IP and value), 0)
            yield Packet(address, entropy, tos, data)

    def send(self, packet):
        """A packet goes to the port that `add_peer` names, or else to the port of the device itself."""
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, packet.tos)
        self.socket.sendto(packet.data, (packet.address, self.ports.get(packet.address, self.port)))

    # The control channel.

    async def answer(self, line):
        """Carries out one line and returns the answer."""
        message = {}
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                message = {}
                raise ValueError("a request is a JSON object")
            keys = {key: value for key, value in message.items() if key not in ("id", "op")}
            result = {"ok": True, **(await self.operation(message["op"], keys) or {})}
        except (KeyError, TypeError, ValueError) as error:
            result = {"error": {"code": "bad_request", "message": repr(error)}}
        except Exception as error:  # the simulation has its own class of refusals
            code = getattr(error, "code", "internal")
            result = {"error": {"code": code, "message": str(error)}}
        return json.dumps({"id": message.get("id", 0), **result})

    async def operation(self, op, keys):
        if op == "advance":
            return await self.advance(**keys)
        if op == "now":
            return {"now_ns": self.simulation.now_ns()}
        if op == "hello":
            return self.hello()
        if op == "bye":
            return {}
        if op == "reset":
            # Packets in the socket belong to contexts that the device forgets.
            list(self.arrived())
            self.ports.clear()
        if op == "add_peer" and keys.get("port") is not None:
            self.ports[keys["address"]] = keys["port"]
        function = getattr(self.simulation, f"op_{op}", None)
        if function is None:
            raise Refused("unsupported", f"there is no operation '{op}'")
        return function(**keys)

    def hello(self):
        return {
            "protocol": 1, "name": "simulated-nic", "version": "1", "specification": "1.0.3",
            "capabilities": ["time", *self.simulation.capabilities],
            "parameters": self.simulation.parameters,
            "link": {"kind": "udp", "addr": self.address, "port": self.port},
        }

    async def advance(self, by_ns):
        for packet in self.arrived():
            self.simulation.put(packet)
        await self.simulation.run(by_ns)
        for packet in self.simulation.take():
            self.send(packet)
        return {"now_ns": self.simulation.now_ns()}

    async def serve(self, reader, writer):
        """Answers line by line until the suite ends the channel. Reading blocks, and the simulator with it. A connection
        that does not begin with `hello` ends at once: it may be from a web page."""
        greeted = False
        while line := reader.readline():
            if not line.strip():
                continue
            greeted = greeted or is_hello(line)
            answer = await self.answer(line) if greeted else REFUSAL
            writer.write(answer + "\n")
            writer.flush()
            if not greeted:
                return


async def listen(bench, port):
    """Serves one suite after the other on TCP: `uet run --control 127.0.0.1:PORT`."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await bench.serve(connection.makefile("r", errors="replace"), connection.makefile("w"))
