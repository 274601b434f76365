package com.github.firnid.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ClientTest {
    private final List<AutoCloseable> open = new ArrayList<>();
    private final CountDownLatch end = new CountDownLatch(1);

    @AfterEach
    void close() throws Exception {
        end.countDown();
        for (AutoCloseable c : open) {
            c.close();
        }
    }

    private TestServer server(int node) {
        TestServer s = new TestServer(node);
        open.add(s);
        return s;
    }

    private Client client(TestServer... servers) {
        return client(b -> {}, servers);
    }

    private Client client(java.util.function.Consumer<Client.Builder> options, TestServer... servers) {
        Client.Builder b = Client.builder().servers(Arrays.stream(servers).map(s -> s.url).toList());
        options.accept(b);
        Client c = b.build();
        open.add(c);
        return c;
    }

    /** Clocks that a test sets. */
    private static final class TestClock implements Clock {
        volatile long offNanos;
        volatile long offMillis;

        @Override
        public long nanos() {
            return SYSTEM.nanos() + offNanos;
        }

        @Override
        public long millis() {
            return SYSTEM.millis() + offMillis;
        }
    }

    @Test
    void idsAscendAndAreFetchedOnce() {
        TestServer s = server(1);
        Sequencer orders = client(s).sequencer("orders");
        long first = orders.next();
        for (int i = 1; i < 50; i++) {
            assertEquals(first + i, orders.next());
        }
        assertEquals(1, s.requests.get());
        assertTrue(s.seen.get(0).head().startsWith("POST /v1/sequencers/orders/next?count=100&runs=true&format=hex HTTP/1.1\r\n"));
    }

    @Test
    void everyWayToGetAnId() throws Exception {
        Sequencer orders = client(server(1)).sequencer("orders");
        Set<Long> ids = new HashSet<>();
        ids.add(orders.next());
        ids.add(orders.getAsLong());
        ids.add(orders.nextAsync().get());
        ids.add(orders.iterator().nextLong());
        orders.stream().limit(3).forEach(ids::add);
        for (long id : orders.take(10)) {
            ids.add(id);
        }
        for (long id : orders.takeAsync(10).get()) {
            ids.add(id);
        }
        for (long id : orders) {
            ids.add(id);
            break;
        }
        assertEquals(28, ids.size());
        assertEquals("orders", orders.name());
    }

    @Test
    void theNextBatchIsFetchedAhead() throws Exception {
        TestServer s = server(1);
        Sequencer orders = client(s).sequencer("orders");
        CountDownLatch second = new CountDownLatch(1);
        s.handler = r -> {
            if (s.requests.get() == 2) {
                second.countDown();
            }
            return s.ids(r);
        };
        for (int i = 0; i < 67; i++) { // at half, and the next check
            orders.next();
        }
        assertTrue(second.await(20, TimeUnit.SECONDS));
    }

    @Test
    void aCrowdWaitsForOneRequest() throws Exception {
        TestServer s = server(1);
        CountDownLatch go = new CountDownLatch(1);
        s.handler = s.hang(go);
        Sequencer orders = client(s).sequencer("orders");
        List<CompletableFuture<Long>> all = IntStream.range(0, 40).mapToObj(i -> orders.nextAsync()).toList();
        CompletableFuture<Long> cancelled = orders.nextAsync();
        assertTrue(cancelled.cancel(true));
        go.countDown();
        Set<Long> ids = new HashSet<>();
        for (CompletableFuture<Long> f : all) {
            ids.add(f.get());
        }
        assertEquals(40, ids.size());
        assertEquals(1, s.requests.get());
    }

    @Test
    void manyThreadsGetDistinctIds() throws Exception {
        Sequencer orders = client(server(1), server(2)).sequencer("orders");
        ExecutorService pool = Executors.newFixedThreadPool(4);
        try {
            Callable<long[]> draw = () -> orders.stream().limit(250_000).toArray();
            long[] all = new long[1_000_000];
            int at = 0;
            for (var f : pool.invokeAll(List.of(draw, draw, draw, draw))) {
                long[] part = f.get();
                System.arraycopy(part, 0, all, at, part.length);
                at += part.length;
            }
            assertEquals(1_000_000, Arrays.stream(all).distinct().count());
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void anInterruptEndsOnlyItsCall() throws Exception {
        TestServer s = server(1);
        CountDownLatch go = new CountDownLatch(1);
        s.handler = s.hang(go);
        Sequencer orders = client(s).sequencer("orders");
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        CompletableFuture<Long> other = orders.nextAsync();
        Thread t = new Thread(() -> {
            try {
                orders.next();
            } catch (FirnException e) {
                thrown.set(e);
                assertTrue(Thread.interrupted());
            }
        });
        t.start();
        t.interrupt();
        t.join();
        assertInstanceOf(InterruptedException.class, thrown.get().getCause());
        go.countDown();
        other.get();
        assertEquals(1, s.requests.get());
    }

    @Test
    void batchesGrowAndShrinkByUse() {
        TestServer s = server(1);
        TestClock clock = new TestClock();
        Client c = Client.builder().servers(List.of(s.url)).maxBatch(400).build(clock);
        open.add(c);
        Sequencer orders = c.sequencer("orders");
        for (int i = 0; i < 3000; i++) {
            orders.next();
        }
        assertEquals(400, s.seen.stream().mapToInt(TestServer.Request::count).max().orElseThrow());
        for (int i = 0; i < 12; i++) {
            clock.offNanos += TimeUnit.MINUTES.toNanos(11);
            for (int before = s.requests.get(); s.requests.get() == before; ) {
                orders.next();
            }
        }
        assertTrue(s.seen.get(s.seen.size() - 1).count() <= 50);
    }

    @Test
    void oldIdsAreDiscarded() {
        TestServer s = server(1);
        TestClock clock = new TestClock();
        Client c = Client.builder().servers(List.of(s.url)).firstBatch(1000).build(clock);
        open.add(c);
        Sequencer orders = c.sequencer("orders");
        long first = orders.next();
        clock.offMillis += Duration.ofMinutes(11).toMillis(); // a suspend: only the wall clock moves
        long last = first;
        for (int i = 0; i < 16; i++) {
            last = orders.next();
        }
        assertTrue(last >= first + 1000, "old ID after a suspend");
        clock.offNanos += TimeUnit.MINUTES.toNanos(11);
        long before = last;
        for (int i = 0; i < 16; i++) {
            last = orders.next();
        }
        assertTrue(last >= before + 400, "old ID");
    }

    @Test
    void idsOfALateAnswerAreOld() throws Exception {
        TestServer s = server(1);
        TestClock clock = new TestClock();
        s.handler = r -> {
            clock.offNanos += TimeUnit.SECONDS.toNanos(2);
            return s.ids(r);
        };
        Client c = Client.builder().servers(List.of(s.url)).validity(Duration.ofSeconds(1)).build(clock);
        open.add(c);
        Sequencer orders = c.sequencer("orders");
        long first = orders.next(); // it waited for the answer
        long second = orders.nextAsync().get();
        assertTrue(second >= first + 50, "old ID " + (second - first));
        assertTrue(orders.next() >= second + 25, "old ID");
    }

    @Test
    void theTimerDropsOldIds() throws Exception {
        TestServer s = server(1);
        TestClock clock = new TestClock();
        Client c = Client.builder().servers(List.of(s.url)).build(clock);
        open.add(c);
        Sequencer orders = c.sequencer("orders");
        long first = orders.next();
        clock.offNanos += TimeUnit.MINUTES.toNanos(11);
        Prefetch p = ((RemoteSequencer) orders).prefetch;
        while (!p.block.isEmpty()) {
            Thread.sleep(10);
        }
        assertEquals(first + 100, orders.next());
    }

    @Test
    void anotherServerIsAskedIfOneFails() {
        TestServer down = server(1);
        down.close();
        TestServer broken = server(2);
        broken.handler = r -> TestServer.problem(500, "internal", "");
        TestServer draining = server(3);
        draining.handler = r -> TestServer.problem(503, "draining", "Retry-After: 60\r\n");
        TestServer up = server(4);
        Client c = client(down, broken, draining, up);
        for (int i = 0; i < 20; i++) {
            assertEquals(4L, c.sequencer("s" + i).next() >> 40);
        }
        assertEquals(0, c.servers().get(3).failures());
    }

    @Test
    void anErrorHasWhatTheServerSaid() {
        TestServer s = server(1);
        s.handler = r -> TestServer.problem(503, "busy", "Retry-After: 60\r\n");
        Sequencer orders = client(s).sequencer("orders");
        UnavailableException e = assertThrows(UnavailableException.class, orders::next);
        assertEquals(
                "no server gives IDs of \"orders\": " + s.url
                        + ": 503 busy: the \"detail\" of busy; clients ask for more IDs than one server can make: add servers",
                e.getMessage());
        ServerException said = (ServerException) e.reasons().get(0);
        assertEquals("busy", said.kind());
        assertEquals(503, said.status());
        assertEquals("the \"detail\" of busy", said.detail());
        assertEquals(Duration.ofSeconds(60), said.retryAfter());
        assertEquals(s.url, said.server());
    }

    @Test
    void aRefusedRequestFailsAtOnce() {
        TestServer a = server(1);
        TestServer b = server(2);
        a.handler = b.handler = r -> TestServer.problem(404, "no-sequencer", "");
        Client c = client(a, b);
        Sequencer typo = c.sequencer("odrers");
        ServerException e = assertThrows(ServerException.class, () -> typo.take(1));
        assertTrue(e.getMessage().endsWith("create it: firn sequencer create odrers"), e.getMessage());
        assertTrue(a.requests.get() <= 1 && b.requests.get() <= 1, "asked twice");
        CompletionException async = assertThrows(CompletionException.class, () -> typo.takeAsync(1).join());
        assertInstanceOf(ServerException.class, async.getCause());
        b.handler = b::ids; // created now
        for (long id = 0; id >> 40 != 2; ) {
            try {
                id = typo.next();
            } catch (ServerException again) {
                // server b was slow, so only a was asked
            }
        }
    }

    @Test
    void theTokenIsReadForEachRequest() {
        TestServer s = server(1);
        AtomicInteger n = new AtomicInteger();
        Sequencer orders = client(b -> b.token(() -> " firn_" + n.incrementAndGet() + "\r\n"), s).sequencer("orders");
        orders.take(1);
        orders.take(1);
        assertEquals("Bearer firn_1", s.seen.get(0).header("Authorization"));
        assertEquals("Bearer firn_2", s.seen.get(1).header("Authorization"));
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void sneak(Throwable t) throws E {
        throw (E) t;
    }

    /** Whatever the source of tokens throws, it concerns no server. */
    @Test
    void noToken() throws Exception {
        TestServer s = server(1);
        for (Throwable t : List.of(new IllegalStateException(), new java.io.IOException("x"), new AssertionError("x"))) {
            Client c = client(b -> b.token(() -> {
                ClientTest.<RuntimeException>sneak(t);
                return null;
            }), s);
            Sequencer orders = c.sequencer("orders");
            String got = assertThrows(FirnException.class, () -> orders.take(1)).getMessage();
            assertEquals("get the token: " + t, got);
            Remote remote = (Remote) orders;
            remote.probe(0);
            while (!remote.requests.isEmpty()) {
                Thread.sleep(1);
            }
            assertEquals(0, c.servers().get(0).failures());
            assertEquals(null, c.servers().get(0).error());
        }
        assertEquals(0, s.requests.get());
    }

    @Test
    void theCallerMayHoldTheMonitor() {
        Sequencer orders = client(server(1)).sequencer("orders");
        synchronized (orders) {
            assertTrue(orders.next() > 0);
        }
    }

    /** An answer that is cut at any byte costs a retry, and no ID of it is used. */
    @Test
    void anAnswerCutAtEveryByte() {
        TestServer s = server(1);
        TestServer.Request r = new TestServer.Request(
                "POST /?count=3&runs=true&format=hex HTTP/1.1\r\nFirn-Nonce: 0123456789abcdef0123456789abcdef\r\n", 3);
        int length = s.ids(r).length;
        Client c = client(b -> b.patience(Duration.ofMillis(50)), s);
        for (int cut = 0; cut < length; cut++) {
            s.cut = cut;
            assertThrows(FirnException.class, () -> c.sequencer("orders").take(3));
        }
        s.cut = Integer.MAX_VALUE;
        assertEquals(3, client(s).sequencer("orders").take(3).length);
    }

    @Test
    void answersThatCannotBeUsed() {
        TestServer s = server(1);
        Client c = client(s);
        for (Map.Entry<String, String> e : Map.ofEntries(
                Map.entry("{\"runs\":[]}", "its runs cannot be read"),
                Map.entry("", "its runs cannot be read"),
                Map.entry("{\"ids\":[\"1\"]}", "its runs cannot be read"),
                Map.entry(run("1", "1", 3).replace("]", ",]"), "its runs cannot be read"),
                Map.entry(run("1", "1", 3).replace("}]}", "}]"), "its runs cannot be read"),
                Map.entry(run("1", "1", 3) + "x", "its runs cannot be read"),
                Map.entry(run("1", "0", 3), "its runs cannot be read"),
                Map.entry(run("1", "1", 0), "its runs cannot be read"),
                Map.entry(run("1", "-1", 3), "its runs cannot be read"),
                Map.entry(run("1", "1", 2), "it has 2 IDs, not the 3 requested"),
                Map.entry(run("1", "1", 999_999), "it has more IDs than the 3 requested"),
                Map.entry(run("0", "1", 3), "the ID 0"),
                Map.entry(run("fffffffffffffffe", "1", 3), "a run exceeds the greatest ID"),
                Map.entry(run("1", "9999999999999999999", 3), "a run exceeds the greatest ID"),
                Map.entry(run("5", "2", 2).replace("]}", "," + run("7", "1", 1).substring(9)), "contains an ID twice"),
                Map.entry(run("0".repeat(32), "1", 3), "IDs of 128 bits: use the method sequencer128"),
                Map.entry(run("1", "1", 3) + " ".repeat(1000), "more than 384 bytes")).entrySet()) {
            check(c, s, e.getValue(), r -> TestServer.runs(r, e.getKey()));
        }
        check(c, s, "is this a Firn server?", r -> "SSH-2.0-OpenSSH_9.2\r\n".getBytes(StandardCharsets.US_ASCII));
        check(c, s, "it is \"text/html\"", r -> TestServer.http("200 OK", "Content-Type: text/html\r\n", "<html>".getBytes(StandardCharsets.US_ASCII)));
        check(c, s, "it answers another request", r -> TestServer.http(
                "200 OK", "Content-Type: application/json\r\nFirn-Nonce: x\r\n", new byte[24]));
        check(c, s, "redirects are not followed", r -> TestServer.http("302 Found", "Location: http://x/\r\n", new byte[0]));
        check(c, s, "404: the answer begins with \"nothing\"; is this a Firn server?",
                r -> TestServer.http("404 X", "", "nothing".getBytes(StandardCharsets.US_ASCII)));

        TestServer.Handler packed = r -> TestServer.problem(400, "no-runs", "");
        check(c, s, "400 no-runs", packed); // although the second request does not ask for them
        check(c, s, "it has 23 bytes, not the 24 of 3 IDs of 64 bits", r -> TestServer.answer(r, new byte[23]));
        check(c, s, "it has 0 bytes", r -> TestServer.answer(r, new byte[0]));
        check(c, s, "the ID 0", r -> TestServer.answer(r, new byte[24]));
        check(c, s, "IDs of 128 bits: use the method sequencer128", r -> TestServer.answer(r, new byte[48]));
        check(c, s, "more than 48 bytes", r -> TestServer.answer(r, new byte[1000]));
        check(c, s, "contains an ID twice", r -> TestServer.answer(
                r, ByteBuffer.allocate(24).putLong(5).putLong(6).putLong(5).array()));
    }

    private static String run(String first, String step, int count) {
        return "{\"runs\":[{\"first\":\"" + "0".repeat(Math.max(0, 16 - first.length())) + first + "\",\"step\":\"" + step
                + "\",\"count\":" + count + "}]}";
    }

    /** Layouts with random bits have no runs, which a client asks for once. Others may have several. */
    @Test
    void runs() {
        TestServer s = server(1);
        s.handler = r -> r.head().contains("runs=true") ? TestServer.problem(400, "no-runs", "") : s.ids(r);
        Sequencer random = client(s).sequencer("random");
        assertEquals(3, random.take(3).length);
        assertEquals(2, s.requests.get());
        random.next();
        assertEquals(3, s.requests.get());

        s.handler = r -> TestServer.runs(r, "{\"runs\":[{\"first\":\"8000000000000000\",\"step\":\"2\",\"count\":2,\"new\":1},"
                + "{\"first\":\"0000000000000005\",\"step\":\"1\",\"count\":1}],\"new\":\"x\"}\n");
        assertArrayEquals(
                new long[] {Long.MIN_VALUE, Long.MIN_VALUE + 2, 5}, client(s).sequencer("orders").take(3));
    }

    private static void check(Client c, TestServer s, String want, TestServer.Handler handler) {
        s.handler = handler;
        FirnException e = assertThrows(FirnException.class, () -> c.sequencer("orders").take(3));
        assertTrue(e.getMessage().contains(want), "got " + e.getMessage() + ", want " + want);
        assertTrue(e.getMessage().contains(s.url), e.getMessage());
    }

    @Test
    void aCachedAnswerIsNotUsed() {
        TestServer s = server(1);
        Sequencer orders = client(s).sequencer("orders");
        s.handler = r -> TestServer.http(
                "200 OK", "Content-Type: application/json\r\n", run("4d", "1", 1).getBytes(StandardCharsets.US_ASCII));
        assertEquals(77, orders.take(1)[0]);
        AnswerException e = (AnswerException)
                assertThrows(UnavailableException.class, () -> orders.take(1)).reasons().get(0);
        assertTrue(e.getMessage().contains("caches answers"), e.getMessage());
    }

    @Test
    void wideIds() throws Exception {
        TestServer s = server(1);
        s.handler = r -> {
            ByteBuffer b = ByteBuffer.allocate(16 * r.count());
            for (int i = 0; i < r.count(); i++) {
                b.putLong(0x8000_0000_0000_0001L + i).putLong(s.requests.get());
            }
            return TestServer.answer(r, b.array());
        };
        Client c = client(s);
        Sequencer128 wide = c.sequencer128("wide");
        assertEquals(new UUID(0x8000_0000_0000_0001L, 1), wide.next());
        assertEquals(new UUID(0x8000_0000_0000_0002L, 1), wide.nextAsync().get());
        assertEquals(new UUID(0x8000_0000_0000_0003L, 1), wide.iterator().next());
        assertArrayEquals(
                new UUID[] {new UUID(0x8000_0000_0000_0001L, 2), new UUID(0x8000_0000_0000_0002L, 2)}, wide.take(2));
        assertEquals(3, wide.takeAsync(3).get().length);
        assertSame(wide, c.sequencer128("wide"));
    }

    @Test
    void textIds() {
        TestServer s = server(1);
        s.handler = r -> TestServer.http("200 OK", "Content-Type: text/plain; charset=utf-8\r\n", "8evP\n8evQ\n".getBytes(StandardCharsets.US_ASCII));
        Sequencer orders = client(s).sequencer("orders");
        assertEquals(List.of("8evP", "8evQ"), orders.takeText(2, "base62"));
        assertTrue(s.seen.get(0).head().contains("?count=2&format=base62 "));
        assertThrows(UnavailableException.class, () -> orders.takeText(3, "base62"));
        assertThrows(IllegalArgumentException.class, () -> orders.takeText(3, "&x"));
    }

    @Test
    void closeEndsEverything() throws Exception {
        TestServer s = server(1);
        s.handler = s.hang(end);
        Client c = client(s);
        Sequencer orders = c.sequencer("orders");
        CompletableFuture<Long> waiting = orders.nextAsync();
        CompletableFuture<long[]> taking = orders.takeAsync(5);
        c.close();
        assertInstanceOf(ClosedException.class, assertThrows(CompletionException.class, waiting::join).getCause());
        assertInstanceOf(ClosedException.class, assertThrows(CompletionException.class, taking::join).getCause());
        assertThrows(ClosedException.class, orders::next);
        assertThrows(ClosedException.class, () -> orders.take(1));
        assertThrows(ClosedException.class, () -> c.sequencer("other"));
        c.close();
    }

    @Test
    void aClosedSequencerCanBeReplaced() {
        Client c = client(server(1));
        Sequencer orders = c.sequencer("orders");
        long id = orders.next();
        orders.close();
        assertThrows(ClosedException.class, orders::next);
        Sequencer again = c.sequencer("orders");
        assertNotSame(orders, again);
        assertTrue(again.next() > id);
    }

    /** Connections that stay open would prevent a checkpoint. */
    @Test
    void closeClosesConnections() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 21, "an HttpClient cannot be closed");
        TestServer s = server(1);
        Client c = client(s);
        c.sequencer("orders").next();
        assertEquals(1, s.open.size());
        c.close();
        while (!s.open.isEmpty()) {
            Thread.sleep(1);
        }
    }

    /** A program that does not close its client ends anyway. */
    @Test
    void noThreadKeepsAProgramAlive() throws Exception {
        TestServer s = server(1);
        Process p = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp", System.getProperty("java.class.path"), Program.class.getName(), s.url)
                .redirectErrorStream(true)
                .start();
        assertTrue(p.waitFor(30, TimeUnit.SECONDS), "the program does not end");
        assertEquals(0, p.exitValue(), new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
    }

    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            new Client(List.of(args[0])).sequencer("orders").next();
        }
    }

    @Test
    void badOptionsAreNamed() {
        options("servers is empty: name at least one, such as http://127.0.0.1:3476", b -> b.servers(List.of()));
        options("server \"localhost:3476\": a server is http://HOST:PORT", b -> b.servers(List.of("localhost:3476")));
        options("this package speaks HTTP", b -> b.servers(List.of("firn://localhost")));
        options("the host is missing or has a character like _", b -> b.servers(List.of("http://firn_1:3476")));
        options("a user name is not allowed: use the option token", b -> b.servers(List.of("http://u:p@h")));
        options("the port is not a number from 1 to 65535", b -> b.servers(List.of("http://h:70000")));
        options("a query or a fragment is not allowed", b -> b.servers(List.of("http://h/?x")));
        options("servers is empty", b -> b.servers(null));
        options("server \"null\": a server is http://HOST:PORT", b -> b.servers(Arrays.asList("http://h", null)));
        options("timeout is null: it must be positive", b -> b.timeout(null));
        options("validity is null: it must be positive", b -> b.validity(null));
        options("patience is PT600H: it must be at most 2147483 s", b -> b.patience(Duration.ofDays(25)));
        options("log is null: omit it", b -> b.log(null));
        options("server \"http://h/\" occurs twice", b -> b.servers(List.of("http://h", "http://h/")));
        options("timeout is PT0S: it must be positive", b -> b.timeout(Duration.ZERO));
        assertEquals("0.0005 ms, 1.5 ms, 1500 ms, 2 s", Stream.of(500, 1_500_000, 1_500_000_000, 2_000_000_000)
                .map(n -> Transport.text(Duration.ofNanos(n)))
                .collect(Collectors.joining(", ")));
        options("patience is PT-1S: it must be positive", b -> b.patience(Duration.ofSeconds(-1)));
        options("validity is PT0.01S: it must be at least 100 ms", b -> b.validity(Duration.ofMillis(10)));
        options("maxBatch is 0; it must be from 1 to 100000".replace(';', ':'), b -> b.maxBatch(0));
        options("firstBatch is 100001: it must be from 1 to 100000", b -> b.firstBatch(100_001));
        options("ca is set, but no server is https://", b -> b.ca(Path.of("/x")));
        options("ca: read certificates of /none.pem: ", b -> b.servers(List.of("https://h")).ca(Path.of("/none.pem")));
    }

    private static void options(String want, java.util.function.Consumer<Client.Builder> set) {
        Client.Builder b = Client.builder().servers(List.of("http://127.0.0.1:3476"));
        set.accept(b);
        String got = assertThrows(IllegalArgumentException.class, b::build).getMessage();
        assertTrue(got.contains(want), "got " + got + ", want " + want);
    }

    @Test
    void badArgumentsAreNamed() {
        Client c = client(server(1));
        for (String name : List.of("", ".", "..", "a b", "-a", "a/b", "x".repeat(129))) {
            assertThrows(IllegalArgumentException.class, () -> c.sequencer(name), name);
        }
        for (int count : new int[] {-1, 0}) {
            String got = assertThrows(IllegalArgumentException.class, () -> c.sequencer("a").take(count)).getMessage();
            assertEquals("count is " + count + ": it must be at least 1", got);
        }
        assertThrows(IllegalArgumentException.class, () -> c.sequencer(null));
    }

    @Test
    void certificates(@TempDir Path dir) throws Exception {
        Path pem = dir.resolve("ca.pem");
        var first = TestTls.context(dir.resolve("a.p12"), pem);
        TestServer s = new TestServer(1, first.getServerSocketFactory(), "https");
        open.add(s);
        client(b -> b.ca(pem), s).sequencer("orders").next();

        Client strict = client(s);
        String got = assertThrows(FirnException.class, () -> strict.sequencer("orders").next()).getMessage();
        assertTrue(got.contains("set the option ca to its authority"), got);

        // Each server has a new certificate, and the file both.
        Client rotated = client(b -> b.ca(pem), s);
        rotated.sequencer("orders").take(1);
        s.close();
        Path other = dir.resolve("other.pem");
        var second = TestTls.context(dir.resolve("b.p12"), other);
        Files.write(pem, Files.readAllBytes(other));
        Files.setLastModifiedTime(pem, java.nio.file.attribute.FileTime.fromMillis(System.currentTimeMillis() + 5000));
        TestServer t = new TestServer(2, second.getServerSocketFactory(), "https");
        open.add(t);
        client(b -> b.ca(pem), t).sequencer("orders").take(1);
    }
}
