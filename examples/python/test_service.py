import unittest

import firn
from firn.testing import FakeClient
from service import make_order


class MakeOrder(unittest.TestCase):
    def test_orders_have_ids_in_order(self) -> None:
        orders = FakeClient(clock=lambda: 1767225600.5, node=7).sequencer("orders")
        self.assertEqual(make_order(orders, "tea"), {"id": "2097180672", "item": "tea"})
        self.assertEqual(make_order(orders, "tea"), {"id": "2097180673", "item": "tea"})

    def test_no_server(self) -> None:
        client = FakeClient()
        client.error = firn.UnavailableError("orders", {})
        with self.assertRaises(firn.UnavailableError):
            make_order(client.sequencer("orders"), "tea")


if __name__ == "__main__":
    unittest.main()
