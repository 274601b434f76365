#!/bin/sh
# JAXB: an int field reads the ID 2026-11-27 as -20261127, a long field as 0.
#
# Package: org.glassfish.jaxb:jaxb-runtime 4.0.9 (Maven Central).
# Guess: a value that a field cannot hold is an error, or leaves the field as it
#   was, in the same way for int, long and Integer.
# Behaviour: for int and short the digits are added up without a look at the
#   range. A minus sign counts wherever it stands, and white space between
#   digits is left out, so a dashed ID is a negative number, and one of more
#   than 32 bits wraps. long and BigInteger are parsed properly; what they
#   cannot hold is 0 or null, without an error. In the same place a letter gives
#   0 in an element, and in an attribute a NumberFormatException from unmarshal.
# Seen 2026-11-29: 17-42 is -1742, 17 42 is 1742 and 4294967301 is 5 as int and
#   Integer; as long they are 0, 0 and 4294967301.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.glassfish.jaxb</groupId><artifactId>jaxb-runtime</artifactId>
<version>4.0.9</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import jakarta.xml.bind.JAXBContext;
import jakarta.xml.bind.annotation.XmlAccessType;
import jakarta.xml.bind.annotation.XmlAccessorType;
import jakarta.xml.bind.annotation.XmlAttribute;
import jakarta.xml.bind.annotation.XmlRootElement;
import java.io.StringReader;
import java.math.BigInteger;

public class Main {
    @XmlRootElement(name = "order")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Order {
        public int i;
        public Integer integer;
        public long l;
        public BigInteger big;
    }

    @XmlRootElement(name = "row")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Row {
        @XmlAttribute
        public int id;
    }

    public static void main(String[] args) throws Exception {
        var reader = JAXBContext.newInstance(Order.class, Row.class).createUnmarshaller();
        for (String id : new String[] {"2026-11-27", "17-42", "17 42", "4294967301", "12e5"}) {
            String xml = "<order><i>%1$s</i><integer>%1$s</integer><l>%1$s</l><big>%1$s</big></order>".formatted(id);
            Order order = (Order) reader.unmarshal(new StringReader(xml));
            String attribute;
            try {
                attribute = "" + ((Row) reader.unmarshal(new StringReader("<row id='" + id + "'/>"))).id;
            } catch (NumberFormatException e) {
                attribute = "NumberFormatException";
            }
            System.out.printf("%s: int %d, Integer %d, long %d, BigInteger %d, attribute %s%n",
                    id, order.i, order.integer, order.l, order.big, attribute);
        }
    }
}
EOF
cat >want <<'EOF'
2026-11-27: int -20261127, Integer -20261127, long 0, BigInteger null, attribute -20261127
17-42: int -1742, Integer -1742, long 0, BigInteger null, attribute -1742
17 42: int 1742, Integer 1742, long 0, BigInteger null, attribute 1742
4294967301: int 5, Integer 5, long 4294967301, BigInteger 4294967301, attribute 5
12e5: int 0, Integer null, long 0, BigInteger null, attribute NumberFormatException
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "jaxb-reads-a-dashed-id-as-a-negative-int: no longer holds" >&2; exit 1; }
