"""Check that check_tss.py notices each kind of disagreement."""

import copy
import io
import json
import pathlib
import unittest

import check
import check_tss

LINES = (pathlib.Path(__file__).resolve().parent / "tss.jsonl").read_text(encoding="utf-8").splitlines()
VECTORS = {vector["name"]: vector for vector in map(json.loads, LINES)}


def disagreements(name, change):
    vector = copy.deepcopy(VECTORS["tss/" + name])
    change(vector)
    report = check.Report(io.StringIO())
    check_tss.check_secured(report, name, vector)
    return report.disagreements


class Noticed(unittest.TestCase):
    def test_an_unchanged_vector_agrees(self):
        self.assertEqual(disagreements("cluster-ipv4", lambda vector: None), 0)

    def test_another_key(self):
        def change(vector):
            vector["options"]["keys"][0]["keys"]["0"] = "00" * 32

        self.assertGreater(disagreements("cluster-ipv4", change), 0)

    def test_another_setting(self):
        for key, value in (("rekey_shift", 31), ("mode", "server"), ("confidentiality_offset", 13), ("sdi", 1)):
            change = lambda vector: vector["options"]["keys"][0].update({key: value})
            self.assertGreater(disagreements("cluster-ipv4", change), 0, key)

    def test_another_outcome(self):
        change = lambda vector: vector["protection"].update(authenticated=True, reason=None)
        self.assertGreater(disagreements("altered-icv", change), 0)

    def test_another_field(self):
        change = lambda vector: vector["fields"].update({"pds.psn": 1})
        self.assertGreater(disagreements("cluster-ipv4", change), 0)


if __name__ == "__main__":
    unittest.main()
