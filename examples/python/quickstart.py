import os

import firn

servers = os.environ.get("FIRN_SERVERS", "http://127.0.0.1:3476").split(",")
client = firn.Client(servers)
orders = client.sequencer("orders")
print(orders.next())
print(orders.take(3))
print(orders.take(1, "base62"))
client.close()
