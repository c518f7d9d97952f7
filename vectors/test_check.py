"""The oracle against packets written out by hand, and against vectors that are wrong.

    python3 -m unittest discover -s vectors
"""

import contextlib
import copy
import io
import json
import pathlib
import tempfile
import unittest

import check

NOTHING = {
    "stack": [],
    "fields": {},
    "names": {},
    "derived": {},
    "reserved": {},
    "payload": None,
    "padding": None,
    "trailer": None,
    "trimmed": None,
    "sliced": None,
    "fragment": False,
    "error": None,
    "findings": [],
}


def vector(name, start, text, **expected):
    options = expected.pop("options", {})
    out = {"name": name, "description": name, "source": "by hand", "from": start, "options": options, "hex": text}
    return {**out, **copy.deepcopy(NOTHING), **expected}


WRITE = vector(
    "16 KiB write, first of four packets",
    "ip",
    "45001054000040004011158d 0a000001 0a00010c"  # IPv4, DF, 4180 bytes
    "04d2 12b9 1040 0000"
    "118c ffff 00012000 4001 0000"  # RUD_REQ, STD, ar and syn
    "01 0d 0001 01000065 0002 000a"
    "0000000000000000 00000000 00000000000acce5 000000000000000b 00004000" + 4096 * "5a",
    stack=["ipv4", "udp", "pds", "ses", "payload"],
    fields={
        "ip.dscp": 0,
        "ip.ecn": 0,
        "ip.ttl": 64,
        "udp.src_port": 1234,
        "udp.dst_port": 4793,
        "udp.length": 4160,
        "pds.type": 2,
        "pds.next_hdr": 3,
        "pds.flags": 12,
        "pds.flags.retx": 0,
        "pds.flags.ar": 1,
        "pds.flags.syn": 1,
        "pds.clear_psn_offset": -1,
        "pds.psn": 0x12000,
        "pds.spdcid": 0x4001,
        "pds.pdc_info": 0,
        "pds.psn_offset": 0,
        "ses.opcode": 1,
        "ses.version": 0,
        "ses.dc": 0,
        "ses.ie": 0,
        "ses.rel": 1,
        "ses.hd": 1,
        "ses.eom": 0,
        "ses.som": 1,
        "ses.message_id": 1,
        "ses.ri_generation": 1,
        "ses.job_id": 101,
        "ses.pid_on_fep": 2,
        "ses.resource_index": 0x00A,
        "ses.buffer_offset": "0x0000000000000000",
        "ses.initiator": 0,
        "ses.memory_key": "0x00000000000acce5",
        "ses.header_data": "0x000000000000000b",
        "ses.request_length": 16384,
    },
    names={"pds.type": "RUD_REQ", "pds.next_hdr": "UET_HDR_REQUEST_STD", "ses.opcode": "UET_WRITE"},
    derived={"pds.clear_psn": 0x11FFF, "pds.start_psn": 0x12000},
    payload={"offset": 84, "length": 4096},
)

ACK_FIELDS = {
    "pds.type": 7,
    "pds.next_hdr": 0,
    "pds.flags": 0,
    "pds.flags.m": 0,
    "pds.flags.retx": 0,
    "pds.flags.p": 0,
    "pds.flags.req": 0,
    "pds.ack_psn_offset": -2,
    "pds.cack_psn": 1,
    "pds.spdcid": 0x8001,
    "pds.dpdcid": 0x4001,
}
ACK_NAMES = {"pds.type": "ACK", "pds.next_hdr": "UET_HDR_NONE", "pds.flags.req": "NO_REQUEST"}
ACK = vector(
    "ACK whose ack_psn wraps",
    "uet",
    "3800 fffe 00000001 8001 4001",
    stack=["pds"],
    fields=ACK_FIELDS,
    names=ACK_NAMES,
    derived={"pds.ack_psn": 0xFFFFFFFF},
)

