package com.github.firnid.client;

import static java.util.Map.entry;

import java.time.Duration;
import java.util.Map;

/** Thrown if a server answered that it does not fulfill the request. */
public final class ServerException extends FirnException {
    private static final long serialVersionUID = 1;

    private static final String BETWEEN = "something between this program and the server ";

    /** What the user of this package can do about some kinds of problems. */
    private static final Map<String, String> HINTS = Map.ofEntries(
            entry("bad-parameter", "ask for fewer IDs, or set a smaller option maxBatch"),
            entry("unexpected-body", BETWEEN + "adds a body to requests"),
            entry("unexpected-range", BETWEEN + "asks for parts of answers"),
            entry("batch-too-large", "ask for fewer IDs, or set a smaller option maxBatch"),
            entry("cross-site", BETWEEN + "adds the headers of a browser"),
            entry("unauthorized", "check the option token"),
            entry("forbidden", "the token needs the role generate for this sequencer: check the option token"),
            entry("no-sequencer", "create it: firn sequencer create NAME"),
            entry("no-store", "start the server with --store"),
            entry("not-found", "check the paths in the option servers"),
            entry("foreign-host",
                    "use localhost or a loopback address in the option servers, or start the server with --allow-host"),
            entry("bad-config", "run firn config check on the server"),
            entry("internal", "see the server's log"),
            entry("time-over", "create another sequencer, with more time bits in its layout"),
            entry("busy", "clients ask for more IDs than one server can make: add servers"),
            entry("clock", "correct the server's clock"),
            entry("clock-ahead", "compare the server's clock with a time server"),
            entry("nodes-exhausted", "stop a server, or choose a layout with more node bits"),
            entry("store-unavailable", "see the server's log"),
            entry("store-rolled-back", "run firn node fence"),
            entry("moved", "ask a server of that store, or bring it back: firn sequencer move"),
            entry("detached", "run firn sequencer attach NAME"),
            entry("destroyed", "create it again: firn sequencer create NAME"),
            entry("bad-record", "see the server's log"),
            entry("too-many-names", "start the server with a higher --max-sequencers, or use fewer names"),
            entry("rate-limited", "ask less often, or have the limit of this token raised"));

    /** The HTTP status. */
    private final int status;

    /** The kind of the problem, or "". */
    private final String kind;

    /** What is wrong. */
    private final String detail;

    /** When to ask again. */
    private final Duration retryAfter;

    ServerException(
            String server, String message, int status, String kind, String detail, Duration retryAfter, Throwable cause) {
        super(server, message, cause);
        this.status = status;
        this.kind = kind;
        this.detail = detail;
        this.retryAfter = retryAfter;
    }

    /**
     * Returns the HTTP status of the answer.
     *
     * @return the status, such as 404
     */
    public int status() {
        return status;
    }

    /**
     * Returns the kind of the problem, one of those in the documentation of the HTTP API.
     *
     * @return the kind, such as {@code no-sequencer}; "" if the answer does not come from a Firn server
     */
    public String kind() {
        return kind;
    }

    /**
     * Returns what is wrong and what would be right, in the words of the server.
     *
     * @return the text, or the beginning of an answer that is not a problem of a Firn server
     */
    public String detail() {
        return detail;
    }

    /**
     * Returns how long the server asks to wait before the next request.
     *
     * @return the time; zero if the server named none
     */
    public Duration retryAfter() {
        return retryAfter;
    }

    @Override
    FirnException again() {
        return with(new ServerException(server(), getMessage(), status, kind, detail, retryAfter, this));
    }

    /** Whether the same server may fulfill the same request later; 502 and 504 come from a proxy. */
    boolean isTemporary() {
        return switch (status) {
            case 408, 429, 502, 503, 504 -> true;
            default -> false;
        };
    }

    /** Whether the reason is the request, so that other servers probably answer the same. */
    boolean isOfRequest() {
        return status >= 400 && status < 500 && !isTemporary() && !isOfServer();
    }

    /**
     * Whether the server as a whole does not work. Most problems concern one sequencer; one without a kind does not
     * come from a Firn server.
     */
    boolean isOfServer() {
        return switch (kind) {
            case "", "unauthorized", "no-store", "foreign-host", "internal", "draining" -> true;
            default -> false;
        };
    }

    /** Returns what the user of this package can do, or "". */
    static String hint(String kind, int status, String sequencer, String detail) {
        if (!kind.isEmpty()) {
            return HINTS.getOrDefault(kind, "").replace("NAME", sequencer);
        } else if (status == 400 && detail.contains("HTTPS server")) {
            return "the server speaks TLS: use https:// in the option servers";
        } else if (status == 401 || status == 403) {
            return "check the option token";
        } else if (status >= 300 && status < 400) {
            return "redirects are not followed, because the token would be sent along: put the target into the option servers";
        }
        return status < 500 && status != 429 ? "is this a Firn server? Check the option servers" : "";
    }
}
