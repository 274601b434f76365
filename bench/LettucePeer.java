import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;

import java.util.concurrent.TimeUnit;

/**
 * Sends INCR to two servers by turns, with Lettuce: one connection, one thread. Arguments are the ports and the number of rounds. Each round prints a
 * line "MODE FIRST SECOND" of calls a second for each mode: sync waits for every
 * answer, async-100 for those of a hundred calls.
 */
public class LettucePeer {
    private static final long SLICE = TimeUnit.MILLISECONDS.toNanos(200);

    public static void main(String[] args) {
        RedisClient client = RedisClient.create();
        int rounds = Integer.parseInt(args[2]);
        for (int round = -8; round < rounds; round++) { // the first let the JVM compile
            for (String mode : new String[] {"sync", "async-100"}) {
                double[] rates = new double[2];
                for (int turn = 0; turn < 2; turn++) {
                    int i = (round + turn) & 1;
                    // One for each slice, as some threads of Lettuce have better places than others.
                    try (var connection = client.connect(RedisURI.create("redis://127.0.0.1:" + args[i]))) {
                        connection.sync().incr("bench");
                        rates[i] = mode.equals("sync") ? sync(connection) : async(connection, 100);
                    }
                }
                if (round >= 0) {
                    System.out.println(mode + " " + rates[0] + " " + rates[1]);
                }
            }
        }
        client.shutdown();
    }

    private static double sync(StatefulRedisConnection<String, String> connection) {
        long begin = System.nanoTime(), last = 0;
        int calls = 0;
        while (System.nanoTime() - begin < SLICE) {
            last = increasing(last, connection.sync().incr("bench"));
            calls++;
        }
        return calls * 1e9 / (System.nanoTime() - begin);
    }

    @SuppressWarnings("unchecked")
    private static double async(StatefulRedisConnection<String, String> connection, int many) {
        RedisFuture<Long>[] futures = new RedisFuture[many];
        long begin = System.nanoTime(), last = 0;
        int calls = 0;
        while (System.nanoTime() - begin < SLICE) {
            for (int i = 0; i < many; i++) {
                futures[i] = connection.async().incr("bench");
            }
            if (!LettuceFutures.awaitAll(10, TimeUnit.SECONDS, futures)) {
                throw new IllegalStateException("no answer within 10 s");
            }
            for (RedisFuture<Long> future : futures) {
                last = increasing(last, future.toCompletableFuture().join());
            }
            calls += many;
        }
        return calls * 1e9 / (System.nanoTime() - begin);
    }

    private static long increasing(long last, long next) {
        if (next <= last) {
            throw new IllegalStateException(next + " after " + last);
        }
        return next;
    }
}
