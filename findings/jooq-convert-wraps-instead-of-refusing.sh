#!/bin/sh
# jOOQ: into(), get(field, Integer.class) and Convert wrap an ID that does not
# fit.
#
# Packages: org.jooq:jooq 3.19.39 (Maven Central), the line for Java 17.
# Guess: a conversion that cannot hold the value throws DataTypeException;
#   jOOQ has that exception for it.
# Behaviour: a long read into an int keeps the low 32 bits, also in a POJO;
#   the text of 2^63 read into a Long is -2^63, and a text that is no number
#   is null.
# Seen 2026-11-28: 1179183313482456071 as Integer is -584016889,
#   "9223372036854775808" as Long is -9223372036854775808, "order-7" as Long
#   is null.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.jooq</groupId><artifactId>jooq</artifactId><version>3.19.39</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.name;

import org.jooq.DSLContext;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;
import org.jooq.tools.Convert;

public class Main {
    public static class Order {
        public int id;
    }

    public static void main(String[] args) {
        DSLContext db = DSL.using(org.jooq.SQLDialect.POSTGRES);
        var id = field(name("id"), SQLDataType.BIGINT);
        var row = db.newRecord(id);
        row.set(id, 1179183313482456071L);
        System.out.println("get(id, Integer.class): " + row.get(id, Integer.class));
        System.out.println("into(Order.class).id:   " + row.into(Order.class).id);
        for (String text : new String[] {"9223372036854775808", "order-7"})
            System.out.println("\"" + text + "\" as Long: " + Convert.convert(text, Long.class));
    }
}
EOF
cat >want <<'EOF'
get(id, Integer.class): -584016889
into(Order.class).id:   -584016889
"9223372036854775808" as Long: -9223372036854775808
"order-7" as Long: null
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main 2>/dev/null >got
cat got
diff want got >&2 || { echo "jooq-convert-wraps-instead-of-refusing: no longer holds" >&2; exit 1; }
