package com.github.firnid.client;

/**
 * The base of all exceptions of this package, except for invalid options and arguments, which are
 * {@link IllegalArgumentException}s. Thrown itself if no answer arrived: the connection failed, the
 * request took too long, the token is unavailable, or the thread was interrupted.
 */
public class FirnException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The server that it is about, or null. */
    private final String server;

    FirnException(String server, String message, Throwable cause) {
        super(message, cause);
        this.server = server;
    }

    /**
     * Returns the server that the exception is about.
     *
     * @return the server as in the options of the client; null if it is not about one
     */
    public String server() {
        return server;
    }

    /** Returns the same exception with the stack of the caller, because several callers may wait for one request. */
    FirnException again() {
        return with(new FirnException(server, getMessage(), this));
    }

    /** Whether a server did not answer, for an unknown reason. */
    boolean isSilence() {
        return getClass() == FirnException.class && getCause() == null;
    }

    final FirnException with(FirnException copy) {
        for (Throwable t : getSuppressed()) {
            copy.addSuppressed(t);
        }
        return copy;
    }
}
