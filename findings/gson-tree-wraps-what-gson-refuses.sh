#!/bin/sh
# Gson: an ID that does not fit is refused from text, and wraps from a
# JsonElement.
#
# Package: com.google.code.gson:gson 2.15.0 (Maven Central).
# Guess: fromJson(String) and fromJson(JsonElement) apply one rule: Gson checks
#   the range of short and byte in both.
# Behaviour: from a tree (a type adapter or TypeAdapterFactory that looks at the
#   element first) int and long are the low bits of the number, and a fraction
#   is cut off. From text the same values are exceptions, but an exponent is
#   read through a double there, and exactly from the tree.
# Seen 2026-11-28: Integer of a 63-bit ID is -584016889, Long of 2^64 - 1 is -1;
#   1.179183313482456071e18 is ...064 from text and ...071 from the tree.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>com.google.code.gson</groupId><artifactId>gson</artifactId><version>2.15.0</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import com.google.gson.Gson;
import com.google.gson.JsonParser;
import java.util.function.Supplier;

public class Main {
    static Object of(Supplier<Object> get) {
        try {
            return get.get();
        } catch (RuntimeException e) {
            return e.getClass().getSimpleName();
        }
    }

    public static void main(String[] args) {
        var gson = new Gson();
        Object[][] rows = {
            {"1179183313482456071", Integer.class}, {"18446744073709551615", Long.class}, {"5.7", Long.class},
            {"70000", Short.class}, {"1.179183313482456071e18", Long.class},
        };
        for (Object[] row : rows) {
            String json = (String) row[0];
            Class<?> type = (Class<?>) row[1];
            System.out.println(json + " as " + type.getSimpleName() + ": text " + of(() -> gson.fromJson(json, type))
                    + ", tree " + of(() -> gson.fromJson(JsonParser.parseString(json), type)));
        }
    }
}
EOF
cat >want <<'EOF'
1179183313482456071 as Integer: text JsonSyntaxException, tree -584016889
18446744073709551615 as Long: text JsonSyntaxException, tree -1
5.7 as Long: text JsonSyntaxException, tree 5
70000 as Short: text JsonSyntaxException, tree JsonSyntaxException
1.179183313482456071e18 as Long: text 1179183313482456064, tree 1179183313482456071
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "gson-tree-wraps-what-gson-refuses: no longer holds" >&2; exit 1; }
