#!/bin/sh
# DuckDB JDBC: getLong of a HUGEINT or UBIGINT keeps the low 64 bits.
#
# Packages: org.duckdb:duckdb_jdbc 2.0.0.1, com.h2database:h2 2.4.240 for
#   comparison (Maven Central).
# Guess: getLong of a value that is out of range throws SQLException, as JDBC
#   says and H2 does.
# Behaviour: getLong and getInt return low bits, with wasNull false and no
#   warning: different 128-bit IDs give one long. getObject and getBigDecimal
#   are right.
# Seen 2026-11-28: 2^127 - 1 and 2^64 - 1 are both -1; getInt of a 63-bit ID
#   is -584016889, where H2 throws.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.duckdb</groupId><artifactId>duckdb_jdbc</artifactId><version>2.0.0.1</version></dependency>
<dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.4.240</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import java.sql.DriverManager;
import java.sql.SQLException;

public class Main {
    interface Get {
        Object get() throws SQLException;
    }

    static Object of(Get get) {
        try {
            return get.get();
        } catch (SQLException e) {
            return "SQLException";
        }
    }

    public static void main(String[] args) throws SQLException {
        String[][] rows = {
            {"jdbc:duckdb:", "170141183460469231731687303715884105727::hugeint"},
            {"jdbc:duckdb:", "18446744073709551615::ubigint"},
            {"jdbc:duckdb:", "1179183313482456071::bigint"},
            {"jdbc:h2:mem:", "cast(170141183460469231731687303715884105727 as numeric(39))"},
            {"jdbc:h2:mem:", "cast(1179183313482456071 as bigint)"},
        };
        for (String[] row : rows)
            try (var db = DriverManager.getConnection(row[0]);
                    var result = db.createStatement().executeQuery("select " + row[1])) {
                result.next();
                System.out.println(row[0] + " " + row[1] + ": getLong " + of(() -> result.getLong(1))
                        + ", getInt " + of(() -> result.getInt(1)) + ", getBigDecimal " + of(() -> result.getBigDecimal(1)));
            }
    }
}
EOF
cat >want <<'EOF'
jdbc:duckdb: 170141183460469231731687303715884105727::hugeint: getLong -1, getInt -1, getBigDecimal 170141183460469231731687303715884105727
jdbc:duckdb: 18446744073709551615::ubigint: getLong -1, getInt -1, getBigDecimal 18446744073709551615
jdbc:duckdb: 1179183313482456071::bigint: getLong 1179183313482456071, getInt -584016889, getBigDecimal 1179183313482456071
jdbc:h2:mem: cast(170141183460469231731687303715884105727 as numeric(39)): getLong SQLException, getInt SQLException, getBigDecimal 170141183460469231731687303715884105727
jdbc:h2:mem: cast(1179183313482456071 as bigint): getLong 1179183313482456071, getInt SQLException, getBigDecimal 1179183313482456071
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "duckdb-jdbc-getlong-wraps-128-bits: no longer holds" >&2; exit 1; }