ACK_CC_FIELDS = {
    **ACK_FIELDS,
    "pds.type": 8,
    "pds.ack_psn_offset": 0,
    "pds.cack_psn": 332,
    "pds.cc_flags": 0,
    "pds.mpr": 8,
    "pds.sack_psn_offset": 1,
    "pds.sack_bitmap": "0x0000000000000005",
}
ACK_CC_DERIVED = {
    "pds.ack_psn": 332,
    "pds.sack_psn": 333,
    "pds.sacked": [[333, 333], [335, 335]],
    "pds.mp_range": 1024,
}
CREDIT = vector(
    "ACK_CC, CREDIT",
    "uet",
    "4000 0000 0000014c 8001 4001 1008 0001 0000000000000005 000061 000000 0002",
    stack=["pds"],
    fields={**ACK_CC_FIELDS, "pds.cc_type": 1, "pds.credit": 97, "pds.ooo_count": 2},
    names={**ACK_NAMES, "pds.type": "ACK_CC", "pds.cc_type": "CREDIT"},
    derived={**ACK_CC_DERIVED, "pds.credit_bytes": 24832},
)
NSCC = vector(
    "ACK_CC, NSCC",
    "uet",
    "4000 0000 0000014c 8001 4001 0008 0001 0000000000000005 0064 c0 000101 ffff",
    stack=["pds"],
    fields={
        **ACK_CC_FIELDS,
        "pds.cc_type": 0,
        "pds.service_time": 100,
        "pds.rc": 1,
        "pds.rcv_cwnd_pend": 64,
        "pds.rcvd_bytes": 257,
        "pds.ooo_count": 65535,
    },
    names={**ACK_NAMES, "pds.type": "ACK_CC", "pds.cc_type": "NSCC"},
    derived={**ACK_CC_DERIVED, "pds.service_time_ns": 12800, "pds.rcvd_bytes_bytes": 65792},
)

NACK = vector(
    "NACK of a trimmed packet",
    "uet",
    "5000 01 00 00012003 8001 4001 00000000",
    stack=["pds"],
    fields={
        "pds.type": 10,
        "pds.next_hdr": 0,
        "pds.flags": 0,
        "pds.flags.m": 0,
        "pds.flags.retx": 0,
        "pds.flags.nt": 0,
        "pds.nack_code": 1,
        "pds.vendor_code": 0,
        "pds.nack_psn": 0x12003,
        "pds.spdcid": 0x8001,
        "pds.dpdcid": 0x4001,
        "pds.payload": 0,
    },
    names={"pds.type": "NACK", "pds.next_hdr": "UET_HDR_NONE", "pds.nack_code": "TRIMMED"},
)

CP_FIELDS = {
    "pds.type": 11,
    "pds.ctl_type": 2,
    "pds.flags": 0,
    "pds.flags.isrod": 0,
    "pds.flags.retx": 0,
    "pds.flags.ar": 0,
    "pds.flags.syn": 0,
    "pds.psn": 0,
    "pds.spdcid": 0x4001,
    "pds.dpdcid": 0x8001,
    "pds.payload": 0x12003,
}
CLEAR = vector(
    "CLEAR_COMMAND",
    "uet",
    "5900 0000 00000000 4001 8001 00012003",
    stack=["pds"],
    fields=CP_FIELDS,
    names={"pds.type": "CP", "pds.ctl_type": "CLEAR_COMMAND"},
    derived={"pds.clear_psn": 0x12003},
)
PROBE = vector(
    "PROBE",
    "uet",
    "5b00 beef 00000000 4001 8001 00012003",
    stack=["pds"],
    fields={**CP_FIELDS, "pds.ctl_type": 6, "pds.probe_opaque": 0xBEEF},
    names={"pds.type": "CP", "pds.ctl_type": "PROBE"},
)

# All that the CRC covers is zero: addresses, entropy, and a packet of the reserved type 0.
ZEROS = vector(
    "CRC of 32 zero bytes",
    "ip",
    "4500003000004000 40fd39d2 00000000 00000000 00000000 0000 000000000000000000000000000000000000 8a9136aa 1111",
    options={"trailer": "crc"},
    stack=["ipv4", "entropy", "pds", "payload", "crc", "padding"],
    fields={
        "ip.dscp": 0,
        "ip.ecn": 0,
        "ip.ttl": 64,
        "pds.entropy": 0,
        "pds.type": 0,
        "pds.next_hdr": 0,
        "pds.flags": 0,
    },
    names={"pds.type": "RESERVED", "pds.next_hdr": "UET_HDR_NONE"},
    payload={"offset": 26, "length": 18},
    padding={"offset": 48, "length": 2},
    trailer={"kind": "crc", "value": "0x8a9136aa", "expected": "0x8a9136aa", "ok": True},
    findings=[{"id": "WIRE-TYPE-001", "severity": "error", "field": "pds.type", "value": 0, "message": ""}],
)

