package com.github.firnid.client;

import java.time.Duration;

/** Thrown if a server answered that it does not fulfill the request. */
public final class ServerException extends FirnException {
    private static final long serialVersionUID = 1;

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

    /** Whether the server as a whole does not work. Most problems concern one sequencer. */
    boolean isOfServer() {
        return switch (kind) {
            case "", "unauthorized", "no-store", "foreign-host", "internal", "draining" -> true;
            default -> false;
        };
    }

    /** Returns what the user of this package can do, or "". */
    static String hint(String kind, int status, String sequencer) {
        String known = switch (kind) {
            case "unauthorized" -> "check the option token";
            case "forbidden" -> "the token needs the role generate for this sequencer: check the option token";
            case "no-sequencer" -> "create it: firn sequencer create " + sequencer;
            case "not-found" -> "check the paths in the option servers";
            case "foreign-host" ->
                "use localhost or a loopback address in the option servers, or start the server with --allow-host";
            case "batch-too-large", "bad-parameter" -> "ask for fewer IDs, or set a smaller option maxBatch";
            case "moved" -> "ask a server of that store, or bring it back: firn sequencer move";
            case "detached" -> "run firn sequencer attach " + sequencer;
            case "destroyed" -> "create it again: firn sequencer create " + sequencer;
            case "busy" -> "clients ask for more IDs than one server can make: add servers";
            case "nodes-exhausted" -> "stop a server, or choose a layout with more node bits";
            case "time-over" -> "create another sequencer, with more time bits in its layout";
            case "internal", "bad-record", "store-unavailable" -> "see the server's log";
            case "store-rolled-back" -> "run firn node fence";
            case "bad-config" -> "run firn config check on the server";
            default -> "";
        };
        if (!known.isEmpty() || !kind.isEmpty()) {
            return known;
        }
        return switch (status) {
            case 401, 403 -> "check the option token";
            case 429, 502, 503, 504 -> "";
            default ->
                status >= 300 && status < 400
                        ? "redirects are not followed, because the token would be sent along: put the target into the option servers"
                        : "is this a Firn server? Check the option servers";
        };
    }
}
