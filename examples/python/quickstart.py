import os

import firn

client = firn.Client(os.environ["FIRN_SERVERS"].split(","))
orders = client.sequencer("orders")
print(orders.next(), orders.take(3))
