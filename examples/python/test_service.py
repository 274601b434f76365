import unittest

import firn
from firn.testing import FakeClient
from service import ORDER, make_order


class MakeOrder(unittest.TestCase):
    def test_orders_have_ids_in_order(self) -> None:
        orders = FakeClient(clock=lambda: 1782864000.5, node=7).sequencer("orders")
        self.assertEqual(make_order(orders, "tea"), {"id": "order_01t87rdyg0w01", "item": "tea"})
        self.assertEqual(ORDER.parse("order_01t87rdyg0w01"), 15_638_400_500 << 22 | 7 << 12 | 1)

    def test_no_server(self) -> None:
        client = FakeClient()
        client.error = firn.UnavailableError("orders", {})
        with self.assertRaises(firn.UnavailableError):
            make_order(client.sequencer("orders"), "tea")


if __name__ == "__main__":
    unittest.main()
