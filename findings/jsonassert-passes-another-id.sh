#!/bin/sh
# JSONassert (Java): assertEquals passes for JSON with another ID, and fails if
# the same ID stands in a list of numbers.
#
# Package: org.skyscreamer:jsonassert 1.5.3 (Maven Central), which
#   spring-boot-starter-test 3.5.0 brings along.
# Guess: the parser makes a Long of an ID, and strict mode compares the Longs;
#   messages show all digits.
# Behaviour: values of an object that are both numbers are compared as doubles,
#   with exact Longs at hand. IDs that round to one double are equal, in STRICT
#   mode too, and an object with another ID, or one ID twice, is found right.
#   In a list of numbers without STRICT order the Longs are counted and differ.
#   A quoted ID is compared as text.
# Seen 2026-11-29: id n and n+1 pass in both modes, and so do the rows n, n+1
#   against n, n; the list [n] against [n+1] passes with STRICT and fails with
#   LENIENT.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.skyscreamer</groupId><artifactId>jsonassert</artifactId><version>1.5.3</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import org.skyscreamer.jsonassert.JSONAssert;
import org.skyscreamer.jsonassert.JSONCompareMode;

public class Main {
    static void compare(String name, String expected, String actual) throws Exception {
        System.out.print(name + ":");
        for (var mode : new JSONCompareMode[] {JSONCompareMode.STRICT, JSONCompareMode.LENIENT}) {
            String result = "passes";
            try {
                JSONAssert.assertEquals(expected, actual, mode);
            } catch (AssertionError e) {
                result = "fails";
            }
            System.out.print(" " + mode + " " + result);
        }
        System.out.println();
    }

    public static void main(String[] args) throws Exception {
        String n = "1179183313482456071", next = "1179183313482456072", far = "1179183313482456971";
        compare("id n, n+1", "{\"id\":" + n + "}", "{\"id\":" + next + "}");
        compare("id n, n+900", "{\"id\":" + n + "}", "{\"id\":" + far + "}");
        compare("rows n, n+1 and n, n", "[{\"id\":" + n + "},{\"id\":" + next + "}]",
                "[{\"id\":" + n + "},{\"id\":" + n + "}]");
        compare("list [n], [n+1]", "{\"ids\":[" + n + "]}", "{\"ids\":[" + next + "]}");
        compare("id as text", "{\"id\":\"" + n + "\"}", "{\"id\":\"" + next + "\"}");
    }
}
EOF
cat >want <<'EOF'
id n, n+1: STRICT passes LENIENT passes
id n, n+900: STRICT fails LENIENT fails
rows n, n+1 and n, n: STRICT passes LENIENT passes
list [n], [n+1]: STRICT passes LENIENT fails
id as text: STRICT fails LENIENT fails
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "jsonassert-passes-another-id: no longer holds" >&2; exit 1; }
