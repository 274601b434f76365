#!/bin/sh
# Runs the rows of docs/digits.md on the JVM: java and mvn.
set -eu
command -v java mvn >/dev/null || exit 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

{
	echo '<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><dependencies>'
	for d in com.fasterxml.jackson.core:jackson-databind:2.23.0 com.google.code.gson:gson:2.15.0 \
		com.squareup.moshi:moshi:1.15.2 org.json:json:20260814 com.alibaba.fastjson2:fastjson2:2.0.64 \
		net.minidev:json-smart:2.6.1 org.yaml:snakeyaml:2.7 org.apache.groovy:groovy-json:5.0.8 \
		org.apache.poi:poi-ooxml:5.5.1 com.h2database:h2:2.5.252 org.redisson:redisson:4.7.0 \
		org.hibernate.orm:hibernate-core:7.4.15.Final com.graphql-java:graphql-java:26.2 \
		com.graphql-java:graphql-java-extended-scalars:24.0 io.pebbletemplates:pebble:4.1.2 \
		org.mvel:mvel2:2.6.0.Final org.mybatis:mybatis:3.5.19 \
		org.skyscreamer:jsonassert:1.5.3 net.thisptr:jackson-jq:1.6.2; do
		echo "$d" | sed 's|\(.*\):\(.*\):\(.*\)|<dependency><groupId>\1</groupId><artifactId>\2</artifactId><version>\3</version></dependency>|'
	done
	echo '</dependencies></project>'
} >pom.xml
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log
rm lib/android-json-* # JSONassert's, with the classes of org.json

cat >Main.java <<'END'
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.sql.DriverManager;
import java.text.MessageFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;

public class Main {
    static final long A = 1179183313482456071L;
    static final String JSON = "{\"id\":" + A + "}";

    static String show(Callable<Object> got) {
        try {
            Object v = got.call();
            return v instanceof Double ? "Double " + v : String.valueOf(v);
        } catch (Exception e) {
            return "error " + e.getClass().getSimpleName();
        }
    }

    /** Prints a row; of is the name of a jar, or "" for the JDK. */
    static void row(String what, String of, Callable<Object> got, Callable<Object> exact) {
        String version = System.getProperty("java.version");
        for (String jar : new File("lib").list())
            if (!of.isEmpty() && jar.startsWith(of + "-") && Character.isDigit(jar.charAt(of.length() + 1)))
                version = jar.substring(of.length() + 1, jar.length() - 4);
        System.out.println(String.join("\t", what, version, show(got), exact == null ? "" : show(exact)));
    }

    public static class Typed {
        public long id;
    }

    static Object sql(String query) throws Exception {
        try (var db = DriverManager.getConnection("jdbc:h2:mem:"); var rows = db.createStatement().executeQuery(query)) {
            rows.next();
            return rows.getObject(1);
        }
    }

    static Object cell(Object value) throws Exception {
        try (var book = new org.apache.poi.xssf.usermodel.XSSFWorkbook()) {
            var cell = book.createSheet().createRow(0).createCell(0);
            if (value instanceof String text) cell.setCellValue(text);
            else cell.setCellValue((Long) value);
            return value instanceof Long ? cell.getCTCell().getV() : cell.toString();
        }
    }

    @jakarta.persistence.Entity(name = "Orders")
    public static class Order {
        @jakarta.persistence.Id
        public Long id = A;
    }

    /** What a GraphQL server makes of an ID in a variable, in JSON that Jackson or Gson read. */
    static Object graphql(String type, Map<?, ?> variables) {
        var wiring = graphql.schema.idl.RuntimeWiring.newRuntimeWiring()
            .scalar(graphql.scalars.ExtendedScalars.GraphQLLong)
            .type("Query", t -> t.dataFetcher("order", e -> e.getArgument("id")));
        var types = new graphql.schema.idl.SchemaParser().parse("scalar Long type Query { order(id: " + type + "): " + type + " }");
        var schema = new graphql.schema.idl.SchemaGenerator().makeExecutableSchema(types, wiring.build());
        var query = graphql.ExecutionInput.newExecutionInput("query($id: " + type + ") { order(id: $id) }")
            .variables(Map.of("id", variables.get("id")));
        return graphql.GraphQL.newGraphQL(schema).build().execute(query.build()).<Map<String, Object>>getData().get("order");
    }

