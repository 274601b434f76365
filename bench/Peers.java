import com.github.f4b6a3.tsid.TsidFactory;
import com.github.firnid.client.Client;
import com.github.firnid.client.Sequencer;
import com.github.yitter.contract.IdGeneratorOptions;
import com.github.yitter.idgen.DefaultIdGenerator;
import com.hazelcast.config.Config;
import com.hazelcast.config.FlakeIdGeneratorConfig;
import com.hazelcast.core.Hazelcast;
import com.xfvape.uid.exception.UidGenerateException;
import com.xfvape.uid.impl.CachedUidGenerator;
import io.hypersistence.tsid.TSID;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;
import java.util.function.Supplier;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/**
 * A generator beside AtomicLong: "NAME URL", where URL is a firn serve with the default layout. It prints the time of
 * an ID in times that of incrementAndGet, with one thread and with two, and the milliseconds by which the last ID is
 * ahead of the clock after a second flat out. The JVM runs only one, so that calls are inlined as in an application.
 */
public class Peers {
  static final int WARM_UP = 40, ROUNDS = 200;
  static final int SLICE = 25_000; // a quarter of the client's block: the next one is not fetched yet
  static volatile long sink;

  /**
   * A generator. Speed returns one for a slice, with so wide a sequence that it need not wait. Usual returns one with
   * its defaults, and millis the time of an ID of that.
   */
  record Peer(Supplier<LongSupplier> speed, Supplier<LongSupplier> usual, LongUnaryOperator millis) {
    Peer(LongSupplier both, LongUnaryOperator millis) {
      this(() -> both, () -> both, millis);
    }
  }

  static Peer peer(String name, String url) throws Exception {
    switch (name) {
      case "firn":
        Client warm = Client.builder().servers(List.of(url)).firstBatch(100_000).maxBatch(100_000).build();
        AtomicInteger names = new AtomicInteger();
        Sequencer usual = Client.builder().servers(List.of(url)).build().sequencer("usual");
        return new Peer(() -> {
          Sequencer s = warm.sequencer("warm" + names.incrementAndGet() % 4);
          s.next();
          return s::next;
        }, () -> usual::next, id -> (id >>> 22) + 1767225600000L);
      case "cosid-segment-chain":
        return new Peer(new SegmentChainId(new IdSegmentDistributor.Atomic(1000))::generate, null);
      case "cosid-millisecond":
        MillisecondSnowflakeId wide = new MillisecondSnowflakeId(1767225600000L, 41, 5, 17, 1);
        MillisecondSnowflakeId cosid = new MillisecondSnowflakeId(1);
        return new Peer(() -> wide::generate, () -> cosid::generate, id -> (id >>> 22) + cosid.getEpoch());
      case "uid-generator":
        CachedUidGenerator uid = new CachedUidGenerator();
        uid.setWorkerIdAssigner(() -> 1);
        uid.setTimeBits(29); // the default of 28 ended in 2024
        uid.setWorkerBits(21);
        uid.afterPropertiesSet();
        return new Peer(() -> {
          while (true) {
            try {
              return uid.getUID();
            } catch (UidGenerateException e) { // its buffer is empty
              Thread.onSpinWait();
            }
          }
        }, id -> ((id >>> 34) + 1463673600L) * 1000);
      case "tsid":
        TSID.Factory tsid = new TSID.Factory(1);
        return new Peer(() -> tsid.generate().toLong(), id -> (id >>> 22) + 1577836800000L);
      case "tsid-creator":
        TsidFactory creator = new TsidFactory(1);
        return new Peer(() -> creator.create().toLong(), id -> (id >>> 22) + 1577836800000L);
      case "yitter":
        IdGeneratorOptions bits = new IdGeneratorOptions((short) 1);
        bits.WorkerIdBitLength = 5;
        bits.SeqBitLength = 17;
        DefaultIdGenerator drift = new DefaultIdGenerator(bits);
        IdGeneratorOptions defaults = new IdGeneratorOptions((short) 1);
        // A second generator replaces the first in the whole JVM.
        return new Peer(() -> drift::newLong, () -> new DefaultIdGenerator(defaults)::newLong, id -> (id >>> 12) + defaults.BaseTime);
      case "hazelcast-member":
        Config c = new Config().setProperty("hazelcast.phone.home.enabled", "false").setProperty("hazelcast.logging.type", "none");
        c.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
        c.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        c.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        c.addFlakeIdGeneratorConfig(new FlakeIdGeneratorConfig("wide").setBitsSequence(20).setBitsNodeId(2));
        var member = Hazelcast.newHazelcastInstance(c);
        return new Peer(() -> member.getFlakeIdGenerator("wide")::newId, () -> member.getFlakeIdGenerator("usual")::newId,
            id -> (id >>> 22) + 1514764800000L);
      default:
        throw new IllegalArgumentException(name);
    }
  }

  public static void main(String[] args) throws Exception {
    Peer peer = peer(args[0], args[1]);
    System.out.print(ratio(peer, 1) + " " + ratio(peer, 2));
    LongSupplier usual = peer.usual().get();
    long last = 0;
    for (long begin = System.nanoTime(); System.nanoTime() - begin < 1_000_000_000L; ) {
      for (int i = 0; i < 100; i++) {
        last = usual.getAsLong();
      }
    }
    long now = System.currentTimeMillis();
    System.out.println(" " + (peer.millis() == null ? "NaN" : peer.millis().applyAsLong(last) - now));
    System.exit(0);
  }

  /** The median of the ratios of slices that take turns. */
  static double ratio(Peer peer, int threads) throws InterruptedException {
    AtomicLong counter = new AtomicLong();
    double[] all = new double[ROUNDS];
    for (int round = -WARM_UP; round < ROUNDS; round++) {
      double x = measure(threads, peer.speed().get()) / measure(threads, counter::incrementAndGet);
      if (round >= 0) {
        all[round] = x;
      }
    }
    Arrays.sort(all);
    return all[ROUNDS / 2];
  }

  /** Takes a slice, shared by threads that begin at once. */
  static double measure(int threads, LongSupplier ids) throws InterruptedException {
    AtomicInteger missing = new AtomicInteger(threads);
    long[] took = new long[threads];
    Thread[] all = new Thread[threads];
    for (int t = 0; t < threads; t++) {
      int own = t;
      all[t] = new Thread(() -> {
        missing.decrementAndGet();
        while (missing.get() > 0) {
          Thread.onSpinWait();
        }
        long begin = System.nanoTime(), x = 0;
        for (int i = SLICE / threads; i > 0; i--) {
          x += ids.getAsLong();
        }
        took[own] = System.nanoTime() - begin;
        sink = x;
      });
      all[t].start();
    }
    for (Thread thread : all) {
      thread.join();
    }
    return Arrays.stream(took).max().getAsLong();
  }
}