CUT = vector(
    "ACK without its last byte",
    "uet",
    "3800 fffe 00000001 8001 40",
    fields={name: value for name, value in ACK_FIELDS.items() if name != "pds.dpdcid"},
    names=ACK_NAMES,
    error={"layer": "pds", "field": "pds.dpdcid", "offset": 10, "needed": 12, "present": 11, "message": ""},
)
SLICED = vector(
    "ACK that the capture cut",
    "uet",
    CUT["hex"],
    options={"wire": 12},
    fields=CUT["fields"],
    names=ACK_NAMES,
    sliced={"captured": 11, "wire": 12},
)

BY_HAND = [WRITE, ACK, CREDIT, NSCC, NACK, CLEAR, PROBE, ZEROS, CUT, SLICED]


def judged(*vectors):
    """The report on these vectors, and its lines."""
    out = io.StringIO()
    report = check.Report(out)
    for each in vectors:
        check.check_vector(report, "by hand", each)
    return report, out.getvalue()


def decoded(start, text, **options):
    return check.decode({"from": start, "hex": text, "options": options})


class ByHand(unittest.TestCase):
    def test_the_oracle_agrees_with_packets_written_by_hand(self):
        report, text = judged(*BY_HAND)
        self.assertEqual(text, "")
        self.assertEqual(report.packets, len(BY_HAND))
        self.assertGreater(report.compared, 200)

    def test_crc32c(self):
        self.assertEqual(check.crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(check.crc32c(b"123456789"), 0xE3069283)

    def test_the_lengths_of_the_headers(self):
        lengths = dict(
            tss=12, tss_ssi=16, request=12, request_cc=16, rudi_req=8, rudi_resp=8, uud=4, ack=12, ack_cc=32,
            ack_ccx=40, nack=16, nack_ccx=32, control=16, small=20, medium=32, std=44, response=12, response_data=20,
            response_data_small=12, rendezvous=24, atomic=4, compare_swap=36, entropy=4, udp=8, ipv4=20, ipv6=40,
        )  # fmt: skip
        self.assertEqual({header: check.size_of(header) for header in lengths}, lengths)

    def test_the_forms_of_a_choice_are_equally_long(self):
        for header, items in check.PARSED.items():
            for item in items:
                if isinstance(item, list):
                    self.assertEqual(len({sum(f[1] for f in body) for _, _, body in item}), 1, header)

    def test_a_header_cut_at_any_byte_keeps_the_fields_before(self):
        whole = decoded("ip", WRITE["hex"])
        data = bytes.fromhex(WRITE["hex"])
        for end in range(len(data) - 4096):
            packet = decoded("ip", data[:end].hex())
            self.assertIsNotNone(packet.error, end)
            self.assertLessEqual(packet.fields.items(), whole.fields.items())
            self.assertIsNone(decoded("ip", data[:end].hex(), wire=len(data)).error, end)


class Around(unittest.TestCase):
    def udp(self, body, length=None):
        size = 8 + len(body) // 2
        return "000112b9%04x0000" % (size if length is None else length) + body

    def ipv4(self, body, proto=17, first="4500", fragment="4000", total=None, options=""):
        total = 20 + len(options + body) // 2 if total is None else total
        return first + "%04x0000" % total + fragment + "40%02x0000" % proto + "0a0000010a00010c" + options + body

    def ipv6(self, body, proto, length=None):
        size = len(body) // 2 if length is None else length
        return "60000000%04x%02x40" % (size, proto) + 64 * "0" + body

    def eth(self, body, kind="0800"):
        return 24 * "0" + kind + body

    ACK = ACK["hex"].replace(" ", "")

    def test_vlans(self):
        packet = decoded("eth", self.eth(self.ipv4(self.udp(self.ACK)), "8100f00188a800020800"))
        self.assertEqual(packet.stack, ["eth", "vlan", "vlan", "ipv4", "udp", "pds"])
        self.assertEqual((packet.fields["vlan.id"], packet.fields["vlan.inner.id"]), (1, 2))

    def test_ipv4_options(self):
        packet = decoded("ip", self.ipv4(self.udp(self.ACK), first="4600", options="01010101"))
        self.assertEqual(packet.stack, ["ipv4", "udp", "pds"])

    def test_ipv6_extension_headers(self):
        udp = self.udp(self.ACK)
        skipped = [(proto, "11%02x" % units + 2 * (8 * units + 6) * "0") for proto in (0, 43, 60, 135, 139, 140)
                   for units in (0, 2)]  # fmt: skip
        skipped.append((51, "1101" + 20 * "0"))  # AH counts in fours, less two
        skipped.append((44, "1100000000000001"))  # an atomic fragment
        for proto, extension in skipped:
            packet = decoded("ip", self.ipv6(extension + udp, proto))
            self.assertEqual(packet.stack, ["ipv6", "udp", "pds"], proto)

    def test_fragments(self):
        for fragment in ("2000", "0001"):
            packet = decoded("ip", self.ipv4(self.udp(self.ACK), fragment=fragment))
            self.assertEqual((packet.fragment, packet.stack), (True, ["ipv4", "payload"]))
        packet = decoded("ip", self.ipv6("1100000100000001" + self.udp(self.ACK), 44))
        self.assertEqual((packet.fragment, packet.payload), (True, {"offset": 48, "length": 20}))

    def test_lengths_that_cannot_be_right(self):
        for text, field, needed, present in (
            (self.ipv4(self.udp(self.ACK), first="4400"), "ip.ihl", 5, 4),
            (self.ipv4(self.udp(self.ACK), first="4f00"), "ip.total_length", 60, 40),
            (self.ipv4(self.udp(self.ACK), total=19), "ip.total_length", 20, 19),
            (self.ipv4(self.udp(self.ACK), total=41), "ip.total_length", 41, 40),
            (self.ipv4(self.udp(self.ACK, length=7)), "udp.length", 8, 7),
            (self.ipv6("1104" + 12 * "0", 0), "ip.ext.length", 40, 8),
        ):
            error = decoded("ip", text).error
            self.assertEqual((error["field"], error["needed"], error["present"]), (field, needed, present))

    def test_trimmed_by_a_switch(self):
        packet = decoded("ip", self.ipv4(self.udp(WRITE["hex"].replace(" ", "")[56:80], length=4160)))
        self.assertEqual(packet.trimmed, {"layer": "ses", "missing": 4140, "last_hop": False})
        self.assertIsNone(packet.error)
        packet = decoded("ip", self.ipv4(self.udp(self.ACK), first="4524"), trimmed_lasthop_dscp=9)
        self.assertEqual(packet.trimmed, {"layer": "payload", "missing": None, "last_hop": True})

    def test_a_trimmed_packet_that_never_had_room_for_its_header_is_malformed(self):
        packet = decoded("ip", self.ipv4(self.udp(self.ACK[:16], length=19)))
        self.assertEqual((packet.trimmed["layer"], packet.error["field"]), ("pds", "pds.spdcid"))

    def test_tss(self):
        packet = decoded("uet", "0d000001 00000002 0003 000000000004 ffff" + 32 * "1", trailer="icv")
        self.assertEqual(packet.stack, ["tss", "payload", "icv"])
        self.assertEqual(packet.fields["tss.counter"], "0x000000000004")
        self.assertEqual(packet.trailer["ok"], None)


class Wrong(unittest.TestCase):
    """Every kind of disagreement is noticed, and named."""

    def noticed(self, base, key, change):
        wrong = copy.deepcopy(base)
        change(wrong)
        report, text = judged(wrong)
        self.assertGreater(report.disagreements, 0, key)
        self.assertIn("%s: %s: expected " % (base["name"], key), text)

    def test_each_key(self):
        for key, value in (
            ("stack", ["pds", "payload"]),
            ("payload", {"offset": 12, "length": 1}),
            ("padding", {"offset": 12, "length": 1}),
            ("trailer", {"kind": "icv", "value": "0x", "expected": None, "ok": None}),
            ("trimmed", {"layer": "pds", "missing": 1, "last_hop": False}),
            ("sliced", {"captured": 12, "wire": 13}),
            ("fragment", True),
            ("fragment", 0),
            ("error", {"layer": "pds", "field": "pds.psn", "offset": 0, "needed": 1, "present": 0}),
            ("findings", None),
        ):
            self.noticed(ACK, key, lambda wrong: wrong.update({key: value}))

    def test_a_missing_key(self):
        for key in NOTHING:
            self.noticed(ACK, key, lambda wrong: wrong.pop(key))

    def test_a_field(self):
        self.noticed(ACK, "fields.pds.cack_psn", lambda wrong: wrong["fields"].update({"pds.cack_psn": 2}))
        self.noticed(ACK, "fields.pds.cack_psn", lambda wrong: wrong["fields"].update({"pds.cack_psn": 1.0}))
        self.noticed(ACK, "fields.pds.dpdcid", lambda wrong: wrong["fields"].pop("pds.dpdcid"))
        self.noticed(ACK, "fields.pds.psn", lambda wrong: wrong["fields"].update({"pds.psn": 2}))
        self.noticed(WRITE, "fields.ses.memory_key", lambda w: w["fields"].update({"ses.memory_key": "0xacce5"}))

    def test_a_name(self):
        self.noticed(NACK, "names.pds.nack_code", lambda wrong: wrong["names"].update({"pds.nack_code": "NO_BITMAP"}))

    def test_a_derived_value(self):
        self.noticed(ACK, "derived.pds.ack_psn", lambda wrong: wrong["derived"].update({"pds.ack_psn": -1}))
        self.noticed(CREDIT, "derived.pds.sacked", lambda wrong: wrong["derived"].update({"pds.sacked": [[333, 335]]}))

    def test_a_byte(self):
        self.noticed(NACK, "fields.pds.nack_psn", lambda w: w.update(hex=w["hex"].replace("12003", "12004")))

    def test_a_crc(self):
        self.noticed(ZEROS, "trailer.ok", lambda wrong: wrong.update(hex=wrong["hex"].replace("8a91", "8a92")))

    def test_an_error(self):
        for key in ("layer", "field", "offset", "needed", "present"):
            self.noticed(CUT, "error." + key, lambda wrong: wrong["error"].update({key: "x"}))

    def test_an_option_that_was_not_used(self):
        self.noticed(ZEROS, "trailer", lambda wrong: wrong.update(options={}))

    def test_a_finding_without_its_field(self):
        finding = {"id": "WIRE-RSVD-001", "severity": "warning", "field": "pds.psn", "value": 1}
        self.noticed(ACK, "findings[0].field", lambda wrong: wrong["findings"].append(finding))

        self.noticed(ACK, "findings[0].field", lambda wrong: wrong["findings"].append({**finding, "field": []}))

    def test_a_finding_of_another_value(self):
        self.noticed(ZEROS, "findings[0].value", lambda wrong: wrong["findings"][0].update(value=1))
        self.noticed(ZEROS, "findings[0].severity", lambda wrong: wrong["findings"][0].update(severity="fatal"))
        self.noticed(ZEROS, "findings[0].id", lambda wrong: wrong["findings"][0].update(id="type"))

    def test_a_violation_without_its_finding(self):
        self.noticed(ZEROS, "findings", lambda wrong: wrong["findings"].clear())
        for base, old, new in (
            (WRITE, "40004011", "40003f11"),  # another checksum
            (WRITE, "40004011158d", "00004011558d"),  # may be fragmented
            (ACK, "3800", "3840"),  # a reserved flag
            (ACK, "3800", "3880"),  # a small request behind an ACK
            (ACK, "3800", "3f80"),  # a reserved next header
            (ACK, "3800", "3806"),  # the reserved request
            (CREDIT, "1008", "1108"),  # cc_flags
            (CREDIT, "1008", "2008"),  # a reserved cc_type
            (NACK, "5000 01", "5000 0c"),  # a reserved code
            (NACK, "5000 01", "5000 03"),  # one that is reserved since 1.0.3
            (PROBE, "5b00", "5d00"),  # a reserved ctl_type
        ):
            self.noticed(base, "findings", lambda wrong: wrong.update(hex=wrong["hex"].replace(old, new)))

    def test_small_and_medium_requests_are_whole_messages(self):
        for som_eom, flagged in (("03", None), ("02", "ses.som"), ("01", "ses.eom"), ("00", "ses.som")):
            packet = decoded("uet", "1080 ffff 00000001 4001 8001 01" + som_eom + 36 * "0")
            found = [field for field, _, _ in check.violations(packet)]
            self.assertEqual(found, [flagged] if flagged else [])


class Program(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def write(self, name, text):
        (self.path / name).write_text(text if isinstance(text, str) else json.dumps(text))
        return str(self.path / name)

    def run_check(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = check.main(list(arguments))
            except SystemExit as exit:
                code = exit.code
        return code, out.getvalue(), err.getvalue()

    def test_no_vectors_is_a_failure(self):
        self.write("schema.json", {})
        self.assertEqual(self.run_check(str(self.path))[0], 2)

    def test_a_directory_of_vectors_that_agree(self):
        (self.path / "deep").mkdir()
        for number in range(2):
            self.write("deep/%d.jsonl" % number, "\n".join(map(json.dumps, BY_HAND[number::2])) + "\n")
        code, out, _ = self.run_check(str(self.path))
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^10 vectors, 10 packets, \d+ fields compared, 0 disagreements\n$")

    def test_a_disagreement(self):
        path = self.write("acks.jsonl", "\n".join(map(json.dumps, [ACK, {**ACK, "stack": []}])))
        code, out, _ = self.run_check(path)
        self.assertEqual(code, 1)
        self.assertIn('%s:2: %s: stack: expected ["pds"], seen []' % (path, ACK["name"]), out)

    def test_a_sequence(self):
        packets = [{**ACK, "direction": "target", "at": 5}, {**NACK, "direction": "target", "at": 5}]
        sequence = {"name": "two", "description": "two packets", "source": "by hand", "packets": packets}
        code, out, _ = self.run_check(self.write("two.jsonl", sequence))
        self.assertEqual((code, out.startswith("1 vectors, 2 packets, ")), (0, True))
        packets[1]["at"] = 4
        self.assertEqual(self.run_check(self.write("two.jsonl", sequence))[0], 2)

    def test_what_is_not_a_vector_is_named(self):
        for text in (
            "",
            "[]",
            "{}",
            "[" * 100000,
            "\x00",
            '{"name":1}',
            '{"name":"a","name":"a"}',
            {**ACK, "hex": "0"},
            {**ACK, "hex": None},
            {**ACK, "from": "ipx"},
            {**ACK, "options": {"color": 1}},
            {**ACK, "options": {"udp_port": "4793"}},
            {**ACK, "options": {"spec": "latest"}},
            {**ACK, "options": {"wire": 11}},
            {**ACK, "packets": []},
            {**ACK, "packets": [1]},
        ):
            path = self.write("bad.jsonl", text)
            code, _, err = self.run_check(path)
            self.assertEqual(code, 2, text)
            self.assertIn(path + ":1: ", err)
        for text in ("\n", "\n{}"):
            code, out, err = self.run_check(self.write("bad.jsonl", json.dumps(ACK) + "\n" + text))
            self.assertEqual((code, out.startswith("1 vectors, ")), (2, True))
            self.assertIn(path + ":2: ", err)
        (self.path / "bad.jsonl").write_bytes(b"\xff\xfe")
        self.assertEqual(self.run_check(path)[0], 2)
        self.assertEqual(self.run_check(str(self.path / "absent.jsonl"))[0], 2)

    def test_keys_of_another_form_are_disagreements(self):
        for key in NOTHING:
            for value in (None, 1, "x", [1], {"a": None}, [{}]):
                if value != ACK[key]:
                    code, _, _ = self.run_check(self.write("odd.jsonl", {**ACK, key: value}))
                    self.assertEqual(code, 1, (key, value))

    def test_decode(self):
        path = self.write("lines", json.dumps({"from": "uet", "hex": ACK["hex"]}) + "\n\nnot json\n")
        code, out, err = self.run_check("--decode", path)
        first, second = map(json.loads, out.splitlines())
        self.assertEqual((code, first["fields"], second), (2, ACK_FIELDS, None))
        self.assertIn("line 3", err)

    def test_usage(self):
        self.assertEqual(self.run_check("--color")[0], 2)
        self.assertEqual(self.run_check("--help")[0], 0)


if __name__ == "__main__":
    unittest.main()
