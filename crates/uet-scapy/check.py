#!/usr/bin/env python3
"""Check the Scapy layer against the golden vectors, both ways: `check.py UET.PY [VECTORS]`.

Each packet is dissected, its fields are compared with the vector, and it is built again from its fields. Only what
Scapy itself does not support is left out, and counted by its reason. Needs Scapy.

Exit code: 0 all agree, 1 a disagreement, 2 usage, or no vectors.
"""

import collections
import importlib.util
import json
import pathlib
import sys

from scapy.all import IP, UDP, Ether, IPv6, Raw

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = ("pds.", "ses.", "tss.", "crc", "icv")


def load(path):
    spec = importlib.util.spec_from_file_location("uet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(folder):
    for path in sorted(folder.glob("*.jsonl")):
        for vector in map(json.loads, path.open()):
            for index, case in enumerate(vector.get("packets", [vector])):
                options = case.get("options", vector.get("options"))
                yield f"{vector['name']}[{index}]" if "packets" in vector else vector["name"], case, options


# Differences of Scapy in the layers around UET.
OTHERWISE = {
    "outer/eth-three-tags": "a third VLAN tag: Scapy reads any number, the codec two",
    "outer/ipv6-authentication": "an authentication header in IPv6: Scapy opens it with its security association",
}


def left_out(name, case, options):
    """Returns why Scapy cannot agree with a vector, or None."""
    if name in OTHERWISE:
        return OTHERWISE[name]
    if case.get("protection"):
        return "secured: `uet decrypt` opens these packets"
    if case["sliced"]:
        return "cut by the capture: Scapy has no notion of it"
    if case["trimmed"] and options["trailer"] != "none":
        return "trimmed, so it lacks the trailer that Scapy expects"
    if case["fragment"]:
        return "a fragment"
    if case["error"] and not case["error"]["layer"].startswith(("pds", "ses", "tss", "ext", "entropy", "trailer")):
        return "an outer header that contradicts its packet"
    return None


def number(value):
    return int(value, 16) if isinstance(value, str) else int(value)


def check(uet, case, options):
    """Returns what disagrees, or None."""
    data = bytes.fromhex(case["hex"])
    uet.uet_settings(options["udp_port"], options["ip_proto"], options["trailer"])
    first = {"eth": Ether, "udp": UDP, "uet": uet.UET}.get(case["from"])
    packet = (first or (IPv6 if data[:1] and data[0] >> 4 == 6 else IP))(data)
    found = uet.uet_fields(packet)
    trailer = case["trailer"] or {}
    value = found.pop("crc", None) if options["trailer"] == "crc" else found.pop("icv", None)
    if value != (trailer.get("value") and number(trailer["value"])) and not case["error"]:
        return f"trailer: {value}"
    # The dissector of Scapy reads the parts of pds.flags.
    expected = {name: number(value) for name, value in case["fields"].items() if name.startswith(LAYERS)}
    if "pds.flags" not in found:
        expected.pop("pds.flags", None)
    # Scapy keeps an incomplete header as bytes.
    cut = case["error"] or case["trimmed"]
    if found != expected and not (cut and found.items() <= expected.items()):
        return f"fields: {sorted(found.items() ^ expected.items())}"
    payload = case["payload"]
    if payload and found and not case["error"]:
        expected = data[payload["offset"]:payload["offset"] + payload["length"]]
        if Raw not in packet or packet[Raw].load != expected:
            return f"payload: {packet!r}"
    if not found and case["from"] != "uet":
        return None  # Other protocols are Scapy's.
    packet.clear_cache()
    built = bytes(packet)
    if built == data and trailer.get("ok") and case["from"] != "uet" and not case["padding"]:
        packet[uet.UETCrc].underlayer.remove_payload()
        built = bytes(uet.uet_with_crc(packet))
    return None if built == data else f"built: {built.hex()}"


def edges(uet):
    """Checks inputs that no vector has."""
    for length in range(8):
        native = IP(src="10.0.0.1", dst="10.0.0.2", proto=uet.IP_PROTO) / Raw(b"\x0b" * length)
        assert bytes(IP(bytes(native))) == bytes(native), native
    assert Raw in uet.UETEntropy(b"\0\0\0\0\x0b")
    for wrong in {"udp_port": "x"}, {"udp_port": 65536}, {"ip_proto": 256}, {"trailer": "x"}:
        try:
            uet.uet_settings(**wrong)
        except ValueError:
            continue
        raise AssertionError(f"{wrong} is accepted")
    packet = IP() / UDP(chksum=7) / uet.UETRequest()
    assert uet.uet_with_crc(packet)[UDP].chksum == 0 and packet[UDP].chksum == 7


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    uet = load(arguments[0])
    edges(uet)
    agreed, omitted, wrong = 0, collections.Counter(), 0
    for name, case, options in cases(pathlib.Path(*arguments[1:2] or [HERE.parent.parent / "vectors"])):
        reason = left_out(name, case, options)
        if reason:
            omitted[reason] += 1
            continue
        found = check(uet, case, options)
        if found:
            wrong += 1
            print(f"{name}: {found}\n    {case['hex']}")
        else:
            agreed += 1
    for reason, count in omitted.items():
        print(f"{count} packets left out: {reason}")
    print(f"{agreed} packets agree, {wrong} do not")
    return 2 if agreed + wrong == 0 else int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
