"""`kaitai.py FOLDER FIELDS` does what `kaitai.js read` does."""

import json
import sys

folder, fields = sys.argv[1:]
sys.path.insert(0, folder)
from uet import Uet  # noqa: E402: compiled into this folder

known = json.load(open(fields))
classes = {getattr(Uet, name.title().replace("_", "")): name for name in known}


def number(value):
    value = getattr(value, "value", value)
    return str(int.from_bytes(value, "big") if isinstance(value, bytes) else int(value))


for line in sys.stdin:
    try:
        packet = Uet.from_bytes(bytes.fromhex(line))
    except EOFError as error:
        print(json.dumps({"error": str(error)}))
        continue
    headers = []
    for name in "tss", "tss_ssi", "pds", "ses", "rendezvous", "atomic", "compare_swap":
        header = getattr(packet, name, None)
        if header is not None:
            kind = classes[type(header)]
            values = {id: getattr(header, id, None) for id in known[kind]}
            headers.append([kind, {id: number(value) for id, value in values.items() if value is not None}])
    print(json.dumps({"headers": headers, "payload": packet.payload.hex()}))
