package com.github.firnid.client;

/** Thrown by calls of a sequencer after it or its client was closed. */
public final class ClosedException extends FirnException {
    private static final long serialVersionUID = 1;

    ClosedException(String message, Throwable cause) {
        super(null, message, cause);
    }

    @Override
    FirnException again() {
        return with(new ClosedException(getMessage(), this));
    }
}
