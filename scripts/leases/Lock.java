import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.Executors;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import net.javacrumbs.shedlock.support.KeepAliveLockProvider;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.test.TestingServer;
import org.postgresql.ds.PGSimpleDataSource;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.config.Config;

/** Holds a lock of a library for Java, or waits for one. */
class Lock {
    static void say(String text) {
        System.out.println(text.replace('\n', ' '));
        System.out.flush();
    }

    /** Works until the thread is interrupted. */
    static void work() {
        say("HAVE");
        try {
            Thread.sleep(200_000);
        } catch (InterruptedException e) {
            say("TOLD thread interrupted");
        }
    }

    public static void main(String[] args) throws Exception {
        String name = args[0], who = args[1], address = args[2], key = args[3];
        switch (name) {
            case "zookeeper" -> {
                new TestingServer(Integer.parseInt(address.split(":")[1]), true);
                say("READY");
                Thread.sleep(10_000_000);
            }
            case "redisson" -> {
                Config config = new Config();
                config.useSingleServer().setAddress("redis://" + address);
                RLock lock = Redisson.create(config).getLock(key);
                lock.lock();
                work();
            }
            case "redisson-asks" -> {
                Config config = new Config();
                config.useSingleServer().setAddress("redis://" + address);
                RLock lock = Redisson.create(config).getLock(key);
                lock.lock();
                say("HAVE");
                for (;;) {
                    Thread.sleep(1000);
                    try {
                        if (!lock.isHeldByCurrentThread()) {
                            say("TOLD isHeldByCurrentThread is false");
                            Thread.sleep(1_000_000);
                        }
                    } catch (RuntimeException e) {
                        say("TOLD isHeldByCurrentThread throws " + e.getClass().getSimpleName());
                        Thread.sleep(1_000_000);
                    }
                }
            }
            case "shedlock" -> {
                PGSimpleDataSource source = new PGSimpleDataSource();
                source.setUrl("jdbc:postgresql://" + address + "/postgres?user=postgres");
                try (var c = source.getConnection(); var s = c.createStatement()) {
                    s.execute("create table if not exists shedlock(name varchar(64) primary key, lock_until timestamp not null, "
                            + "locked_at timestamp not null, locked_by varchar(255) not null)");
                }
                var provider = new KeepAliveLockProvider(
                        new JdbcTemplateLockProvider(source), Executors.newScheduledThreadPool(1));
                var executor = new DefaultLockingTaskExecutor(provider);
                for (;;) {
                    var lock = new LockConfiguration(Instant.now(), key, Duration.ofSeconds(30), Duration.ZERO);
                    executor.executeWithLock((Runnable) Lock::work, lock);
                    Thread.sleep(100);
                }
            }
            case "curator" -> {
                CuratorFramework client = CuratorFrameworkFactory.newClient(address, new ExponentialBackoffRetry(1000, 3));
                client.start();
                new LeaderSelector(client, "/" + key, new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework c) {
                        work();
                    }
                }).start();
                Thread.sleep(1_000_000);
            }
        }
    }
}
