"""The suite's side of the control channel (docs/control-channel.md), with the standard library alone.

    with connect("127.0.0.1", 4794) as device:
        print(device.hello()["name"])
        peer = device.add_peer(address="127.0.0.2", job=101)["peer"]
        operation = device.post(kind="write", peer=peer, length=16384, fill={"seed": 3},
                                remote={"key": "0xacce5"})["operation"]
        print(device.wait_completion(operation=operation, timeout_ns=10**9))

Every operation is a method: its keyword arguments are the keys of the request, its result the answer as a dict.
"""

import json
import socket
import subprocess

PROTOCOL = 1
MAX_LINE = 32 << 20


class Refused(Exception):
    """The device does not do it; `code` is one of those in the documentation."""

    def __init__(self, op, error):
        super().__init__(f"{op}: {error.get('code', 'error')}: {error.get('message', '')}")
        self.code = error.get("code", "error")


def pattern(seed, length):
    """The bytes of a seed."""
    return bytes((((seed + i) * 2654435761) & 0xFFFFFFFF) >> 24 for i in range(length))


class Client:
    def __init__(self, reader, writer, close=lambda: None):
        self.reader, self.writer, self._close = reader, writer, close
        self.last_id = 0
        self.events = []

    def call(self, op, **arguments):
        self.last_id += 1
        self.writer.write(json.dumps({"id": self.last_id, "op": op, **arguments}).encode() + b"\n")
        self.writer.flush()
        while True:
            line = self.reader.readline(MAX_LINE)
            if not line:
                raise ConnectionError(f"{op}: the device has closed the control channel")
            message = json.loads(line) if line.strip() else {}
            if "event" in message:
                self.events.append(message)
            elif message.get("id") == self.last_id:
                if "error" in message:
                    raise Refused(op, message["error"])
                return message

    def hello(self):
        return self.call("hello", protocol=PROTOCOL)

    def __getattr__(self, op):
        return lambda **arguments: self.call(op, **arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("bye")
        except (OSError, Refused):
            pass
        self._close()


def connect(host, port, timeout=10.0):
    """A device that listens on TCP."""
    connection = socket.create_connection((host, port), timeout)
    reader, writer = connection.makefile("rb"), connection.makefile("wb")

    def close():
        # The connection stays open as long as one of its files does.
        for part in (reader, connection, writer):
            try:
                part.close()
            except OSError:
                pass

    return Client(reader, writer, close)


def execute(command):
    """A device that is started here and speaks on its standard input and output."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close():
        process.stdin.close()
        process.wait(10)

    return Client(process.stdout, process.stdin, close)
