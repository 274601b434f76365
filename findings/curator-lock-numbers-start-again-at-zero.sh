#!/bin/sh
# Curator: the sequence number of a lock's node starts again at 0 when the lock
# was not used for a while.
#
# Packages: org.apache.curator:curator-recipes and curator-test 5.9.0 (Maven
#   Central), with the ZooKeeper that they bring, in the same process.
# Guess: the number of a sequential node only rises, so the one of the lock's
#   holder is a fencing token.
# Behaviour: the number is kept in the parent. InterProcessMutex makes parents
#   as containers, and ZooKeeper removes an empty container at its next check
#   (each minute; 0.2 s here). The next holder has a smaller number than all
#   before. The transaction ID of the node (czxid) rises.
# Seen 2026-11-28: 1, 2, 3, then 0 after the container has gone.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.curator</groupId><artifactId>curator-recipes</artifactId><version>5.9.0</version></dependency>
<dependency><groupId>org.apache.curator</groupId><artifactId>curator-test</artifactId><version>5.9.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
EOF
mvn -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.log

cat >Main.java <<'EOF'
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.apache.curator.test.TestingServer;

public class Main {
    static long last;

    static String hold(CuratorFramework client) throws Exception {
        var lock = new InterProcessMutex(client, "/locks/orders");
        lock.acquire();
        String node = client.getChildren().forPath("/locks/orders").stream()
                .filter(child -> child.contains("-lock-")).findFirst().orElseThrow();
        long czxid = client.checkExists().forPath("/locks/orders/" + node).getCzxid();
        lock.release();
        String risen = czxid > last ? "czxid has risen" : "czxid has not risen";
        last = czxid;
        return node.replaceAll(".*-lock-", "") + ", " + risen;
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("znode.container.checkIntervalMs", "200");
        try (var server = new TestingServer();
                var client = CuratorFrameworkFactory.newClient(server.getConnectString(), new RetryOneTime(1000))) {
            client.start();
            // This child keeps the container while the lock is free for a moment.
            client.create().creatingParentContainersIfNeeded().forPath("/locks/orders/child");
            for (int i = 0; i < 3; i++) System.out.println("holder " + hold(client));
            client.delete().forPath("/locks/orders/child");
            while (client.checkExists().forPath("/locks/orders") != null) Thread.sleep(50);
            System.out.println("container removed");
            System.out.println("holder " + hold(client));
        }
        System.exit(0);
    }
}
EOF
cat >want <<'EOF'
holder 0000000001, czxid has risen
holder 0000000002, czxid has risen
holder 0000000003, czxid has risen
container removed
holder 0000000000, czxid has risen
EOF

javac -cp "lib/*" -d . Main.java && java -cp "lib/*:." Main >got
cat got
diff want got >&2 || { echo "curator-lock-numbers-start-again-at-zero: no longer holds" >&2; exit 1; }
