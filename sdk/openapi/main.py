"""Uses a server through a client that openapi-generator made."""

import sys

import firn_api

client = firn_api.ApiClient(firn_api.Configuration(host=sys.argv[1]))
ids = firn_api.IdsApi(client)
sequencers = firn_api.SequencersApi(client)

made = ids.next("orders", count=3).actual_instance.ids
runs = ids.next("orders", count=3, runs=True).actual_instance.runs
assert (len(made), runs[0].count) == (3, 3)
read = ids.inspect(made[0], layout="default")
assert (read.dec, read.others) == (made[0], [])
uuid = ids.inspect("919108f7-52d1-4320-9bac-f847db4148a8")
assert (uuid.layout, uuid.time) == ("uuidv4", None)
column = ids.inspect_column("\n".join(made))
assert column.count == 3 and column.last_ms > 1 << 40
assert sequencers.create_sequencer("python", firn_api.Settings(window="20s")).window == "20s"
assert len(sequencers.get_sequencer("orders").nodes) == 1
assert len(sequencers.list_sequencers().sequencers) > 1
assert len(sequencers.list_members().members) == 1
try:
    ids.next("orders", format="nonsense")
except firn_api.ApiException as error:
    assert error.status == 400
else:
    raise AssertionError("no error")
