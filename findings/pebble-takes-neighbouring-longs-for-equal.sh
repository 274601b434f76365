#!/bin/sh
# Pebble templates: two neighbouring Longs are equal.
#
# Package: io.pebbletemplates:pebble 4.1.2 (Maven Central).
# Guess: == of two Longs compares 64-bit integers: its arithmetic is exact, and
#   a - b of neighbours is -1.
# Behaviour: the operators ==, !=, <, <=, > and >= compare numbers as doubles,
#   also two Longs and two BigIntegers. Arithmetic and "contains" are exact. A
#   list marks the neighbours of the chosen row too, and a row that is older
#   is not shown as older.
# Seen 2026-11-29: n == n+1 and n >= n+1 are true, n < n+1 is false; of three
#   options in a row, all three are selected.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>io.pebbletemplates</groupId><artifactId>pebble</artifactId><version>4.1.2</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import io.pebbletemplates.pebble.PebbleEngine;
import io.pebbletemplates.pebble.loader.StringLoader;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;

public class Main {
    static final String OPTIONS = "{% for id in ids %}[{{ id }}{% if id == n %} selected{% endif %}]{% endfor %}";

    public static void main(String[] args) throws Exception {
        long n = 1179183313482456071L;
        var engine = new PebbleEngine.Builder().loader(new StringLoader()).build();
        Map<String, Object> values = Map.of("n", n, "next", n + 1, "ids", List.of(n, n + 1, n + 2), "one", List.of(n));
        for (String source : List.of("{{ n == next }}", "{{ n < next }}", "{{ n >= next }}", "{{ n - next }}",
                "{{ n - next == 0 }}", "{{ one contains next }}", OPTIONS)) {
            var out = new StringWriter();
            engine.getTemplate(source).evaluate(out, values);
            System.out.println((source.equals(OPTIONS) ? "options" : source) + ": " + out);
        }
    }
}
EOF
cat >want <<'EOF'
{{ n == next }}: true
{{ n < next }}: false
{{ n >= next }}: true
{{ n - next }}: -1
{{ n - next == 0 }}: false
{{ one contains next }}: false
options: [1179183313482456071 selected][1179183313482456072 selected][1179183313482456073 selected]
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "pebble-takes-neighbouring-longs-for-equal: no longer holds" >&2; exit 1; }
