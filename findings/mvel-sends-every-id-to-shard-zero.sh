#!/bin/sh
# MVEL: id % 16 is 0 for every ID that is a Long.
#
# Package: org.mvel:mvel2 2.6.0.Final (Maven Central).
# Guess: a Long and an int literal give a long, as in Java.
# Behaviour: +, -, *, / and % of a Long and an int are calculated with doubles,
#   and the result is a Long again. The low 8 bits of IDs of this size are lost
#   before the remainder is taken. With two Longs, and for bit operators, the
#   result is exact. Compiled and interpreted expressions do the same.
# Seen 2026-11-29: 1,000 IDs in a row are all in shard 0 of 16, with 16L in all
#   16; n + 1 is n - 7.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.mvel</groupId><artifactId>mvel2</artifactId><version>2.6.0.Final</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.mvel2.MVEL;

public class Main {
    static final long N = 1179183313482456071L;

    static String shards(String rule) {
        var compiled = MVEL.compileExpression(rule);
        var seen = new TreeSet<Object>();
        for (long id = N; id < N + 1000; id++) {
            seen.add(MVEL.executeExpression(compiled, Map.of("id", id)));
        }
        return seen.size() == 1 ? "all in " + seen.first() : seen.size() + " shards";
    }

    public static void main(String[] args) {
        for (String rule : List.of("id % 16", "id % 16L", "id & 15")) {
            System.out.println(rule + ": " + shards(rule));
        }
        for (String rule : List.of("id + 1", "id + 1L", "id / 1")) {
            Object result = MVEL.eval(rule, Map.of("id", N));
            System.out.println(rule + ": " + result.getClass().getSimpleName() + " " + result);
        }
    }
}
EOF
cat >want <<'EOF'
id % 16: all in 0
id % 16L: 16 shards
id & 15: 16 shards
id + 1: Long 1179183313482456064
id + 1L: Long 1179183313482456072
id / 1: Long 1179183313482456064
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "mvel-sends-every-id-to-shard-zero: no longer holds" >&2; exit 1; }
