#!/bin/sh
# jackson-jq (Java): select, unique, group_by and "-" take neighbouring IDs for
# one, and show all digits.
#
# Package: net.thisptr:jackson-jq 1.6.2 (Maven Central).
# Guess: numbers are Jackson's, so a 64-bit integer is compared as a Long. jq
#   1.6 rounds already when it reads, so that at least its output shows it.
# Behaviour: reading, printing and + and - of numbers are exact for 64 bits;
#   each comparison is one of doubles. select(.id == n) gives the neighbours
#   too, unique and group_by make one of them, sort leaves them as they were,
#   and "- [n]" takes them all away.
# Seen 2026-11-29: of the IDs n+2, n and n+1, select finds three, unique keeps
#   one, group_by makes one group, max is n+1, and "- [n]" leaves none.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>net.thisptr</groupId><artifactId>jackson-jq</artifactId><version>1.6.2</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import com.fasterxml.jackson.databind.ObjectMapper;
import net.thisptr.jackson.jq.BuiltinFunctionLoader;
import net.thisptr.jackson.jq.JsonQuery;
import net.thisptr.jackson.jq.Scope;
import net.thisptr.jackson.jq.Versions;

public class Main {
    public static void main(String[] args) throws Exception {
        var scope = Scope.newEmptyScope();
        BuiltinFunctionLoader.getInstance().loadFunctions(Versions.JQ_1_6, scope);
        long n = 1179183313482456071L;
        var input = new ObjectMapper().readTree("[%d,%d,%d]".formatted(n + 2, n, n + 1));
        for (String query : new String[] {".", "map(select(. == " + n + "))", "unique", "group_by(.) | length", "sort",
                "max", ". - [" + n + "]", "map(tostring) | unique", ".[0] - .[1]"}) {
            System.out.print(query + ":");
            JsonQuery.compile(query, Versions.JQ_1_6).apply(scope, input, value -> System.out.print(" " + value));
            System.out.println();
        }
    }
}
EOF
cat >want <<'EOF'
.: [1179183313482456073,1179183313482456071,1179183313482456072]
map(select(. == 1179183313482456071)): [1179183313482456073,1179183313482456071,1179183313482456072]
unique: [1179183313482456073]
group_by(.) | length: 1
sort: [1179183313482456073,1179183313482456071,1179183313482456072]
max: 1179183313482456072
. - [1179183313482456071]: []
map(tostring) | unique: ["1179183313482456071","1179183313482456072","1179183313482456073"]
.[0] - .[1]: 2
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "jackson-jq-selects-neighbouring-ids: no longer holds" >&2; exit 1; }
