#!/bin/sh
# Kafka Connect: JsonConverter without schemas reads 18446744073709551615 as
# -1.
#
# Package: org.apache.kafka:connect-json 4.4.0 (Maven Central).
# Guess: an integer above 2^63 - 1 is an error, or a larger type; integers of
#   JSON are exact or refused.
# Behaviour: every integer is taken by its low 64 bits. A 64-bit unsigned ID
#   becomes negative in the sink, one of 20 digits or more another ID
#   altogether; no error and no log line.
# Seen 2026-11-28: 9223372036854775813 is read as -9223372036854775803,
#   18446744073709551615 as -1, 18446744073709551658 as 42.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>connect-json</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import java.util.Map;
import org.apache.kafka.connect.json.JsonConverter;

public class Main {
    public static void main(String[] args) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false", "converter.type", "value"));
        for (String id : new String[] {"1179183313482456071", "9223372036854775813",
                "18446744073709551615", "18446744073709551658"}) {
            var value = converter.toConnectData("topic", ("{\"id\":" + id + "}").getBytes());
            byte[] out = converter.fromConnectData("topic", null, value.value());
            System.out.println(id + " -> " + new String(out));
        }
    }
}
EOF
cat >want <<'EOF'
1179183313482456071 -> {"id":1179183313482456071}
9223372036854775813 -> {"id":-9223372036854775803}
18446744073709551615 -> {"id":-1}
18446744073709551658 -> {"id":42}
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "connect-json-wraps-an-unsigned-id: no longer holds" >&2; exit 1; }
