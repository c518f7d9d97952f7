"""A device that the conformance suite can test, with Python's standard library alone: what an adapter has to do.

    uet run --dut exec:'python3 crates/uet-control/python/example_device/device.py' --timeout-scale 5

Python is slow, and the machine may be busy: the suite waits five times as long as it would for a NIC.
The control channel is on standard input and output, or with --control HOST:PORT on TCP. Without a connection there, the
device takes no packets. It takes writes by RUD and writes itself. The suite plays the rules that need no more.
--bug NAME makes it wrong, to see the suite notice.
docs/adapter.md explains it.
"""

import argparse
import json
import os
import select
import socket
import sys
import time

from initiator import Initiator, bodies, completion
from packets import Malformed
from target import Target

BUGS = {
    "delivers-twice": "delivers a duplicate again (PDS-DUP-001)",
    "forgets-retx": "an ACK of a retransmission does not say so (PDS-ACK-002)",
    "ignores-ar": "does not acknowledge what asks for an ACK (PDS-ACK-004)",
    "places-nothing": "acknowledges a write and leaves the memory as it was (SES-PLACE-001)",
    "second-context": "makes another context of each packet with syn (PDS-SYN-005)",
    "stays-open": "acknowledges CLOSE_COMMAND and takes more (PDS-CLOSE-009)",
    "wrong-place": "writes all packets of a message to its beginning (SES-PLACE-001)",
}
IP_RECVTOS, ECN_CE = 13, 3
LATER = object()


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Device:
    def __init__(self, address, port, bugs):
        self.socket = bound(address, port)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.address, self.port = self.socket.getsockname()
        self.target = Target(self.answer, bugs)
        send = lambda address, packet: self.answer(address, self.port, packet)
        self.initiator = Initiator(send, time.monotonic, self.target)
        self.ways, self.ports, self.peers, self.waits = {}, {}, [], []
        self.received = self.sent = 0

    # The link.

    def answer(self, address, entropy, packet):
        """Answers go to a peer's own port, never to the source port of what they answer: that one is the entropy value,
        which the answer takes over."""
        if entropy not in self.ways:
            try:
                self.ways[entropy] = bound(self.address, entropy)
            except OSError:
                self.ways[entropy] = self.socket
        self.ways[entropy].sendto(packet, (address, self.ports.get(address, self.port)))
        self.sent += 1

    def packet(self):
        data, ancillary, _, (address, entropy) = self.socket.recvmsg(65536, 64)
        tos = next((value[0] for level, kind, value in ancillary if level == socket.IPPROTO_IP and value), 0)
        self.received += 1
        try:
            if self.initiator.take(address, data):
                return
        except Malformed:
            return self.target.drop("malformed")
        self.target.take(address, entropy, tos & 3 == ECN_CE, data)

    # The control channel: an operation is a method of its name.

    def line(self, line):
        message = {}
        try:
            message = json.loads(line)
            method = getattr(self, "op_" + message["op"], None)
            if method is None:
                raise Refused("unsupported", f"there is no operation '{message['op']}'")
            arguments = {key: value for key, value in message.items() if key not in ("id", "op")}
            result = method(**arguments) or {}
            if result is LATER:
                self.waits[-1]["id"] = message["id"]
                return None
            result = {"ok": True, **result}
        except Refused as refused:
            result = {"error": {"code": refused.code, "message": str(refused)}}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            result = {"error": {"code": "bad_request", "message": repr(error)}}
        return {"id": message.get("id", 0) if isinstance(message, dict) else 0, **result}

    def op_hello(self, protocol):
        return {
            "protocol": 1, "name": "example-device", "version": "1", "specification": "1.0.3",
            "capabilities": ["rud", "write", "ecn", "entropy", "request_close"],
            "parameters": {
                "payload_mtu": 4096, "default_mpr": 8, "enb_ack_per_pkt": True,
                "rto_init_time": 50_000_000, "max_rto_retx_cnt": 5, "nack_retx_time": 10_000_000, "max_nack_retx_cnt": 5,
            },
            "link": {"kind": "udp", "addr": self.address, "port": self.port},
        }

    def op_reset(self):
        self.target.reset()
        self.initiator.reset()
        self.ports, self.peers, self.waits, self.received, self.sent = {}, [], [], 0, 0

    def op_add_peer(self, address, job, port=None, process=0, initiator=0):
        if port is not None:
            self.ports[address] = port
        self.peers.append((address, job, process, initiator))
        return {"peer": len(self.peers)}

    def op_post(self, kind, peer, length, remote=None, mode="rud", fill=None, form="std", **more):
        if kind != "write" or mode != "rud" or form != "std" or more.get("header_data") or more.get("delivery_complete"):
            raise Refused("unsupported", "plain writes by RUD only")
        if not 1 <= peer <= len(self.peers):
            raise Refused("not_found", f"there is no peer {peer}")
        address, job, process, initiator = self.peers[peer - 1]
        operation = len(self.initiator.messages) + 1
        place = {key: number((remote or {}).get(key, process if key == "process" else 0)) for key in ("key", "offset", "process", "index", "generation", "absolute")}
        packets = list(bodies(bytes(filled(fill, length)), job, place, operation & 0xFFFF, initiator))
        self.initiator.write(operation, (address, job, more.get("class", 0)), packets, length)
        return {"operation": operation}

    def op_request_close(self, peer, mode="rud", **_class):
        if not 1 <= peer <= len(self.peers):
            raise Refused("not_found", f"there is no peer {peer}")
        address, contexts = self.peers[peer - 1][0], self.target.contexts.values()
        contexts = [one for one in contexts if one.address == address and one.closed is None and not one.returns]
        if mode != "rud" or not contexts:
            raise Refused("not_found", "there is no such context")
        for context in contexts:
            self.target.ask_to_close(context)

    def op_wait_completion(self, operation, timeout_ns):
        if operation not in self.initiator.messages:
            raise Refused("not_found", f"there is no operation {operation}")
        self.waits.append({"operation": operation, "until": time.monotonic() + timeout_ns / 1e9})
        return LATER

    def ended(self):
        """The answers to waits that are over."""
        for wait in list(self.waits):
            message = self.initiator.messages[wait["operation"]]
            if message.status is None and time.monotonic() < wait["until"]:
                continue
            self.waits.remove(wait)
            if message.status is None:
                yield {"id": wait["id"], "error": {"code": "timeout", "message": "still under way"}}
                continue
            yield {"id": wait["id"], "ok": True, **completion(wait["operation"], message)}

    def patience(self):
        """How long nothing is due."""
        due = [wait["until"] for wait in self.waits]
        due += [at for at in [self.initiator.timeout()] if at is not None]
        return max(0, min(due) - time.monotonic()) if due else None

    def op_expose_region(self, length, key, job=None, process=0, index=0, generation=0, permissions=None, fill=None):
        if length > 1 << 25:
            raise Refused("exhausted", "a region has up to 32 MiB")
        permissions = ["read", "write", "atomic"] if permissions is None else permissions
        region = dict(memory=filled(fill, length), key=number(key), job=job, process=process, index=index, permissions=permissions)
        self.target.regions.append(region)
        return {"region": len(self.target.regions)}

    def op_read_memory(self, region, offset, length):
        if not 1 <= region <= len(self.target.regions):
            raise Refused("not_found", f"there is no region {region}")
        memory = self.target.regions[region - 1]["memory"]
        if offset + length > len(memory):
            raise Refused("bad_request", "beyond the region")
        return {"data": memory[offset:offset + length].hex()}

    def op_counters(self):
        open_now = len([context for context in self.target.contexts.values() if context.closed is None and not context.returns])
        return {"received": self.received, "sent": self.sent, "dropped": self.target.dropped, "pdcs": open_now}

    def op_bye(self):
        return {}


