#!/bin/sh
# OpenTelemetry for JavaScript: a bigint attribute of a span is dropped.
#
# Packages: @opentelemetry/sdk-trace-base 2.12.1,
#   @opentelemetry/otlp-transformer 0.223.1 (npm).
# Guess: a bigint becomes an int, since an attribute of OTLP has 64 bits, or
#   its text; if it is dropped, droppedAttributesCount says so.
# Behaviour: setAttribute with a bigint, or an array of them, adds nothing,
#   and so does an event; only the diagnostic logger, which is off by default,
#   has a warning. droppedAttributesCount stays 0. The same ID as a number
#   arrives rounded, so that text is the only way.
# Seen 2026-11-28: of three attributes the rounded number and the text arrive,
#   0 are counted as dropped.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@opentelemetry/api@1 @opentelemetry/sdk-trace-base@2.12.1 @opentelemetry/otlp-transformer@0.223.1 >npm.log

cat >main.cjs <<'EOF'
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { JsonTraceSerializer } = require('@opentelemetry/otlp-transformer')
const id = 1179183313482456071n
const memory = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] })
const span = provider.getTracer('orders').startSpan('create')
span.setAttribute('order.id', id)
span.setAttribute('order.number', Number(id))
span.setAttribute('order.text', String(id))
span.addEvent('stored', { 'order.id': id })
span.end()
const sent = Buffer.from(JsonTraceSerializer.serializeRequest(memory.getFinishedSpans())).toString()
const [got] = JSON.parse(sent).resourceSpans[0].scopeSpans[0].spans
for (const { key, value } of got.attributes) console.log(key, JSON.stringify(value))
console.log('dropped', got.droppedAttributesCount)
console.log('of the event', got.events[0].attributes.length, 'dropped', got.events[0].droppedAttributesCount)
EOF
cat >want <<'EOF'
order.number {"intValue":1179183313482456000}
order.text {"stringValue":"1179183313482456071"}
dropped 0
of the event 0 dropped 0
EOF

node main.cjs 2>err.log >got
cat got
diff want got >&2 || { echo "otel-js-drops-bigint-attributes: no longer holds" >&2; exit 1; }
