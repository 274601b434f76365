import com.github.firnid.client.Client;
import com.github.firnid.client.FirnException;
import com.github.firnid.client.Sequencer;
import com.github.firnid.client.Sequencer128;
import com.github.firnid.client.ServerStatus;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.StringJoiner;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The driver of the conformance suite in server/internal/test/conformance, which documents the commands.
 *
 * <pre>java -cp firn-client.jar Driver.java --servers A,B --sequencer NAME [--token-file F] [--ca FILE] [--wide]
 *     [--patient] [--timeout S] [--patience S]</pre>
 */
final class Driver {
    /** What sequencers of both widths have in common; an ID is a Long or a UUID. */
    interface Source {
        Object next();

        List<?> take(int n);
    }

    private final Client client;
    private final Source source;

    private Driver(String[] args) {
        Client.Builder b = Client.builder();
        String name = "";
        boolean wide = false;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--servers" -> b.servers(List.of(args[++i].split(",")));
                case "--sequencer" -> name = args[++i];
                case "--token-file" -> {
                    Path file = Path.of(args[++i]);
                    b.token(() -> read(file));
                }
                case "--ca" -> b.ca(Path.of(args[++i]));
                case "--wide" -> wide = true;
                case "--patient" -> b.timeout(Duration.ofMinutes(10)).patience(Duration.ofMinutes(10));
                case "--timeout" -> b.timeout(seconds(args[++i]));
                case "--patience" -> b.patience(seconds(args[++i]));
                default -> throw new IllegalArgumentException("unknown argument " + args[i]);
            }
        }
        client = b.build();
        source = wide ? wide(client.sequencer128(name)) : narrow(client.sequencer(name));
    }

    private static Duration seconds(String text) {
        return Duration.ofMillis(Math.round(1000 * Double.parseDouble(text)));
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Source narrow(Sequencer s) {
        return new Source() {
            @Override
            public Object next() {
                return s.next();
            }

            @Override
            public List<?> take(int n) {
                return Arrays.stream(s.take(n)).boxed().toList();
            }
        };
    }

    private static Source wide(Sequencer128 s) {
        return new Source() {
            @Override
            public Object next() {
                return s.next();
            }

            @Override
            public List<?> take(int n) {
                return List.of(s.take(n));
            }
        };
    }

    public static void main(String[] args) throws Exception {
        Driver d = new Driver(args);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String answer;
            try {
                answer = d.answer(line.strip().split("\\s+"));
            } catch (Exception e) {
                answer = "error " + e.getClass().getSimpleName() + " " + String.valueOf(e.getMessage()).replaceAll("\\R", " ");
            }
            System.out.println(answer);
            if (line.strip().equals("close")) {
                return;
            }
        }
    }

    private String answer(String[] command) throws Exception {
        switch (command[0]) {
            case "next" -> {
                List<Object> ids = new ArrayList<>();
                for (int i = 0; i < Integer.parseInt(command[1]); i++) {
                    ids.add(source.next());
                }
                return ok(ids);
            }
            case "take" -> {
                return ok(source.take(Integer.parseInt(command[1])));
            }
            case "burst" -> {
                return "ok " + burst(Integer.parseInt(command[1]), Integer.parseInt(command[2]), Path.of(command[3]));
            }
            case "fork" -> {
                return "skip"; // Java programs do not fork
            }
            case "stats" -> {
                return "ok " + stats();
            }
            case "close" -> {
                client.close();
                return "ok";
            }
            default -> throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private static String ok(List<?> ids) {
        StringJoiner all = new StringJoiner(" ");
        all.add("ok");
        ids.forEach(id -> all.add(id instanceof Long n ? Long.toUnsignedString(n) : id.toString()));
        return all.toString();
    }

    /** Draws n IDs in each of t threads, and returns how many milliseconds the longest call took. */
    private long burst(int n, int t, Path file) throws Exception {
        AtomicLong longest = new AtomicLong();
        ExecutorService pool = Executors.newFixedThreadPool(t);
        try {
            List<Callable<ByteBuffer>> tasks = new ArrayList<>();
            for (int k = 0; k < t; k++) {
                tasks.add(() -> {
                    ByteBuffer ids = ByteBuffer.allocate(16 * n);
                    for (int i = 0; i < n; i++) {
                        long start = System.nanoTime();
                        Object id = source.next();
                        longest.accumulateAndGet(System.nanoTime() - start, Math::max);
                        if (id instanceof UUID u) {
                            ids.putLong(u.getMostSignificantBits()).putLong(u.getLeastSignificantBits());
                        } else {
                            ids.putLong((Long) id);
                        }
                    }
                    return ids.flip();
                });
            }
            List<Future<ByteBuffer>> all = pool.invokeAll(tasks);
            try (var out = Files.newByteChannel(
                    file, java.nio.file.StandardOpenOption.CREATE, java.nio.file.StandardOpenOption.TRUNCATE_EXISTING,
                    java.nio.file.StandardOpenOption.WRITE)) {
                for (Future<ByteBuffer> f : all) {
                    try {
                        out.write(f.get());
                    } catch (java.util.concurrent.ExecutionException e) {
                        if (e.getCause() instanceof FirnException failed) {
                            throw failed;
                        }
                        throw e;
                    }
                }
            }
        } finally {
            pool.shutdown();
        }
        return TimeUnit.NANOSECONDS.toMillis(longest.get());
    }

    private String stats() {
        StringJoiner all = new StringJoiner(",", "{\"servers\":[", "]}");
        for (ServerStatus s : client.servers()) {
            all.add("{\"server\":\"" + s.server() + "\",\"failures\":" + s.failures() + ",\"suspect\":"
                    + (s.error() != null) + "}");
        }
        return all.toString();
    }
}
