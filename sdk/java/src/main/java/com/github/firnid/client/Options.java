package com.github.firnid.client;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/** The options of a client, which {@link Client.Builder} documents. */
final class Options implements Cloneable {
    static final int MAX_COUNT = 100_000;
    private static final Duration LONGEST = Duration.ofSeconds(2_147_483); // as in the other packages

    List<String> servers = List.of();
    List<String> bases = List.of(); // of the servers' URLs
    Supplier<String> token = () -> null;
    SSLContext tls;
    Path ca;
    Duration timeout = Duration.ofSeconds(5);
    Duration patience = Duration.ofSeconds(10);
    Duration validity = Duration.ofMinutes(10);
    int firstBatch = 100;
    int maxBatch = 10_000;
    System.Logger log = System.getLogger("com.github.firnid.client");

    Options copy() {
        try {
            return (Options) clone();
        } catch (CloneNotSupportedException e) {
            throw new AssertionError(e);
        }
    }

    /** Checks how many IDs are requested. */
    static int count(int n) {
        if (n < 1) {
            throw new IllegalArgumentException("count is " + n + ": it must be at least 1");
        }
        return n;
    }

    private static void inRange(List<String> faults, String name, int n) {
        if (n < 1 || n > MAX_COUNT) {
            faults.add(name + " is " + n + ": it must be from 1 to " + MAX_COUNT);
        }
    }

    /** Returns checked options. The exception lists all faults. */
    Options check() {
        List<String> faults = new ArrayList<>();
        List<String> all = new ArrayList<>();
        boolean secure = false;
        if (servers.isEmpty()) {
            faults.add("servers is empty: name at least one, such as http://127.0.0.1:3476");
        }
        Set<String> seen = new HashSet<>();
        for (String server : servers) {
            try {
                String base = base(String.valueOf(server));
                secure |= base.startsWith("https:");
                all.add(base);
                if (!seen.add(base)) {
                    faults.add("server \"" + server + "\" occurs twice");
                }
            } catch (URISyntaxException e) {
                faults.add("server \"" + server + "\": " + e.getReason());
            }
        }
        if (tls != null && ca != null) {
            faults.add("both tls and ca are set: omit one of them");
        } else if ((tls != null || ca != null) && !secure && faults.isEmpty()) {
            faults.add((ca != null ? "ca" : "tls") + " is set, but no server is https://");
        }
        positive(faults, "timeout", timeout);
        positive(faults, "patience", patience);
        positive(faults, "validity", validity);
        if (validity != null && validity.compareTo(Duration.ofMillis(100)) < 0) {
            faults.add("validity is " + validity + ": it must be at least 100 ms; take returns IDs made now");
        }
        if (token == null || log == null) {
            faults.add((token == null ? "token" : "log") + " is null: omit it instead");
        }
        inRange(faults, "maxBatch", maxBatch);
        inRange(faults, "firstBatch", firstBatch);
        if (ca != null && faults.isEmpty()) {
            try {
                tls = Authorities.context(ca);
            } catch (FirnException e) {
                faults.add("ca: " + e.getMessage());
            }
        }
        if (!faults.isEmpty()) {
            throw new IllegalArgumentException(String.join("; ", faults));
        }
        bases = List.copyOf(all);
        return this;
    }

    private static void positive(List<String> faults, String option, Duration d) {
        if (d == null || d.isNegative() || d.isZero()) {
            faults.add(option + " is " + d + ": it must be positive");
        } else if (d.compareTo(LONGEST) > 0) {
            faults.add(option + " is " + d + ": it must be at most " + Transport.text(LONGEST));
        }
    }

    /** Returns the beginning of the URLs of a server. */
    private static String base(String server) throws URISyntaxException {
        String want = "a server is http://HOST:PORT or https://HOST:PORT";
        URI u;
        try {
            u = new URI(server);
        } catch (URISyntaxException e) {
            throw new URISyntaxException(server, want);
        }
        String scheme = u.getScheme() == null ? "" : u.getScheme().toLowerCase(Locale.ROOT);
        if (scheme.equals("firn") || scheme.equals("firns")) {
            throw new URISyntaxException(server, "this package speaks HTTP: " + want);
        } else if (!scheme.equals("http") && !scheme.equals("https")) {
            throw new URISyntaxException(server, want);
        } else if (u.getHost() == null) {
            throw new URISyntaxException(server, "the host is missing or has a character like _: " + want);
        } else if (u.getPort() == 0 || u.getPort() > 65535) {
            throw new URISyntaxException(server, "the port is not a number from 1 to 65535");
        } else if (u.getRawUserInfo() != null) {
            throw new URISyntaxException(server, "a user name is not allowed: use the option token");
        } else if (u.getRawQuery() != null || u.getRawFragment() != null) {
            throw new URISyntaxException(server, "a query or a fragment is not allowed: " + want);
        }
        return scheme + "://" + u.getRawAuthority() + u.getRawPath().replaceFirst("/+$", "");
    }
}
