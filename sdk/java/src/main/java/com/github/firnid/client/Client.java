package com.github.firnid.client;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/**
 * Gets IDs from servers that run {@code firn serve}. A program needs only one client; it is safe for use by
 * many threads at once.
 *
 * <pre>{@code
 * try (var client = new Client(List.of("http://127.0.0.1:3476"))) {
 *     Sequencer orders = client.sequencer("orders");
 *     long id = orders.next();
 * }
 * }</pre>
 *
 * <p>IDs are fetched in batches before they are needed, so that {@link Sequencer#next} takes nanoseconds
 * instead of a round trip. If a server fails, another one is asked. If a server has not answered after 200 ms,
 * or after twice the usual time, another one is asked too, and the first answer is used.
 *
 * <p>A retry gets other IDs, so it is always safe: IDs of a lost answer are lost, and none repeats.
 *
 * <p>A copy of a running program, such as a restored checkpoint or a cloned virtual machine, has the same
 * fetched IDs as the original. Close the client before making one.
 */
public class Client implements AutoCloseable {
    private final Core core;
    private final Map<String, Sequencer> sequencers = new ConcurrentHashMap<>();
    private final Map<String, Sequencer128> sequencers128 = new ConcurrentHashMap<>();
    private volatile boolean closed;

    /**
     * Makes a client with default options. It does not connect, so the servers may start later.
     *
     * @param servers the addresses of the servers, such as {@code http://127.0.0.1:3476}
     * @throws IllegalArgumentException if an address is invalid
     */
    public Client(List<String> servers) {
        this(builder().servers(servers).options.check(), Clock.SYSTEM);
    }

    Client(Options options, Clock clock) {
        core = new Core(options, clock);
    }

    /** Makes a client without servers. */
    Client() {
        core = null;
    }

    /**
     * Returns a builder for a client with options.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the sequencer with this name, which must have 64-bit IDs. All callers get the same one. No
     * server is contacted before the first ID is requested.
     *
     * @param name the name: 1 to 128 letters, digits, and {@code . _ - :}
     * @return the sequencer
     */
    public Sequencer sequencer(String name) {
        return open(name, sequencers, this::make);
    }

    /**
     * Is like {@link #sequencer}, for 128-bit IDs.
     *
     * @param name the name: 1 to 128 letters, digits, and {@code . _ - :}
     * @return the sequencer
     */
    public Sequencer128 sequencer128(String name) {
        return open(name, sequencers128, this::make128);
    }

    private <S> S open(String name, Map<String, S> all, BiFunction<String, Map<String, ?>, S> make) {
        checkName(name);
        if (closed) {
            throw new ClosedException("the client is closed", null);
        }
        S s = all.computeIfAbsent(name, n -> make.apply(n, all));
        if (closed) { // meanwhile
            close();
        }
        return s;
    }

    /** Makes a sequencer, which removes itself from all when it is closed. */
    Sequencer make(String name, Map<String, ?> all) {
        return new RemoteSequencer(core, name, all);
    }

    /** Is like make. */
    Sequencer128 make128(String name, Map<String, ?> all) {
        return new RemoteSequencer128(core, name, all);
    }

    static String checkName(String name) {
        if (name == null || !name.matches("[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")) {
            throw new IllegalArgumentException("the sequencer name " + Transport.quote(String.valueOf(name))
                    + " is invalid: it must have 1 to 128 letters, digits, and . _ - :, and begin with a letter or a digit");
        }
        return name;
    }

    /**
     * Returns the state of the servers, in the order of the option.
     *
     * @return the states
     */
    public List<ServerStatus> servers() {
        synchronized (core) {
            return core.roster.status();
        }
    }

    /** Closes all sequencers and ends everything in progress. Calls throw a {@link ClosedException}. */
    @Override
    public void close() {
        closed = true;
        sequencers.values().forEach(Sequencer::close);
        sequencers128.values().forEach(Sequencer128::close);
        if (core != null) {
            core.close();
        }
    }

    /** The options of a client. Only {@link #servers} is required. */
    public static final class Builder {
        private final Options options = new Options();

        private Builder() {}

        /**
         * Sets the addresses of the servers: {@code http://HOST:PORT} or {@code https://HOST:PORT}, with a path
         * if a proxy needs one. Each batch is requested from a random one of those that work. They must
         * serve the same sequencers.
         *
         * @param servers at least one address
         * @return this
         */
        public Builder servers(List<String> servers) {
            options.servers = servers == null ? List.of() : new ArrayList<>(servers);
            return this;
        }

        /**
         * Sets the token that authenticates the client. Without TLS, anyone on the network path can read it.
         *
         * @param token the token
         * @return this
         */
        public Builder token(String token) {
            return token(() -> token);
        }

        /**
         * Sets what returns the token. It is called for each request, by many threads at once, and its
         * exception ends the call for which the request was made.
         *
         * @param token the source of tokens
         * @return this
         */
        public Builder token(Supplier<String> token) {
            options.token = token;
            return this;
        }

        /**
         * Sets a PEM file with the authorities of the servers' certificates, instead of those of the JDK.
         * It is read again when it has changed.
         *
         * @param file the file
         * @return this
         */
        public Builder ca(Path file) {
            options.ca = file;
            return this;
        }

        /**
         * Sets the TLS context, for client certificates for example.
         *
         * @param tls the context
         * @return this
         */
        public Builder tls(SSLContext tls) {
            options.tls = tls;
            return this;
        }

        /**
         * Sets how long one request may take.
         *
         * @param timeout the time; 5 s by default
         * @return this
         */
        public Builder timeout(Duration timeout) {
            options.timeout = timeout;
            return this;
        }

        /**
         * Sets how long a call may take, across all servers and including the pauses that they ask for.
         *
         * @param patience the time; 10 s by default
         * @return this
         */
        public Builder patience(Duration patience) {
            options.patience = patience;
            return this;
        }

        /**
         * Sets the maximum age of an ID when {@link Sequencer#next} returns it, counted from the request of its
         * batch. Older IDs are discarded. After the machine was suspended, a few IDs may be older.
         *
         * @param validity the time; 10 min by default, and at least 100 ms
         * @return this
         */
        public Builder validity(Duration validity) {
            options.validity = validity;
            return this;
        }

        /**
         * Sets how many IDs are fetched at first. The number doubles when a batch lasts less than a second, and
         * is halved, to 1 at least, when one expires less than half used.
         *
         * @param count the number; 100 by default
         * @return this
         */
        public Builder firstBatch(int count) {
            options.firstBatch = count;
            return this;
        }

        /**
         * Sets how many IDs are fetched at most.
         *
         * @param count the number; 10,000 by default, and at most 100,000
         * @return this
         */
        public Builder maxBatch(int count) {
            options.maxBatch = count;
            return this;
        }

        /**
         * Sets where it is logged that a server fails, and that it answers again.
         *
         * @param log the logger; the one named {@code com.github.firnid.client} by default
         * @return this
         */
        public Builder log(System.Logger log) {
            options.log = log;
            return this;
        }

        /**
         * Makes the client. It does not connect, so the servers may start later.
         *
         * @return the client
         * @throws IllegalArgumentException if an option is invalid; the message lists all faults
         */
        public Client build() {
            return build(Clock.SYSTEM);
        }

        Client build(Clock clock) {
            return new Client(options.copy().check(), clock);
        }
    }
}
