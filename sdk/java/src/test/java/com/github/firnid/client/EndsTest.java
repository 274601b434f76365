package com.github.firnid.client;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/**
 * Nothing that a call begins is left when it has ended: no timer, request, connection or thread. Only a call that
 * loses patience leaves a request to each silent server, until its timeout.
 */
@Timeout(120)
class EndsTest {
    private static final Duration LONG = Duration.ofHours(1);

    /** A call that waits, as a future that can be cancelled. */
    private static final Map<String, Function<Sequencer, CompletableFuture<?>>> CALLS = new LinkedHashMap<>();

    static {
        CALLS.put("next", s -> blocking(s::next));
        CALLS.put("nextAsync", Sequencer::nextAsync);
        CALLS.put("take", s -> blocking(() -> s.take(3)));
        CALLS.put("takeAsync", s -> s.takeAsync(3));
        CALLS.put("takeText", s -> blocking(() -> s.takeText(3, "hex")));
    }

    /** Runs a call in a thread of its own, which cancel interrupts. */
    private static CompletableFuture<?> blocking(java.util.function.Supplier<?> call) {
        Thread[] thread = new Thread[1];
        CompletableFuture<Object> result = new CompletableFuture<>() {
            @Override
            public boolean cancel(boolean interrupt) {
                thread[0].interrupt();
                return true;
            }
        };
        thread[0] = new Thread(() -> {
            try {
                result.complete(call.get());
            } catch (RuntimeException e) {
                result.completeExceptionally(e);
            }
        });
        thread[0].start();
        return result;
    }

    /** How a call ends. Servers whose handler is null never answer. */
    private record End(
            List<TestServer.Handler> handlers,
            java.util.function.Consumer<Client.Builder> options,
            Act act,
            int failures,
            Class<?> want) {}

    /** Ends a call that waits. */
    private interface Act {
        void end(Client c, Sequencer s, CompletableFuture<?> call);
    }

    private static Map<String, End> ends() {
        TestServer.Handler ids = r -> r.head().contains("format=hex ") && !r.head().contains("runs=")
                ? TestServer.http("200 OK", "Content-Type: text/plain\r\n", lines(r.count()))
                : null;
        TestServer.Handler busy = r -> TestServer.problem(503, "busy", "Retry-After: 60\r\n");
        Map<String, End> all = new LinkedHashMap<>();
        all.put("returns", new End(List.of(ids), b -> {}, null, 0, null));
        all.put("is refused", new End(List.of(r -> TestServer.problem(404, "no-sequencer", "")), b -> {}, null, 0, ServerException.class));
        all.put("has no token", new End(List.of(ids), b -> b.token(() -> {
            throw new IllegalStateException("none");
        }), null, 0, FirnException.class));
        all.put("loses patience", new End(List.of(hang()), b -> b.patience(Duration.ofMillis(50)).timeout(Duration.ofMillis(300)), null, 0, UnavailableException.class));
        all.put("times out", new End(List.of(hang()), b -> b.timeout(Duration.ofMillis(50)).patience(Duration.ofMillis(400)), null, 0, UnavailableException.class));
        Map<String, Act> acts = new LinkedHashMap<>();
        acts.put("is cancelled", (c, s, call) -> call.cancel(true));
        acts.put("is closed", (c, s, call) -> s.close());
        acts.put("is closed with the client", (c, s, call) -> c.close());
        acts.forEach((how, act) -> {
            Class<?> want = how.startsWith("is closed") ? ClosedException.class : Exception.class;
            all.put(how + " during a request", new End(List.of(hang()), b -> {}, act, 0, want));
            all.put(how + " during a pause", new End(List.of(busy), b -> {}, act, 1, want));
            all.put(how + " after a slow request",
                    new End(List.of(hang(), busy), b -> b.timeout(Duration.ofMillis(300)), act, 2, want));
        });
        return all;
    }

    private static TestServer.Handler hang() {
        return r -> {
            new CountDownLatch(1).await();
            return null;
        };
    }

    private static byte[] lines(int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 1; i <= count; i++) {
            text.append(i).append('\n');
        }
        return text.toString().getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    }

    @TestFactory
    Stream<DynamicTest> nothingIsLeft() {
        List<DynamicTest> all = new ArrayList<>();
        CALLS.forEach((name, call) -> ends().forEach((how, end) ->
                all.add(DynamicTest.dynamicTest(name + " " + how, () -> one(name, call, how, end)))));
        return all.stream();
    }

    private static void one(String name, Function<Sequencer, CompletableFuture<?>> call, String how, End end) throws Exception {
        List<TestServer> servers = new ArrayList<>();
        for (TestServer.Handler h : end.handlers) {
            TestServer s = new TestServer(servers.size() + 1);
            s.handler = r -> {
                byte[] answer = h.answer(r);
                return answer == null ? s.ids(r) : answer;
            };
            servers.add(s);
        }
        Client.Builder b = Client.builder().servers(servers.stream().map(s -> s.url).toList()).timeout(LONG).patience(LONG);
        end.options.accept(b);
        Client c = b.build();
        try {
            for (int again = 0; again < 3; again++) {
                Sequencer s = c.sequencer("s" + again);
                Remote remote = (Remote) s;
                int before = servers.stream().mapToInt(x -> x.requests.get()).sum();
                CompletableFuture<?> first = call.apply(s);
                CompletableFuture<?> second = call.apply(s); // waits for the same
                if (end.act != null) {
                    eventually("a request", () -> servers.stream().mapToInt(x -> x.requests.get()).sum() > before
                            && failures(remote, end.handlers.size()) >= end.failures);
                    for (int twice = 0; twice < 2; twice++) {
                        end.act.end(c, s, first);
                        end.act.end(c, s, second);
                    }
                }
                for (CompletableFuture<?> f : List.of(first, second)) {
                    Throwable thrown = thrown(f);
                    assertTrue(end.want == null ? thrown == null : end.want.isInstance(thrown), String.valueOf(thrown));
                }
                // A cancelled next leaves the request to others that wait for it.
                if (!how.startsWith("is cancelled") || name.startsWith("take")) {
                    eventually("calls " + left(remote), () -> left(remote) == 0);
                }
                s.close();
                s.close();
                eventually("calls " + left(remote), () -> left(remote) == 0);
                eventually("timers " + remote.core.timers.getQueue().size(), () -> remote.core.timers.getQueue().size() == 0);
                if (how.contains("client")) {
                    return;
                }
            }
        } finally {
            c.close();
            c.close();
            servers.forEach(TestServer::close);
        }
    }

    private static int left(Remote remote) {
        return remote.calls.size() + remote.requests.size();
    }

    private static int failures(Remote remote, int servers) {
        return (int) IntStream.range(0, servers).filter(i -> remote.view.error(i) != null).count();
    }

    private static Throwable thrown(CompletableFuture<?> f) throws Exception {
        try {
            f.get(60, TimeUnit.SECONDS);
            return null;
        } catch (java.util.concurrent.ExecutionException e) {
            return e.getCause();
        } catch (CancellationException | CompletionException e) {
            return e;
        }
    }

    private static void eventually(String what, BooleanSupplier holds) throws InterruptedException {
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(15); !holds.getAsBoolean(); Thread.sleep(5)) {
            if (System.nanoTime() > end) {
                fail("left: " + what);
            }
        }
    }
}
