package com.github.firnid.client;

import java.net.http.HttpClient;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * What all sequencers of a client share. Its threads are daemons, and end soon after they have nothing to do. Its
 * lock guards the state of calls, servers and fetched blocks; no code of the caller runs under it.
 */
final class Core {
    private static final long LINGER = 5; // seconds
    private static final String THREAD = "firn-client";
    private static final int CALLBACKS = 4; // threads
    private static final long AGAIN = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long GOODBYE = 1; // how many seconds connections may take to close

    final Options options;
    final Clock clock;
    final Transport transport = new Transport(this);
    final Gate gate = new Gate(this);
    final Roster roster;
    private final ThreadPoolExecutor pool; // for requests; the gate bounds them
    private int busy; // threads of the pool

    /** For results that arrive later: it runs code of the caller. More threads only replace those that wait for IDs. */
    final Executor callbacks;

    /** For results of calls that code of the caller has made in these threads, all of which may wait for them. */
    private final Executor nested;

    final HttpClient http;
    final ScheduledThreadPoolExecutor timers;

    Core(Options options, Clock clock) {
        this.options = options;
        this.clock = clock;
        roster = new Roster(options, clock);
        ThreadFactory daemons = task -> {
            Thread t = new Thread(task, THREAD);
            t.setDaemon(true);
            return t;
        };
        pool = new ThreadPoolExecutor(
                0, Integer.MAX_VALUE, LINGER, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), daemons);
        pool.allowCoreThreadTimeOut(true);
        callbacks = callbacks(4 * CALLBACKS);
        nested = callbacks(64 * CALLBACKS);
        timers = new ScheduledThreadPoolExecutor(1, daemons);
        timers.setRemoveOnCancelPolicy(true);
        timers.setKeepAliveTime(LINGER, TimeUnit.SECONDS);
        timers.allowCoreThreadTimeOut(true);
        HttpClient.Builder b = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .proxy(HttpClient.Builder.NO_PROXY)
                .connectTimeout(options.timeout)
                .executor(Runnable::run); // in its own thread: each change of threads costs more than parsing an answer
        if (options.tls != null) {
            b.sslContext(options.tls);
        }
        http = b.build();
    }

    /** Returns an executor with up to that many threads, if those before wait for results. */
    private static Executor callbacks(int most) {
        return new ForkJoinPool(CALLBACKS, Core::named, null, true, 0, most, 1, pool -> true, LINGER, TimeUnit.SECONDS);
    }

    private static ForkJoinWorkerThread named(ForkJoinPool pool) {
        ForkJoinWorkerThread t = ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
        t.setName(THREAD + "-callback");
        return t;
    }

    /**
     * Runs a task that may wait, in a thread that cancelling the result interrupts. The thread is free for another
     * task before the result causes one.
     */
    <T> CompletableFuture<T> run(Callable<T> work) {
        CompletableFuture<T> result = new CompletableFuture<>();
        FutureTask<T> task = new FutureTask<>(work);
        result.whenComplete((value, e) -> task.cancel(true));
        try {
            reserve(1);
            pool.execute(() -> {
                task.run();
                reserve(-1);
                try {
                    result.complete(task.get());
                } catch (ExecutionException e) {
                    result.completeExceptionally(e.getCause());
                } catch (CancellationException | InterruptedException e) {
                    result.cancel(false);
                }
            });
        } catch (Throwable e) { // OutOfMemoryError: there is no other thread
            reserve(-1);
            result.completeExceptionally(e);
        }
        return result;
    }

    /**
     * Makes sure that each task has a thread, and that no idle one is passed over. A size below the number of threads
     * would wake the idle ones, and so keep them.
     */
    private void reserve(int change) {
        synchronized (pool) {
            busy += change;
            pool.setCorePoolSize(Math.max(busy, pool.getPoolSize()));
        }
    }

    /** Returns what completes the result of a call by this thread. */
    Executor completer() {
        return isOwnThread() ? nested : callbacks;
    }

    private static boolean isOwnThread() {
        return Thread.currentThread().getName().startsWith(THREAD);
    }

    /**
     * Completes a result in an executor, with a value or with what was thrown instead. If the executor cannot start a
     * thread, it is asked again later.
     */
    <T> void complete(Executor executor, CompletableFuture<T> result, Supplier<T> value) {
        try {
            executor.execute(() -> {
                try {
                    result.complete(value.get());
                } catch (Throwable e) { // such as OutOfMemoryError
                    result.completeExceptionally(e);
                }
            });
        } catch (Throwable e) { // OutOfMemoryError
            after(AGAIN, () -> complete(executor, result, value));
        }
    }

    /** Writes to the log of the caller, which may wait. */
    void log(System.Logger.Level level, String message) {
        callbacks.execute(() -> options.log.log(level, message));
    }

    /** Runs a task with the lock. */
    synchronized void locked(Runnable task) {
        task.run();
    }

    /**
     * Runs a task with the lock after some time, unless the result is cancelled with the lock before. All share a
     * thread, so they must not wait.
     */
    synchronized Future<?> after(long nanos, Runnable task) {
        Future<?>[] timer = new Future<?>[1];
        Runnable unlessCancelled = () -> {
            if (!timer[0].isCancelled()) {
                task.run();
            }
        };
        try {
            return timer[0] = timers.schedule(() -> locked(unlessCancelled), nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException e) { // closed
            return CompletableFuture.completedFuture(null);
        }
    }

    void close() {
        timers.shutdownNow();
        // HttpClient can be closed since Java 21. Before, its thread and connections end when it is garbage.
        if ((Object) http instanceof AutoCloseable c) {
            Future<?> closed = run(() -> {
                c.close();
                return null;
            });
            if (isOwnThread()) { // one that must be free for others
                return;
            }
            try {
                closed.get(GOODBYE, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } catch (ExecutionException | TimeoutException e) {
                // they close later
            }
        }
    }

    /** Waits for a result of a sequencer. Calls end by themselves after the option patience. */
    static <T> T await(CompletableFuture<T> result, String sequencer) {
        try {
            return result.get();
        } catch (ExecutionException e) {
            throw asFirn(e.getCause()).again();
        } catch (InterruptedException e) {
            result.cancel(false);
            Thread.currentThread().interrupt();
            throw new FirnException(null, "\"" + sequencer + "\": interrupted while waiting for a server", e);
        }
    }

    /** Returns the exception that a future failed with. */
    static FirnException asFirn(Throwable t) {
        Throwable cause = t instanceof CompletionException && t.getCause() != null ? t.getCause() : t;
        return cause instanceof FirnException f ? f : new FirnException(null, cause.toString(), cause);
    }
}
