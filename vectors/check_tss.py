#!/usr/bin/env python3
"""Check the vectors that have keys: derive each key, open each packet, and read the plaintext with check.py.

Shares nothing with the codec. AES comes from the package `cryptography` (PyPI or python3-cryptography).

    check_tss.py                  every vector in tss.jsonl
    check_tss.py FILE...          every vector in these

Exit code: 0 all agree, 1 a disagreement, 2 usage, no vectors, or something that cannot be read as a vector.
"""

import pathlib
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.kdf.kbkdf import KBKDFCMAC, CounterLocation, Mode

import check

ICV = 16
LABELS = {"cluster": b"U1", "server": b"U2"}
# The length that the derivation states, in bits and in two bytes: a key and an IV mask.
DERIVED = 8 * 44

WRONG = (False, "the ICV is wrong")
NO_DOMAIN = (None, "there is no key for this domain")
NO_KEY = (None, "there is no key with this association number")


def derive(secret, label, context):
    """SP 800-108 in counter mode: CMAC of a number, the label, a zero, the context and the length."""
    # The library writes the length of its own output. Three whole blocks have another one, so it comes from here.
    fixed = label + b"\0" + context + DERIVED.to_bytes(2, "big")
    kdf = KBKDFCMAC(
        algorithm=AES,
        mode=Mode.CounterMode,
        length=48,
        rlen=1,
        llen=None,
        location=CounterLocation.BeforeFixed,
        label=None,
        context=None,
        fixed=fixed,
    )
    return kdf.derive(secret)[:44]


def derive_by_hand(secret, label, context):
    """Derives the key with nothing but CMAC."""
    blocks = b""
    for number in (1, 2, 3):
        mac = CMAC(AES(secret))
        mac.update(bytes([number]) + label + b"\0" + context + DERIVED.to_bytes(2, "big"))
        blocks += mac.finalize()
    return blocks[:44]


class Frame:
    """Where the parts of a secured frame are. It starts with Ethernet and has no tags, options or extension headers."""

    def __init__(self, data):
        self.data = data
        four = data[12:14] == b"\x08\x00"
        size, proto = (4, data[23]) if four else (16, data[20])
        start = 26 if four else 22
        end = 14 + int.from_bytes(data[16:18], "big") if four else 54 + int.from_bytes(data[18:20], "big")
        self.src, self.dst = data[start : start + size], data[start + size : start + 2 * size]
        layer = start + 2 * size
        self.tss = layer + (8 if proto == 17 else 4)
        self.end = end - ICV
        # The UDP checksum counts as zero.
        self.outer = self.src + self.dst + (data[layer : layer + 6] + b"\0\0" if proto == 17 else data[layer : self.tss])
        first = data[self.tss]
        self.has_ssi, self.an = bool(first & 4), first & 1
        self.sdi = int.from_bytes(data[self.tss + 1 : self.tss + 4], "big")
        self.ssi = data[self.tss + 4 : self.tss + 8] if self.has_ssi else None
        self.header = 16 if self.has_ssi else 12
        tsc = data[self.tss + self.header - 8 : self.tss + self.header]
        self.epoch, self.counter, self.tsc = tsc[:2], int.from_bytes(tsc[2:], "big"), tsc

    def keys(self, domain, secret):
        """Each key and IV mask that the packet may have. The client may be at either end of a server's packet."""
        mode = domain["mode"]
        if mode == "direct":
            return [(secret, bytes(12))]
        if mode == "client":
            return [(secret[:32], secret[32:])]
        index = 0
        if mode == "cluster":
            index = (self.counter & domain.get("rekey_mask", 0)) >> domain.get("rekey_shift", 0)
        found = []
        for address in [self.src] if mode == "cluster" else [self.src, self.dst]:
            context = self.epoch + index.to_bytes(4, "big")
            if len(address) == 16:
                context = bytes(4) + context + address
            else:
                context += self.ssi if domain.get("ssi") else address
            key = derive(secret, LABELS[mode], context)
            assert key == derive_by_hand(secret, LABELS[mode], context)
            found.append((key[:32], key[32:]))
        return found

    def open(self, domains):
        """The frame decrypted, or None, and (authenticated, reason)."""
        domain = next((domain for domain in domains if domain["sdi"] == self.sdi), None)
        if domain is None:
            return None, NO_DOMAIN
        secrets = domain["keys"].get(str(self.an), [])
        if not secrets:
            return None, NO_KEY
        offset = self.tss + max(domain.get("confidentiality_offset") or 0, self.header)
        prefix = self.ssi if domain.get("ssi") else self.src if len(self.src) == 4 else self.sdi.to_bytes(4, "big")
        aad = self.outer + self.data[self.tss : offset]
        for secret in [secrets] if isinstance(secrets, str) else secrets:
            for key, mask in self.keys(domain, bytes.fromhex(secret)):
                iv = bytes(a ^ b for a, b in zip(prefix + self.tsc, mask))
                try:
                    plain = AESGCM(key).decrypt(iv, self.data[offset : self.end + ICV], aad)
                except InvalidTag:
                    continue
                return self.data[:offset] + plain + self.data[self.end :], (True, None)
        return None, WRONG


def protection(frame, authenticated, reason):
    return {
        "sdi": frame.sdi,
        "an": frame.an,
        "ssi": int.from_bytes(frame.ssi, "big") if frame.has_ssi else None,
        "epoch": int.from_bytes(frame.epoch, "big"),
        "counter": "0x%012x" % frame.counter,
        "authenticated": authenticated,
        "reason": reason,
    }


def check_secured(report, where, vector):
    try:
        where = "%s: %s" % (where, vector["name"])
        check.expect(vector["from"] == "eth", "a secured vector starts with Ethernet")
        frame = Frame(bytes.fromhex(vector["hex"]))
        opened, found = frame.open(vector["options"]["keys"])
    except (KeyError, TypeError, IndexError) as problem:
        raise check.NotAVector("not secured: %r" % problem) from None
    report.vectors += 1
    report.compare(where, "protection", protection(frame, *found), vector.get("protection"))
    if opened is not None:
        check.check_packet(report, where, {**vector, "hex": opened.hex()}, opened=True)
    else:
        check.check_packet(report, where, {**vector, "protection": None})


def main(arguments):
    report = check.Report()
    for path in arguments or [pathlib.Path(__file__).resolve().parent / "tss.jsonl"]:
        check.check_file(report, path, check_secured)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
