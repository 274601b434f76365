import java.util.List;
import java.util.logging.LogManager;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Spring Data Redis: Spring lettuce|lettuce-typed|jedis PORT. */
public class Spring {
  static String text(Object o) {
    if (o instanceof byte[] b) return new String(b);
    if (!(o instanceof List<?> l)) return String.valueOf(o);
    var all = new StringBuilder();
    for (Object e : l) all.append(text(e)).append(' ');
    return all.toString().trim();
  }

  static Object next(RedisConnection c, String client, byte[]... args) {
    if (client.equals("lettuce-typed") && args.length > 1) {
      return ((LettuceConnection) c).execute("NEXT", new io.lettuce.core.output.ArrayOutput<>(io.lettuce.core.codec.ByteArrayCodec.INSTANCE), args);
    }
    return c.execute("NEXT", args);
  }

  public static void main(String[] args) throws Exception {
    LogManager.getLogManager().reset();
    var where = new RedisStandaloneConfiguration("127.0.0.1", Integer.parseInt(args[1]));
    try {
      RedisConnectionFactory factory;
      if (args[0].equals("jedis")) {
        var f = new JedisConnectionFactory(where);
        f.afterPropertiesSet();
        f.start();
        factory = f;
      } else {
        var f = new LettuceConnectionFactory(where);
        f.afterPropertiesSet();
        f.start();
        factory = f;
      }
      RedisConnection c = factory.getConnection();
      Thread.sleep(1000 * Integer.parseInt(System.getenv("SILENT")));
      System.out.println("next " + text(next(c, args[0], "orders".getBytes())));
      System.out.println("three " + text(next(c, args[0], "orders".getBytes(), "3".getBytes())));
      var template = new StringRedisTemplate(factory);
      for (int i = 0; i < 100; i++) System.out.println("incr " + template.opsForValue().increment("orders"));
    } catch (Throwable e) {
      System.out.println("error " + e);
      for (var cause = e.getCause(); cause != null; cause = cause.getCause()) System.out.println("cause " + cause);
    }
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
