package com.github.firnid.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Many calls at once: what they cost the program and its servers, and where their results arrive. */
@Timeout(300)
class BurstTest {
    private static final Duration LONG = Duration.ofMinutes(5);

    private final TestServer server = new TestServer(1);
    private final Client client = patient(server.url);

    private static Client patient(String url) {
        return Client.builder().servers(List.of(url)).timeout(LONG).patience(LONG).build();
    }

    @AfterEach
    void close() {
        client.close();
        server.close();
    }

    /** What a program does ten thousand times at once. */
    private static final Map<String, Function<Sequencer, CompletableFuture<?>>> CALLS = new LinkedHashMap<>();

    static {
        CALLS.put("nextAsync", s -> s.nextAsync().thenApply(id -> "" + id));
        CALLS.put("takeAsync", s -> s.takeAsync(5).thenApply(ids -> ids.length));
        CALLS.put("chained", s -> s.nextAsync().thenCompose(id -> s.nextAsync()).thenCompose(id -> s.takeAsync(1)));
        CALLS.put("pairs", s -> s.takeAsync(1).thenCompose(ids -> {
            CompletableFuture<Long> one = s.nextAsync();
            CompletableFuture<Long> other = s.nextAsync();
            return one.thenApply(id -> id + other.join());
        }));
        CALLS.put("waiting", s -> s.nextAsync().thenApply(id -> s.nextAsync().thenApply(x -> s.nextAsync().join()).join()));
        CALLS.put("cancelled", s -> s.takeAsync(1));
        CALLS.put("expired", s -> s.takeAsync(1));
    }

