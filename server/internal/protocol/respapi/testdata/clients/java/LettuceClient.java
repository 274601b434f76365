import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.masterreplica.MasterReplica;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.logging.LogManager;

/** Uses Lettuce as its documentation does: java -cp 'lib/*' LettuceClient.java PORT. */
public class LettuceClient {
  static final ProtocolKeyword NEXT = new ProtocolKeyword() {
    public byte[] getBytes() {
      return "NEXT".getBytes();
    }
  };

  public static void main(String[] args) throws Exception {
    LogManager.getLogManager().reset(); // a server that is down is logged
    for (ProtocolVersion version : ProtocolVersion.values()) {
      RedisClient client = RedisClient.create(RedisURI.create("redis://localhost:" + args[0]));
      client.setOptions(ClientOptions.builder().protocolVersion(version).build());
      var connection = client.connect();
      var s = connection.sync();
      long one = s.incr("orders"), two = s.incrby("orders", 1);
      check(0 < one && one < two, one + ", then " + two);
      fails("NEXT orders 5", () -> s.incrby("orders", 5));
      String next = s.dispatch(NEXT, new ValueOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8).addKey("orders"));
      check(Long.parseLong(next) > two, next);
      s.multi();
      s.incr("orders");
      s.incrby("orders", 1);
      var answers = s.exec();
      check(answers.size() == 2 && (Long) answers.get(0) < (Long) answers.get(1), "MULTI: " + answers);
      s.multi();
      s.incr("orders");
      s.incrby("orders", 5); // it does not look at the answer before EXEC
      fails("EXECABORT", s::exec);
      s.multi();
      s.incr("orders");
      check("OK".equals(s.discard()), "DISCARD");
      List<RedisFuture<Long>> asked = new ArrayList<>();
      for (int i = 0; i < 1000; i++) asked.add(connection.async().incr("orders"));
      Set<Long> many = new HashSet<>();
      for (var f : asked) many.add(f.get());
      check(many.size() == 1000, many.size() + " IDs of 1000 commands");
      check("master".equals(s.role().get(0)), "ROLE");
      check(s.clientInfo().contains("lib-name=Lettuce"), "CLIENT");
      check(s.command().size() > 15 && s.info().contains("firn_version"), "COMMAND, INFO");
      connection.close();
      client.shutdown();
    }
    // Of several servers it takes one that is up.
    RedisClient client = RedisClient.create();
    var uris = List.of(RedisURI.create("redis://127.0.0.1:1"), RedisURI.create("redis://127.0.0.1:" + args[0]));
    check(MasterReplica.connect(client, StringCodec.UTF8, uris).sync().incr("orders") > 0, "several servers");
    client.shutdown();
    System.out.println("ok Lettuce");
  }

  static void check(boolean right, String what) {
    if (!right) throw new AssertionError(what);
  }

  static void fails(String text, Runnable call) {
    try {
      call.run();
    } catch (RedisCommandExecutionException e) {
      check(e.getMessage().contains(text), e.getMessage());
      return;
    }
    throw new AssertionError("there is no error: " + text);
  }
}