    static String pebble(String template) throws Exception {
        var out = new java.io.StringWriter();
        new io.pebbletemplates.pebble.PebbleEngine.Builder().loader(new io.pebbletemplates.pebble.loader.StringLoader()).build()
            .getTemplate(template).evaluate(out, Map.of("a", A, "b", A - 1));
        return out.toString();
    }

    static Object jq(String query) throws Exception {
        var scope = net.thisptr.jackson.jq.Scope.newEmptyScope();
        var jq16 = net.thisptr.jackson.jq.Versions.JQ_1_6;
        net.thisptr.jackson.jq.BuiltinFunctionLoader.getInstance().loadFunctions(jq16, scope);
        var out = new java.util.ArrayList<Object>();
        var mapper = new com.fasterxml.jackson.databind.ObjectMapper();
        net.thisptr.jackson.jq.JsonQuery.compile(query, jq16).apply(scope, mapper.readTree("[" + (A - 1) + "]"), out::add);
        return out.get(0);
    }

    static Object jsonAssert(Object a, Object b) throws Exception {
        try {
            org.skyscreamer.jsonassert.JSONAssert.assertEquals("{\"id\":" + a + "}", "{\"id\":" + b + "}", true);
            return "passes";
        } catch (AssertionError e) {
            return "fails";
        }
    }

    static Object mybatis(Object a, Object b) {
        return new org.apache.ibatis.scripting.xmltags.ExpressionEvaluator().evaluateBoolean("a == b", Map.of("a", a, "b", b));
    }

    /** A server that answers INCR with n. */
    static void redis(ServerSocket server) {
        while (true)
            try {
                var client = server.accept();
                var answer = new Thread(() -> {
                    try (client; var in = new BufferedReader(new InputStreamReader(client.getInputStream()))) {
                        for (String line; (line = in.readLine()) != null; ) {
                            if (!line.startsWith("*")) continue;
                            int size = Integer.parseInt(line.substring(1));
                            String name = "";
                            for (int i = 0; i < size; i++) {
                                in.readLine();
                                name += in.readLine() + " ";
                            }
                            String text = name.startsWith("INCR") ? ":" + A : name.startsWith("PING") ? "+PONG" : "+OK";
                            client.getOutputStream().write((text + "\r\n").getBytes());
                        }
                    } catch (Exception e) {
                        return;
                    }
                });
                answer.setDaemon(true);
                answer.start();
            } catch (Exception e) {
                return;
            }
    }

