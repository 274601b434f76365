#!/bin/sh
# OpenTelemetry (Python): one log body of 2^63 or more loses the whole batch.
#
# Packages: opentelemetry-sdk 1.45.2, opentelemetry-exporter-otlp-proto-http
#   1.45.2 (PyPI), against an HTTP server of 10 lines.
# Guess: the record, or its body, is dropped, as an attribute of that size is.
# Behaviour: OTLP's integers have 64 bits with a sign. An attribute beyond them
#   is left out with a log line, and its record is sent. A body beyond them
#   ends the encoding of the batch: none of its records is sent, and none is
#   sent again.
# Seen 2026-11-28: of three records with one such attribute three arrive, with
#   one such body none.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2

cat >main.py <<'EOF'
import logging
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

logging.disable()
received = []


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        request = ExportLogsServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                received.extend(scope.log_records)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Collector)
Thread(target=server.serve_forever, daemon=True).start()
for name, body, id in [("fits", 2**63 - 1, 2**63 - 1), ("attribute", 5, 2**63), ("body", 2**63, 5)]:
    received.clear()
    exporter = OTLPLogExporter(f"http://127.0.0.1:{server.server_port}/v1/logs")
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("orders")
    logger.emit(LogRecord(body="before"))
    logger.emit(LogRecord(body=body, attributes={"id": id}))
    logger.emit(LogRecord(body="after"))
    provider.force_flush()
    provider.shutdown()
    print(name, "records:", len(received), "attributes:", sum(len(r.attributes) for r in received))
EOF
cat >want <<'EOF'
fits records: 3 attributes: 1
attribute records: 3 attributes: 0
body records: 0 attributes: 0
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "otel-python-one-big-log-body-loses-the-batch: no longer holds" >&2; exit 1; }
