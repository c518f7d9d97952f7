"""A peer of a NIC at the other end of a cable. Tells the NIC to write to it, counts what arrives, and prints it as JSON.

Arguments: interface, own IPv4 address, `answer` to answer ARP or `silent`, HOST:PORT of the NIC's control channel."""
import json
import socket
import sys
import time

interface, own, manner, control = sys.argv[1:]
own = socket.inet_aton(own)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((interface, 0))
link.setblocking(False)
mac = link.getsockname()[4]

host, port = control.rsplit(":", 1)
channel = socket.create_connection((host, int(port))).makefile("rw")


def call(number, op, **more):
    channel.write(json.dumps({"id": number, "op": op, **more}) + "\n")
    channel.flush()
    while (answer := json.loads(channel.readline())).get("id") != number:
        pass
    assert answer.get("ok"), answer
    return answer


call(1, "hello", protocol=1)
peer = call(2, "add_peer", address=socket.inet_ntoa(own), job=101, process=2)["peer"]
call(3, "post", kind="write", peer=peer, length=64, remote={"key": "0xacce5"})

seen = {"questions": 0, "broadcast": 0, "unicast": 0}
# A busy machine may take long. Without an answer, no packet has its address.
end = time.monotonic() + (60 if manner == "answer" else 2)
while time.monotonic() < end and seen["unicast"] < 2:
    try:
        frame, place = link.recvfrom(9100)
    except BlockingIOError:
        time.sleep(0.01)
        continue
    if place[2] == socket.PACKET_OUTGOING:
        continue
    kind, body = frame[12:14], frame[14:]
    if kind == b"\x08\x06" and body[6:8] == b"\x00\x01" and body[24:28] == own:
        seen["questions"] += 1
        if manner == "answer":
            link.send(body[8:14] + mac + kind + body[:6] + b"\x00\x02" + mac + own + body[8:18])
    elif kind == b"\x08\x00" and body[16:20] == own:
        seen["unicast" if frame[:6] == mac else "broadcast"] += 1
print(json.dumps({**seen, "mac": mac.hex(":")}))