    public static void main(String[] args) throws Exception {
        Locale.setDefault(Locale.US);
        var jackson = new com.fasterxml.jackson.databind.ObjectMapper();
        row("Jackson into Map", "jackson-databind", () -> jackson.readValue(JSON, Map.class).get("id"), null);
        row("Jackson into long, from n.0", "jackson-databind", () -> jackson.readValue("{\"id\":" + A + ".0}", Typed.class).id, () -> jackson.readValue(JSON, Typed.class).id);
        row("Jackson JsonNode asDouble", "jackson-databind", () -> jackson.readTree(JSON).get("id").asDouble(), () -> jackson.readTree(JSON).get("id").asLong());
        var gson = new com.google.gson.Gson();
        row("Gson into Map", "gson", () -> gson.fromJson(JSON, Map.class).get("id"), () -> new com.google.gson.GsonBuilder().setObjectToNumberStrategy(com.google.gson.ToNumberPolicy.LONG_OR_DOUBLE).create().fromJson(JSON, Map.class).get("id"));
        row("Gson into long", "gson", () -> gson.fromJson(JSON, Typed.class).id, null);
        row("Moshi into Map", "moshi", () -> ((Map<?, ?>) new com.squareup.moshi.Moshi.Builder().build().adapter(Object.class).fromJson(JSON)).get("id"), null);
        row("org.json JSONObject get", "json", () -> new org.json.JSONObject(JSON).get("id"), null);
        row("org.json JSONObject optDouble", "json", () -> new org.json.JSONObject(JSON).optDouble("id"), () -> new org.json.JSONObject(JSON).getLong("id"));
        row("fastjson2 parseObject", "fastjson2", () -> com.alibaba.fastjson2.JSON.parseObject(JSON).get("id"), null);
        row("json-smart", "json-smart", () -> ((net.minidev.json.JSONObject) net.minidev.json.JSONValue.parse(JSON)).get("id"), null);
        row("Groovy JsonSlurper", "groovy-json", () -> ((Map<?, ?>) new groovy.json.JsonSlurper().parseText(JSON)).get("id"), null);
        row("SnakeYAML load", "snakeyaml", () -> ((Map<?, ?>) new org.yaml.snakeyaml.Yaml().load("id: " + A)).get("id"), null);
        row("graphql-java ID, a variable read by Gson", "graphql-java", () -> graphql("ID", gson.fromJson(JSON, Map.class)), () -> graphql("ID", jackson.readValue(JSON, Map.class)));
        row("graphql-java Long, a variable read by Gson", "graphql-java", () -> graphql("Long", gson.fromJson(JSON, Map.class)), () -> graphql("Long", jackson.readValue(JSON, Map.class)));
        row("MessageFormat {0}", "", () -> MessageFormat.format("{0}", A), () -> MessageFormat.format("{0,number,#}", A));
        row("true ? n : 0.5", "", () -> true ? A : 0.5, () -> true ? (Object) A : (Object) 0.5);
        row("n == (double) (n-1)", "", () -> A == (double) (A - 1), () -> A == A - 1 ? "" : A);
        row("mapToLong average", "", () -> List.of(A).stream().mapToLong(x -> x).average().getAsDouble(), () -> List.of(A).stream().mapToLong(x -> x).max().getAsLong());
        row("Math.round((float) n)", "", () -> Math.round((float) A), () -> Math.round((double) A) == A ? "" : A);
        row("String.format %.0f of a double", "", () -> String.format("%.0f", (double) A), () -> String.format("%d", A));
        row("Apache POI setCellValue(long)", "poi", () -> cell(A), () -> cell(String.valueOf(A)));
        try (var server = new ServerSocket(0, 9, InetAddress.getByName("127.0.0.1"))) {
            new Thread(() -> redis(server)).start();
            var config = new org.redisson.config.Config();
            config.useSingleServer().setAddress("redis://127.0.0.1:" + server.getLocalPort()).setConnectionMinimumIdleSize(1).setConnectionPoolSize(1).setSubscriptionConnectionMinimumIdleSize(0);
            var redisson = org.redisson.Redisson.create(config);
            row("Redisson getAndIncrement", "redisson", () -> redisson.getAtomicLong("orders").getAndIncrement(), () -> redisson.getAtomicLong("orders").incrementAndGet());
            redisson.shutdown();
        }
        try (var hibernate = new org.hibernate.cfg.Configuration().addAnnotatedClass(Order.class).setProperty("hibernate.connection.url", "jdbc:h2:mem:orders").setProperty("hibernate.hbm2ddl.auto", "create").buildSessionFactory()) {
            hibernate.inTransaction(db -> db.persist(new Order()));
            hibernate.inTransaction(db -> {
                row("Hibernate select id", "hibernate-core", () -> db.createQuery("select id from Orders", Object.class).getSingleResult(), null);
                row("Hibernate select avg(id)", "hibernate-core", () -> db.createQuery("select avg(id) from Orders", Object.class).getSingleResult(), () -> db.createQuery("select max(id) from Orders", Object.class).getSingleResult());
            });
        }
        row("Pebble == of n, n-1", "pebble", () -> pebble("{{ a == b }}"), () -> pebble("{{ a - b == 0 }}").equals("true") ? "" : A);
        row("MVEL n + 0", "mvel2", () -> org.mvel2.MVEL.eval("a + 0", Map.of("a", A)), () -> org.mvel2.MVEL.eval("a + 0L", Map.of("a", A)));
        row("MyBatis test, == of the text n and the Long n-1", "mybatis", () -> mybatis(String.valueOf(A), A - 1), () -> mybatis(String.valueOf(A), String.valueOf(A - 1)).equals(true) ? "" : A);
        row("JSONassert assertEquals of n, n-1", "jsonassert", () -> jsonAssert(A, A - 1), () -> jsonAssert("\"" + A + "\"", "\"" + (A - 1) + "\"").equals("passes") ? "" : A);
        row("jackson-jq select(. == n), finds n-1", "jackson-jq", () -> jq(".[] | select(. == " + A + ")"), () -> jq("map(select(tostring == \"" + A + "\")) | length").toString().equals("0") ? A : "");
        row("H2 avg(id)", "h2", () -> sql("select avg(x) from (select " + A + " x)"), null);
        row("H2 id = double of n-1", "h2", () -> sql("select " + A + " = cast(" + (A - 1) + " as double precision)"), null);
    }
}
END
javac -cp 'lib/*' -d . Main.java
java -cp 'lib/*:.' Main 2>java.log
