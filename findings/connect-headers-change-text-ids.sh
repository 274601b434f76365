#!/bin/sh
# Kafka Connect: the default header converter rewrites IDs in record headers.
#
# Packages: org.apache.kafka:connect-api 4.4.0 (Maven Central), class
#   SimpleHeaderConverter, the default of header.converter.
# Guess: a header is bytes with a text in it, and comes out of a connector as
#   it went in.
# Behaviour: each header is parsed for something that looks like a value, and
#   written again from that. A padded decimal loses its zeros, a hex ID of the
#   form digits-e-digits becomes a number, and of 17:42 or 12:34:56 only what
#   stands before the colon is left.
# Seen 2026-11-28: 00123 becomes 123, 12345e67 becomes 1.2345E71, 12e5 becomes
#   1200000, 17:42 becomes 17; a UUID and a 19-digit ID are kept.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>connect-api</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import java.util.Map;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;

public class Main {
    public static void main(String[] args) {
        SimpleHeaderConverter converter = new SimpleHeaderConverter();
        converter.configure(Map.of());
        for (String id : new String[] {"1179183313482456071", "01a0b0c0-0000-7000-8000-000000000001",
                "00123", "12345e67", "12e5", "17:42", "12:34:56"}) {
            var value = converter.toConnectHeader("topic", "id", id.getBytes());
            byte[] out = converter.fromConnectHeader("topic", "id", value.schema(), value.value());
            System.out.println(id + " -> " + new String(out) + " (" + value.schema().type() + ")");
        }
    }
}
EOF
cat >want <<'EOF'
1179183313482456071 -> 1179183313482456071 (INT64)
01a0b0c0-0000-7000-8000-000000000001 -> 01a0b0c0-0000-7000-8000-000000000001 (STRING)
00123 -> 123 (INT8)
12345e67 -> 1.2345E71 (FLOAT64)
12e5 -> 1200000 (INT32)
17:42 -> 17 (INT8)
12:34:56 -> 12 (INT8)
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "connect-headers-change-text-ids: no longer holds" >&2; exit 1; }
