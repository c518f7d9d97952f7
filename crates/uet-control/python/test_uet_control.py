"""python3 -m unittest discover -s crates/uet-control/python"""

import io
import json
import unittest

from uet_control import Client, Refused, pattern


class TestClient(unittest.TestCase):
    def client(self, *lines):
        return Client(io.BytesIO("".join(json.dumps(line) + "\n" for line in lines).encode()), io.BytesIO())

    def test_answers_events_and_refusals(self):
        client = self.client(
            {"event": "completion", "operation": 1, "status": "ok"},
            {"id": 1, "ok": True, "operation": 1},
            {"id": 2, "error": {"code": "unsupported", "message": "no"}},
        )
        self.assertEqual(client.post(kind="write", peer=1, length=4)["operation"], 1)
        self.assertEqual([event["operation"] for event in client.events], [1])
        with self.assertRaises(Refused) as refused:
            client.reset()
        self.assertEqual(refused.exception.code, "unsupported")
        first, second = map(json.loads, client.writer.getvalue().splitlines())
        self.assertEqual(first, {"id": 1, "op": "post", "kind": "write", "peer": 1, "length": 4})
        self.assertEqual(second, {"id": 2, "op": "reset"})

    def test_a_channel_that_ends_is_an_error(self):
        with self.assertRaises(ConnectionError):
            self.client().hello()

    def test_the_pattern_is_that_of_the_documentation(self):
        self.assertEqual(pattern(1, 4).hex(), "9e3cda78")


if __name__ == "__main__":
    unittest.main()
