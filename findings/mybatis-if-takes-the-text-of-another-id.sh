#!/bin/sh
# MyBatis: in <if> and <when>, a Long is equal to the text of another ID.
#
# Package: org.mybatis:mybatis 3.5.19 (Maven Central), with the OGNL in it.
# Guess: == of a Long and a String is false, as equals in Java, or compares
#   the integer that the text holds.
# Behaviour: OGNL makes doubles of a number and a text to compare them. IDs
#   travel as text in JSON and are Long in entities, so a mapper meets both, and
#   writes the SQL of the other branch for neighbours. Two Longs, or two texts,
#   are compared exactly.
# Seen 2026-11-29: the text of n, of n+1 and of n+50 equal the Long n; n+1 as
#   Long does not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.mybatis</groupId><artifactId>mybatis</artifactId><version>3.5.19</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import java.util.Map;
import org.apache.ibatis.scripting.xmltags.XMLLanguageDriver;
import org.apache.ibatis.session.Configuration;

public class Main {
    static final String SCRIPT = "<script>select * from orders"
            + "<choose><when test='parent == self'>where root</when><otherwise>where parent = ?</otherwise></choose>"
            + "</script>";

    static void print(String name, Object parent, Object self) {
        var source = new XMLLanguageDriver().createSqlSource(new Configuration(), SCRIPT, Map.class);
        System.out.println(name + ": " + source.getBoundSql(Map.of("parent", parent, "self", self)).getSql());
    }

    public static void main(String[] args) {
        long n = 1179183313482456071L;
        print("text n, Long n", String.valueOf(n), n);
        print("text n+1, Long n", String.valueOf(n + 1), n);
        print("text n+50, Long n", String.valueOf(n + 50), n);
        print("Long n+1, Long n", n + 1, n);
        print("text n+1, text n", String.valueOf(n + 1), String.valueOf(n));
    }
}
EOF
cat >want <<'EOF'
text n, Long n: select * from orders where root
text n+1, Long n: select * from orders where root
text n+50, Long n: select * from orders where root
Long n+1, Long n: select * from orders where parent = ?
text n+1, text n: select * from orders where parent = ?
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "mybatis-if-takes-the-text-of-another-id: no longer holds" >&2; exit 1; }
