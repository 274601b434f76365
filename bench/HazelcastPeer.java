import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.client.config.ClientFlakeIdGeneratorConfig;
import com.hazelcast.config.Config;
import com.hazelcast.config.FlakeIdGeneratorConfig;
import com.hazelcast.config.NetworkConfig;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.flakeidgen.FlakeIdGenerator;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Hazelcast as a peer: "member PORT" or "client PORT". It prints "ready", and for each line
 * "PREFETCH N" the nanoseconds in which one thread took N IDs.
 */
public class HazelcastPeer {
  static final int[] PREFETCH = {1, 100, 1000, 10000};

  static HazelcastInstance member(int port) {
    Config c = new Config();
    c.setClusterName("bench");
    c.setProperty("hazelcast.logging.type", "none");
    c.setProperty("hazelcast.phone.home.enabled", "false");
    NetworkConfig n = c.getNetworkConfig();
    n.setPort(port).setPortAutoIncrement(false);
    n.getInterfaces().setEnabled(true).addInterface("127.0.0.1");
    n.getJoin().getMulticastConfig().setEnabled(false);
    n.getJoin().getAutoDetectionConfig().setEnabled(false);
    for (int k : PREFETCH) {
      // As many IDs in a millisecond as Firn's layout here has, so that neither waits for the format.
      c.addFlakeIdGeneratorConfig(new FlakeIdGeneratorConfig("p" + k).setPrefetchCount(k).setBitsSequence(20).setBitsNodeId(2));
    }
    return Hazelcast.newHazelcastInstance(c);
  }

  static HazelcastInstance client(int port) {
    ClientConfig c = new ClientConfig();
    c.setClusterName("bench");
    c.setProperty("hazelcast.logging.type", "none");
    c.getNetworkConfig().addAddress("127.0.0.1:" + port);
    for (int k : PREFETCH) {
      c.addFlakeIdGeneratorConfig(new ClientFlakeIdGeneratorConfig("p" + k).setPrefetchCount(k));
    }
    return HazelcastClient.newHazelcastClient(c);
  }

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[1]);
    HazelcastInstance hz = args[0].equals("client") ? client(port) : member(port);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    long x = 0;
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      FlakeIdGenerator ids = hz.getFlakeIdGenerator("p" + words[0]);
      int n = Integer.parseInt(words[1]);
      long begin = System.nanoTime();
      for (int i = 0; i < n; i++) {
        x ^= ids.newId();
      }
      long took = System.nanoTime() - begin;
      System.out.println(x == 1 ? took + 1 : took); // x keeps the loop
    }
    System.exit(0);
  }
}
