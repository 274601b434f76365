#!/bin/sh
# OpenTelemetry (Python): of traces whose ID is a UUID, a ratio of 0.5 samples
# none, and 0.75 all.
#
# Package: opentelemetry-sdk 1.45.2 (PyPI).
# Guess: an IdGenerator may give trace IDs of its own. A UUIDv4 has 122 random
#   bits and a UUIDv7 some 74, so TraceIdRatioBased(0.5) samples about half.
# Behaviour: the sampler compares the low 64 bits with the ratio of 2^64. In a
#   UUID these bits begin with the variant, 10, so the value is always between
#   0.5 and 0.75: up to 0.5 nothing is sampled, from 0.75 on everything. Between
#   the two the share is four times too steep.
# Seen 2026-11-29: of 2,000 traces 0 with 0.1 and 0.5, 2,000 with 0.75, for both
#   versions; with the IDs of the package about the ratio. The sampler of Go's
#   SDK 1.47.0 does the same.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check opentelemetry-sdk==1.45.2

cat >main.py <<'EOF'
import uuid
from random import Random

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

random = Random(1)


class UUIDv4(RandomIdGenerator):
    def generate_trace_id(self):
        return uuid.uuid4().int


class UUIDv7(RandomIdGenerator):
    def generate_trace_id(self):
        return 0x019ACA0E5800 << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62)


for make in RandomIdGenerator, UUIDv4, UUIDv7:
    print(make.__name__, end=":")
    for ratio in 0.1, 0.5, 0.75:
        provider = TracerProvider(sampler=TraceIdRatioBased(ratio), id_generator=make(), shutdown_on_exit=False)
        tracer = provider.get_tracer("finding")
        sampled = sum(tracer.start_span("x").is_recording() for _ in range(2000)) / 2000
        seen = "none" if sampled == 0 else "all" if sampled == 1 else "near" if abs(sampled - ratio) < 0.06 else sampled
        print(f" {ratio}", seen, end=";")
    print()
EOF
cat >want <<'EOF'
RandomIdGenerator: 0.1 near; 0.5 near; 0.75 near;
UUIDv4: 0.1 none; 0.5 none; 0.75 all;
UUIDv7: 0.1 none; 0.5 none; 0.75 all;
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "otel-python-samples-no-uuid-at-a-half: no longer holds" >&2; exit 1; }