    /** On a machine with one or two processors, the JDK's common pool starts a thread for each task. */
    @ParameterizedTest
    @CsvSource({
        "1, nextAsync, 10000, 20", "2, nextAsync, 10000, 20", "1, takeAsync, 3000, 20", "2, takeAsync, 3000, 20",
        "1, chained, 1000, 40", "1, pairs, 200, 300", "1, waiting, 500, 100"
    })
    void threads(int processors, String call, int calls, int most) throws Exception {
        Process p = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:ActiveProcessorCount=" + processors, "-cp", System.getProperty("java.class.path"),
                        Program.class.getName(), server.url, call, "" + calls)
                .redirectErrorStream(true)
                .start();
        String text = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        assertTrue(text.matches("[0-9]+"), text);
        assertTrue(Integer.parseInt(text) <= most, text + " threads");
    }

    /** Calls that are given up together send no requests one after the other. */
    @ParameterizedTest
    @ValueSource(strings = {"cancelled", "expired"})
    void givenUp(String call) throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        TestServer.Handler hang = server.hang(end);
        server.handler = r -> r.head().contains("/orders/") ? hang.answer(r) : server.ids(r);
        threads(1, call, 10_000, 100);
        int requests = server.requests.get();
        end.countDown();
        assertTrue(requests < 2000, requests + " requests");
    }

    static final class Program {
        private Program() {}

        /** Prints the number of threads beyond those of an idle program. */
        public static void main(String[] args) throws Exception {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            int idle = threads.getThreadCount();
            threads.resetPeakThreadCount();
            Duration patience = args[1].equals("expired") ? Duration.ofSeconds(2) : LONG;
            try (Client c = Client.builder().servers(List.of(args[0])).timeout(LONG).patience(patience).build()) {
                Sequencer orders = c.sequencer("orders");
                List<CompletableFuture<?>> all = new ArrayList<>();
                for (int i = 0; i < Integer.parseInt(args[2]); i++) {
                    all.add(CALLS.get(args[1]).apply(orders));
                }
                if (args[1].equals("cancelled")) {
                    all.forEach(f -> f.cancel(true));
                    c.sequencer("other").take(1);
                } else if (args[1].equals("expired")) {
                    List<String> errors = all.stream().map(f -> f.handle((ids, e) -> e.getMessage()).join()).toList();
                    assertTrue(errors.get(0).contains("no answer"), errors.get(0));
                    long waited = errors.stream().filter(e -> e.contains("other calls of this client")).count();
                    assertTrue(waited > 5000, waited + " calls say that they only waited");
                } else {
                    for (CompletableFuture<?> f : all) {
                        f.get();
                    }
                }
            }
            System.out.println(threads.getPeakThreadCount() - idle);
        }
    }

    /** Calls of take wait in line, and those of next pass them. */
    @Test
    void requestsOfAServerAreBounded() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        CountDownLatch full = new CountDownLatch(10);
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        server.handler = r -> {
            if (r.head().contains("/orders/")) {
                most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                full.countDown();
                go.await();
                inside.decrementAndGet();
            }
            return server.ids(r);
        };
        Sequencer orders = client.sequencer("orders");
        List<CompletableFuture<long[]>> all = IntStream.range(0, 200).mapToObj(i -> orders.takeAsync(1)).toList();
        CompletableFuture<long[]> cancelled = orders.takeAsync(1);
        cancelled.cancel(true);
        full.await();
        client.sequencer("other").next();
        assertEquals(10, inside.get());
        go.countDown();
        long ids = 0;
        for (CompletableFuture<long[]> f : all) {
            ids += f.get().length;
        }
        assertEquals(200, ids);
        assertEquals(10, most.get());
        assertEquals(201, server.requests.get());
    }

    /** Code of the caller runs neither in the thread of a timer nor in that of a request. */
    @Test
    void callbacksHaveThreadsOfTheirOwn() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        Map<String, TestServer.Handler> answers = new LinkedHashMap<>();
        answers.put("ids", server::ids);
        answers.put("refused", r -> TestServer.problem(404, "no-sequencer", ""));
        answers.put("closed", server::ids);
        server.handler = r -> {
            go.await();
            return answers.get(r.head().replaceFirst("(?s)^POST /v1/sequencers/(\\w+)/.*", "$1")).answer(r);
        };
        List<CompletableFuture<Void>> ran = new ArrayList<>();
        for (String name : answers.keySet()) {
            Sequencer s = client.sequencer(name);
            for (CompletableFuture<?> f : List.of(s.nextAsync(), s.takeAsync(1))) {
                ran.add(f.handle((ids, e) -> {
                    assertEquals(!name.equals("ids"), e instanceof FirnException, name);
                    assertEquals("firn-client-callback", Thread.currentThread().getName());
                    return null;
                }));
            }
        }
        client.sequencer("closed").close();
        go.countDown();
        for (CompletableFuture<Void> f : ran) {
            f.get();
        }
    }

    /** A callback that never returns delays only other callbacks. */
    @Test
    void aCallbackThatWaitsDelaysNoCall() throws Exception {
        CountDownLatch begun = new CountDownLatch(4);
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch attached = new CountDownLatch(1); // a result that is there runs callbacks in this thread
        server.handler = r -> {
            attached.await();
            return server.ids(r);
        };
        Sequencer orders = client.sequencer("orders");
        for (int i = 0; i < 8; i++) {
            orders.takeAsync(1).thenAccept(ids -> {
                begun.countDown();
                try {
                    end.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
        }
        attached.countDown();
        begun.await();
        orders.take(1);
        orders.next();
        end.countDown();
    }

    /** The failure of a fetch answers the calls that waited when it began, and no later one. */
    @Test
    void aFailureAnswersOlderCalls() throws Exception {
        CountDownLatch arrived = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        server.handler = r -> {
            arrived.countDown();
            go.await();
            return server.requests.get() == 1 ? TestServer.problem(404, "no-sequencer", "") : server.ids(r);
        };
        Sequencer orders = client.sequencer("orders");
        CompletableFuture<Long> first = orders.nextAsync();
        arrived.await();
        CompletableFuture<Long> later = orders.nextAsync();
        go.countDown();
        assertThrows(Exception.class, first::get);
        assertTrue(later.get() > 0);
    }

    @Test
    void moreThanARequestHolds() throws Exception {
        Sequencer orders = client.sequencer("orders");
        long[] ids = orders.take(250_001);
        assertEquals(250_001, Arrays.stream(ids).distinct().count());
        assertEquals(List.of(100_000, 100_000, 50_001), server.seen.stream().map(TestServer.Request::count).toList());
        assertEquals(100_001, orders.takeAsync(100_001).get().length);
    }

    private Core core() {
        return ((Remote) client.sequencer("orders")).core;
    }

    /** A task that was cancelled while it waited for the lock would act for a call that has gone on. */
    @Test
    void aCancelledTimerDoesNotRun() throws Exception {
        Core core = core();
        AtomicInteger ran = new AtomicInteger();
        synchronized (core) {
            Future<?> timer = core.after(0, ran::incrementAndGet);
            while (Thread.getAllStackTraces().keySet().stream()
                    .noneMatch(t -> t.getName().equals("firn-client") && t.getState() == Thread.State.BLOCKED)) {
                Thread.sleep(1);
            }
            timer.cancel(false);
        }
        CountDownLatch next = new CountDownLatch(1);
        core.after(0, next::countDown);
        next.await();
        assertEquals(0, ran.get());
    }

    @Test
    void aResultArrivesOnceThereIsAThread() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        CompletableFuture<Integer> result = new CompletableFuture<>();
        core().complete(task -> {
            if (asked.incrementAndGet() < 3) {
                throw new OutOfMemoryError("unable to create native thread");
            }
            task.run();
        }, result, () -> 5);
        assertEquals(5, result.get());
    }

    private static Roster roster(AtomicLong now) {
        Options o = new Options();
        o.servers = List.of("a", "b");
        return new Roster(o, new Clock() {
            @Override
            public long nanos() {
                return now.get();
            }

            @Override
            public long millis() {
                return TimeUnit.NANOSECONDS.toMillis(now.get());
            }
        });
    }

    /** Another server is asked if a request takes long, however many others this one answers meanwhile. */
    @Test
    void whenAServerIsLate() {
        long ms = TimeUnit.MILLISECONDS.toNanos(1);
        AtomicLong now = new AtomicLong(ms);
        Roster.View view = roster(now).new View();
        FirnException silence = new FirnException("a", "no answer", null);
        assertEquals(200 * ms, view.hedgeAfter());
        now.addAndGet(150 * ms);
        assertFalse(view.worked(0, ms, false));
        now.addAndGet(49 * ms);
        view.late(0, ms, silence);
        assertEquals(null, view.error(0), "a call with little time proves nothing");
        now.addAndGet(ms);
        view.late(0, ms, silence);
        assertEquals(silence, view.error(0));
        for (int i = 0; i < 50; i++) {
            now.addAndGet(150 * ms);
            view.worked(0, now.get() - 150 * ms, false);
        }
        assertTrue(view.hedgeAfter() > 290 * ms, "one that always takes long is slow");
    }

    /** A state changes, and is logged, once, however many requests were in progress. */
    @Test
    void aFailureOutlastsOlderRequests() {
        AtomicLong now = new AtomicLong(1);
        Roster.View view = roster(now).new View();
        FirnException refused = new FirnException("a", "refused", new java.io.IOException());
        FirnException silence = new FirnException("a", "no answer", null);
        for (int i = 0; i < 3; i++) {
            now.incrementAndGet();
            assertEquals(i == 0, view.failed(0, 1, true, 0, refused));
            now.incrementAndGet();
            assertFalse(view.worked(0, 1, false), "a request that was sent before the failure");
        }
        view.late(0, -TimeUnit.HOURS.toNanos(1), silence);
        assertEquals(refused, view.error(0), "silence says less than the reason known");
        assertTrue(view.worked(0, now.get(), false));
        assertEquals(null, view.error(0));
    }

    /** A call that only waited in line says so, also if it had to wait for the fetch of another call before. */
    @Test
    void theLineIsTheReason() {
        Options options = new Options();
        options.servers = List.of(server.url);
        options.patience = Duration.ofMillis(50);
        Core core = new Core(options.check(), Clock.SYSTEM);
        core.gate.inside = 64; // for ever
        try (Sequencer s = new RemoteSequencer(core, "orders", new HashMap<>())) {
            for (Future<?> f : List.of(s.nextAsync(), s.nextAsync(), s.takeAsync(1))) {
                assertEquals(
                        "no server gives IDs of \"orders\": it waited in line behind 64 other calls of this client for"
                                + " 50 ms, the option patience",
                        assertThrows(ExecutionException.class, f::get).getCause().getMessage());
            }
        } finally {
            core.close();
        }
        assertEquals(0, server.requests.get());
    }

    /** A patience that is shorter than a server needs to fail does not hide the reason for long. */
    @Test
    @Timeout(60)
    void aShortPatienceFindsTheReason() {
        AtomicReference<CountDownLatch> failed = new AtomicReference<>(new CountDownLatch(1));
        server.handler = r -> {
            failed.get().await(); // a call never sees the answer of its own request
            return TestServer.problem(503, "store-unavailable", "");
        };
        try (Client hasty = Client.builder().servers(List.of(server.url)).timeout(LONG).patience(Duration.ofMillis(30)).build()) {
            String got;
            do {
                got = assertThrows(FirnException.class, () -> hasty.sequencer("orders").take(1)).getMessage();
                failed.getAndSet(new CountDownLatch(1)).countDown();
            } while (!got.contains("503 store-unavailable"));
        }
    }
}
