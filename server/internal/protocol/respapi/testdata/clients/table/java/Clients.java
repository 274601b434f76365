import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.logging.LogManager;
import org.redisson.Redisson;
import org.redisson.config.Config;
import redis.clients.jedis.Connection;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.csc.CacheConfig;

/** Clients for Java: Clients CLIENT PORT. */
public class Clients {
  static int port;

  interface Call {
    Object call(String... args) throws Exception;
  }

  interface Incr {
    Object incr() throws Exception;
  }

  static void run(Call next, Incr incr) throws Exception {
    Thread.sleep(1000 * Integer.parseInt(System.getenv("SILENT")));
    System.out.println("next " + text(next.call("orders")));
    System.out.println("three " + text(next.call("orders", "3")));
    for (int i = 0; i < 100; i++) System.out.println("incr " + incr.incr());
  }

  static String text(Object o) {
    if (o instanceof byte[] b) return new String(b);
    if (o instanceof Object[] a) o = List.of(a);
    if (o instanceof io.vertx.redis.client.Response r && r.type() == io.vertx.redis.client.ResponseType.BULK) return r.toString();
    if (o instanceof Iterable<?> l) {
      var all = new StringBuilder();
      for (Object e : l) all.append(text(e)).append(' ');
      return all.toString().trim();
    }
    return String.valueOf(o);
  }

  static void lettuce(StatefulRedisConnection<String, String> c) throws Exception {
    ProtocolKeyword next = () -> "NEXT".getBytes();
    run(a -> {
      var args = new CommandArgs<>(StringCodec.UTF8).addKey(a[0]);
      return a.length == 1
          ? c.sync().dispatch(next, new ValueOutput<>(StringCodec.UTF8), args)
          : c.sync().dispatch(next, new ArrayOutput<>(StringCodec.UTF8), args.add(a[1]));
    }, () -> c.sync().incr("orders"));
  }

  static void jedis(UnifiedJedis j) throws Exception {
    run(a -> j.sendCommand(() -> "NEXT".getBytes(), a), () -> j.incr("orders"));
  }

  public static void main(String[] args) throws Exception {
    LogManager.getLogManager().reset();
    port = Integer.parseInt(args[1]);
    var uri = RedisURI.create("redis://127.0.0.1:" + port);
    try {
      switch (args[0]) {
        case "jedis" -> {
          var j = new Jedis("127.0.0.1", port);
          j.connect();
          run(a -> j.sendCommand(() -> "NEXT".getBytes(), a), () -> j.incr("orders"));
        }
        case "jedis-pool" -> jedis(RedisClient.create("127.0.0.1", port));
        case "jedis-cache" -> jedis(RedisClient.builder().hostAndPort("127.0.0.1", port)
            .clientConfig(redis.clients.jedis.DefaultJedisClientConfig.builder().resp3().build())
            .cacheConfig(CacheConfig.builder().maxSize(10).build()).build());
        case "jedis-cluster" -> {
          redis.clients.jedis.RedisClusterClient.create(Set.of(new HostAndPort("127.0.0.1", port))).incr("orders");
          System.out.println("next");
        }
        case "jedis-sentinel" -> {
          RedisSentinelClient.builder().masterName("m").sentinels(Set.of(new HostAndPort("127.0.0.1", port))).build().incr("orders");
          System.out.println("next");
        }
        case "lettuce" -> lettuce(io.lettuce.core.RedisClient.create(uri).connect());
        case "lettuce-cache" -> {
          var c = io.lettuce.core.RedisClient.create(uri).connect();
          ClientSideCaching.enable(CacheAccessor.forMap(new ConcurrentHashMap<String, String>()), c, TrackingArgs.Builder.enabled());
          lettuce(c);
        }
        case "lettuce-cluster" -> {
          RedisClusterClient.create(uri).connect().sync().incr("orders");
          System.out.println("next");
        }
        case "lettuce-sentinel" -> {
          io.lettuce.core.RedisClient.create(RedisURI.Builder.sentinel("127.0.0.1", port, "m").build()).connect().sync().incr("orders");
          System.out.println("next");
        }
        case "redisson" -> {
          var config = new Config();
          config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
          var r = Redisson.create(config);
          var counter = r.getAtomicLong("orders");
          System.out.println("none");
          System.out.println("other `getAndIncrement` " + counter.getAndIncrement());
          for (int i = 0; i < 100; i++) System.out.println("incr " + counter.incrementAndGet());
        }
        case "vertx" -> {
          var vertx = io.vertx.core.Vertx.vertx();
          var api = io.vertx.redis.client.RedisAPI.api(io.vertx.redis.client.Redis.createClient(vertx, "redis://127.0.0.1:" + port));
          var next = io.vertx.redis.client.Command.create("NEXT");
          run(a -> api.send(next, a).toCompletionStage().toCompletableFuture().get(),
              () -> api.incr("orders").toCompletionStage().toCompletableFuture().get());
        }
        case "glide" -> {
          var r = glide.api.GlideClient.createClient(glide.api.models.configuration.GlideClientConfiguration.builder()
              .address(glide.api.models.configuration.NodeAddress.builder().host("127.0.0.1").port(port).build()).build()).get();
          run(a -> r.customCommand(a.length == 1 ? new String[] {"NEXT", a[0]} : new String[] {"NEXT", a[0], a[1]}).get(),
              () -> r.incr("orders").get());
        }
        default -> throw new IllegalArgumentException(args[0]);
      }
    } catch (Throwable e) {
      System.out.println("error " + e);
    }
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
