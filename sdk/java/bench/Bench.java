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
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
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
        for (int batch : new int[] {10_000, 100_000}) {
            config.addFlakeIdGeneratorConfig(new ClientFlakeIdGeneratorConfig("bench" + batch).setPrefetchCount(batch));
        }
        HazelcastInstance hazelcast = HazelcastClient.newHazelcastClient(config);
        create(args[0]);
        AtomicLong counter = new AtomicLong();
        for (int batch : new int[] {0, 10_000, 100_000}) { // defaults, Firn's usual maximum, Hazelcast's maximum
            FlakeIdGenerator flake = hazelcast.getFlakeIdGenerator("bench" + batch); // 0 is not configured
            Client.Builder options = Client.builder().servers(List.of(args[0]));
            if (batch > 0) {
                options.firstBatch(batch).maxBatch(batch);
            }
            try (Client client = options.build()) {
                if (batch == 100_000) {
                    warm(client);
                }
                Sequencer bench = client.sequencer("bench");
                for (int threads : new int[] {1, 2}) {
                    System.out.print((batch == 0 ? "default batches" : "batches of " + batch) + ", " + threads + " threads: ");
                    run(threads, batch == 0 ? SHARE / 20 : SHARE, counter::incrementAndGet, bench::next, flake::newId);
                }
            }
        }
        hazelcast.shutdown();
        member.destroy();
    }

    /** Creates the sequencer with the bits of Hazelcast's IDs, and without their limit per millisecond. */
    private static void create(String url) throws IOException, InterruptedException {
        HttpRequest.Builder b = HttpRequest.newBuilder(URI.create(url + "/v1/sequencers/bench"));
        String body = "{\"layout\":\"hazelcast\",\"max_ahead\":\"2000h\"}";
        int status = HttpClient.newHttpClient()
                .send(b.PUT(HttpRequest.BodyPublishers.ofString(body)).build(), HttpResponse.BodyHandlers.discarding())
                .statusCode();
        if (status > 201) {
            throw new IOException("create the sequencer bench: status " + status);
        }
    }

    private static void member() throws IOException {
        Config c = new Config().setProperty("hazelcast.phone.home.enabled", "false");
        c.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        c.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        // A member gives its clients 64 IDs per millisecond: lift that, to measure the client.
        c.addFlakeIdGeneratorConfig(new FlakeIdGeneratorConfig("*").setAllowedFutureMillis(Long.MAX_VALUE >> 24));
        System.out.println(Hazelcast.newHazelcastInstance(c).getCluster().getLocalMember().getAddress().getPort());
        System.in.read();
    }

    /** The time of a call while its block lasts, without a server, beside an AtomicLong. */
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
            int threads, int share, LongSupplier atomic, LongSupplier firn, LongSupplier hazelcast) throws InterruptedException {
        double[][] ns = new double[3][ROUNDS];
        for (int round = -2; round < ROUNDS; round++) {
            double[] got = {measure(threads, share, atomic), measure(threads, share, firn), measure(threads, share, hazelcast)};
            for (int k = 0; round >= 0 && k < 3; k++) {
                ns[k][round] = got[k];
            }
        }
        for (double[] all : ns) {
            Arrays.sort(all);
        }
        int mid = ROUNDS / 2;
        System.out.printf(
                "AtomicLong %.1f ns, Firn %.1f ns, Hazelcast %.1f ns an ID; Hazelcast/Firn %.2f%n",
                ns[0][mid], ns[1][mid], ns[2][mid], ns[2][mid] / ns[1][mid]);
    }

    private static double measure(int threads, int share, LongSupplier source) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(threads);
        AtomicLong sink = new AtomicLong();
        long start = System.nanoTime();
        for (int t = 0; t < threads; t++) {
            new Thread(() -> {
                long x = 0;
                for (int i = 0; i < share; i++) {
                    x += source.getAsLong();
                }
                sink.addAndGet(x);
                done.countDown();
            }).start();
        }
        done.await();
        return (double) (System.nanoTime() - start) / ((double) share * threads);
    }
}