def number(value):
    """Wide numbers are strings."""
    return int(value, 16) if isinstance(value, str) else value


def bound(address, port):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, port))
    return udp


def filled(fill, length):
    """Returns the initial bytes of a region."""
    if not fill:
        return bytearray(length)
    if "hex" in fill:
        return bytearray(bytes.fromhex(fill["hex"])[:length].ljust(length, b"\0"))
    return bytearray((fill["seed"] + i) * 2654435761 >> 24 & 0xFF for i in range(length))


def is_hello(line):
    try:
        return json.loads(line)["op"] == "hello"
    except (KeyError, TypeError, ValueError):
        return False


def serve(device, incoming, outgoing):
    """Takes packets, lets timers run out, and does what the control channel says, until that ends."""
    pending, greeted = b"", False

    def say(answer):
        line = json.dumps(answer).encode() + b"\n"
        while line:
            line = line[os.write(outgoing, line):]

    while True:
        ready, _, _ = select.select([device.socket, incoming], [], [], device.patience())
        # Packets that arrived before a line are handled before it.
        if device.socket in ready:
            device.packet()
        elif incoming in ready:
            piece = os.read(incoming, 65536)
            if not piece:
                return
            *lines, pending = (pending + piece).split(b"\n")
            for line in filter(bytes.strip, lines):
                greeted = greeted or is_hello(line)
                if not greeted:
                    # Perhaps a web page: what follows may be its own requests.
                    return say({"id": 0, "error": {"code": "bad_request", "message": "the first request must be hello"}})
                answer = device.line(line)
                if answer is not None:
                    say(answer)
        device.initiator.expire()
        for answer in device.ended():
            say(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", default="127.0.0.1:0", help="address and port of UET")
    parser.add_argument("--control", help="address and port of the control channel; else standard input and output")
    parser.add_argument("--bug", action="append", default=[], choices=BUGS, help="be wrong in this way")
    parser.add_argument("--list-bugs", action="store_true")
    arguments = parser.parse_args()
    if arguments.list_bugs:
        print("\n".join(f"{name}\t{what}" for name, what in BUGS.items()))
        return
    address, _, port = arguments.listen.rpartition(":")
    device = Device(address, int(port), arguments.bug)
    if not arguments.control:
        serve(device, sys.stdin.fileno(), sys.stdout.fileno())
        return
    host, _, port = arguments.control.rpartition(":")
    listener = socket.create_server((host, int(port)))
    place = dict(zip(("addr", "port"), listener.getsockname()))
    link = {"kind": "udp", "addr": device.address, "port": device.port}
    print(json.dumps({"link": link, "control": {"kind": "tcp", **place}}), flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            serve(device, connection.fileno(), connection.fileno())


if __name__ == "__main__":
    main()
