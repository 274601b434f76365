import java.util.HashSet;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisException;

/** Uses Jedis as its documentation does: java -cp 'lib/*' JedisClient.java PORT. */
public class JedisClient {
  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    try (Jedis j = new Jedis("localhost", port)) {
      check("PONG".equals(j.ping()), "PING");
      long one = j.incr("orders"), two = j.incrBy("orders", 1);
      check(0 < one && one < two, one + ", then " + two);
      fails("NEXT orders 5", () -> j.incrBy("orders", 5));
      fails("unknown command 'DECR'", () -> j.decr("orders"));
      String next = new String((byte[]) j.sendCommand(() -> "NEXT".getBytes(), "orders"));
      check(Long.parseLong(next) > two, next);
      var tx = j.multi();
      var of = tx.incr("orders");
      tx.incrBy("orders", 1);
      var answers = tx.exec();
      check(answers.size() == 2 && of.get().equals(answers.get(0)) && of.get() > two, "MULTI: " + answers);
      fails("EXECABORT", () -> {
        var bad = j.multi();
        bad.incr("orders");
        bad.incrBy("orders", 5);
        bad.exec();
      });
      var given = j.multi();
      given.incr("orders");
      check("OK".equals(given.discard()), "DISCARD");
      var p = j.pipelined();
      Set<Object> many = new HashSet<>();
      for (int i = 0; i < 1000; i++) p.incr("orders");
      many.addAll(p.syncAndReturnAll());
      check(many.size() == 1000, many.size() + " IDs of 1000 commands");
      check("master".equals(j.role().get(0)), "ROLE");
      check(j.clientInfo().startsWith("id="), "CLIENT");
      check(j.command().containsKey("next"), "COMMAND");
      check(j.commandInfo("NEXT").get("next").getFirstKey() == 1, "COMMAND INFO");
      check(j.info().contains("firn_version"), "INFO");
    }
    for (RedisProtocol protocol : RedisProtocol.values()) {
      var config = DefaultJedisClientConfig.builder().protocol(protocol).clientName("test").build();
      try (RedisClient c = RedisClient.builder().hostAndPort("localhost", port).clientConfig(config).build()) {
        long one = c.incr("orders");
        try (var tx = c.multi()) {
          var two = tx.incr("orders");
          tx.exec();
          check(two.get() > one, "a pool's transaction");
        }
      }
    }
    // A cluster is another thing.
    fails("", () -> {
      try (var c = RedisClusterClient.builder().nodes(Set.of(new HostAndPort("127.0.0.1", port))).build()) {
        c.incr("orders");
      }
    });
    System.out.println("ok Jedis");
  }

  static void check(boolean right, String what) {
    if (!right) throw new AssertionError(what);
  }

  static void fails(String text, Runnable call) {
    try {
      call.run();
    } catch (JedisException e) {
      check(e.getMessage().contains(text), e.getMessage());
      return;
    }
    throw new AssertionError("there is no error: " + text);
  }
}
