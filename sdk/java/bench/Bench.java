import com.github.firnid.client.Client;
import com.github.firnid.client.Sequencer;
import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.client.config.ClientFlakeIdGeneratorConfig;
import com.hazelcast.config.Config;
import com.hazelcast.config.FlakeIdGeneratorConfig;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.flakeidgen.FlakeIdGenerator;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Compares the client with an AtomicLong, and with the client of Hazelcast. Each line has the median of the rounds,
 * which alternate, so that a slow moment of the machine affects all.
 *
 * <pre>java -cp … Bench.java http://127.0.0.1:3476</pre>
 */
final class Bench {
    private static final int ROUNDS = 9;
    private static final int SHARE = 4_000_000; // calls of a thread per round

    private Bench() {}

    public static void main(String[] args) throws Exception {
        System.setProperty("hazelcast.logging.type", "none");
        if (args[0].equals("member")) {
            member();
            return;
        }
        // In a process of its own, as firn serve is.
        Process member = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp", System.getProperty("java.class.path"), Bench.class.getName(), "member")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        String port = new BufferedReader(new InputStreamReader(member.getInputStream())).readLine();
        ClientConfig config = new ClientConfig();
        config.getNetworkConfig().addAddress("127.0.0.1:" + port);
        config.addFlakeIdGeneratorConfig(new ClientFlakeIdGeneratorConfig("bench").setPrefetchCount(10_000));
        HazelcastInstance hazelcast = HazelcastClient.newHazelcastClient(config);
        FlakeIdGenerator flake = hazelcast.getFlakeIdGenerator("bench");

        try (Client client = new Client(List.of(args[0]))) {
            Sequencer orders = client.sequencer("bench2");
            AtomicLong counter = new AtomicLong();
            // A warm block: no server takes part. 100,000 IDs last 4 ms at 25,000,000 a second.
            Client warm = Client.builder().servers(List.of(args[0])).firstBatch(100_000).maxBatch(100_000).build();
            warm(warm);
            for (int threads : new int[] {1, 2}) {
                run(threads, "AtomicLong", counter::incrementAndGet, "Firn", orders::next, "Hazelcast", flake::newId);
            }
            warm.close();
        }
        hazelcast.shutdown();
        member.destroy();
    }

    private static void member() throws IOException {
        Config c = new Config().setProperty("hazelcast.phone.home.enabled", "false");
        c.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        c.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        // A member gives its clients 64 IDs per millisecond: lift that, to measure the client.
        c.addFlakeIdGeneratorConfig(new FlakeIdGeneratorConfig("bench").setAllowedFutureMillis(Long.MAX_VALUE >> 24));
        System.out.println(Hazelcast.newHazelcastInstance(c).getCluster().getLocalMember().getAddress().getPort());
        System.in.read();
    }

    /** The time of a call while its block lasts, beside an AtomicLong. */
    private static void warm(Client client) {
        int block = 50_000;
        double[] firn = new double[200];
        double[] atomic = new double[200];
        AtomicLong counter = new AtomicLong();
        for (int round = 0; round < firn.length; round++) {
            Sequencer s = client.sequencer("warm" + round % 4);
            s.next();
            long start = System.nanoTime();
            long x = 0;
            for (int i = 0; i < block / 2; i++) {
                x += s.next();
            }
            firn[round] = (System.nanoTime() - start) / (block / 2.0);
            s.close();
            start = System.nanoTime();
            for (int i = 0; i < block / 2; i++) {
                x += counter.incrementAndGet();
            }
            atomic[round] = (System.nanoTime() - start) / (block / 2.0);
            if (x == 1) {
                System.out.println();
            }
        }
        Arrays.sort(firn);
        Arrays.sort(atomic);
        double f = firn[firn.length / 2];
        double a = atomic[atomic.length / 2];
        System.out.printf("warm block: AtomicLong %.1f ns, Firn %.1f ns, %.1f times%n", a, f, f / a);
    }

    private static void run(
            int threads, String a, LongSupplier ofA, String b, LongSupplier ofB, String c, LongSupplier ofC)
            throws InterruptedException {
        double[][] ns = new double[3][ROUNDS];
        for (int round = -2; round < ROUNDS; round++) {
            double[] got = {measure(threads, ofA), measure(threads, ofB), measure(threads, ofC)};
            for (int k = 0; round >= 0 && k < 3; k++) {
                ns[k][round] = got[k];
            }
        }
        for (double[] all : ns) {
            Arrays.sort(all);
        }
        int mid = ROUNDS / 2;
        System.out.printf(
                "%d threads: %s %.1f ns, %s %.1f ns, %s %.1f ns an ID; %s/%s %.2f%n",
                threads, a, ns[0][mid], b, ns[1][mid], c, ns[2][mid], c, b, ns[2][mid] / ns[1][mid]);
    }

    private static double measure(int threads, LongSupplier source) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(threads);
        AtomicLong sink = new AtomicLong();
        long start = System.nanoTime();
        for (int t = 0; t < threads; t++) {
            new Thread(() -> {
                long x = 0;
                for (int i = 0; i < SHARE; i++) {
                    x += source.getAsLong();
                }
                sink.addAndGet(x);
                done.countDown();
            }).start();
        }
        done.await();
        return (double) (System.nanoTime() - start) / ((double) SHARE * threads);
    }
}
