package com.github.firnid.client;

import java.net.http.HttpClient;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** What all sequencers of a client share. Its threads are daemons, and end soon after they have nothing to do. */
final class Core {
    private static final long LINGER = 5; // seconds

    final Options options;
    final Clock clock;
    final Executor pool; // for all work; the timer thread must never wait
    final HttpClient http;
    final ScheduledThreadPoolExecutor timers;

    Core(Options options, Clock clock) {
        this.options = options;
        this.clock = clock;
        ThreadFactory daemons = task -> {
            Thread t = new Thread(task, "firn-client");
            t.setDaemon(true);
            return t;
        };
        pool = new ThreadPoolExecutor(
                0, Integer.MAX_VALUE, LINGER, TimeUnit.SECONDS, new SynchronousQueue<>(), daemons);
        timers = new ScheduledThreadPoolExecutor(1, daemons);
        timers.setRemoveOnCancelPolicy(true);
        timers.setKeepAliveTime(LINGER, TimeUnit.SECONDS);
        timers.allowCoreThreadTimeOut(true);
        HttpClient.Builder b = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(options.timeout)
                .executor(Runnable::run); // in its own thread: each change of threads costs more than parsing an answer
        if (options.tls != null) {
            b.sslContext(options.tls);
        }
        http = b.build();
    }

    /** Runs a task in the pool after some time. */
    Future<?> after(long nanos, Runnable task) {
        try {
            return timers.schedule(() -> pool.execute(task), nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException e) { // closed
            return CompletableFuture.completedFuture(null);
        }
    }

    void close() {
        timers.shutdownNow();
        // HttpClient can be closed since Java 21. Before, its thread ends when it is garbage.
        if ((Object) http instanceof AutoCloseable c) {
            pool.execute(() -> {
                try {
                    c.close();
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
        }
    }

    /** Returns the exception that a future failed with. */
    static FirnException asFirn(Throwable t) {
        Throwable cause = t instanceof CompletionException && t.getCause() != null ? t.getCause() : t;
        return cause instanceof FirnException f ? f : new FirnException(null, cause.toString(), cause);
    }
}
