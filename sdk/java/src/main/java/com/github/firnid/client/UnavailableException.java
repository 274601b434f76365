package com.github.firnid.client;

import java.util.List;
import java.util.stream.Stream;

/** Thrown if no server returned IDs in time. The message has the last failure of each server. */
public final class UnavailableException extends FirnException {
    private static final long serialVersionUID = 1;

    UnavailableException(String message, Throwable cause) {
        super(null, message, cause);
    }

    /**
     * Returns the last failure of each server that was asked. They are also the suppressed exceptions of
     * this one.
     *
     * @return the failures, each with its {@link FirnException#server() server}
     */
    public List<FirnException> reasons() {
        return Stream.of(getSuppressed())
                .filter(FirnException.class::isInstance)
                .map(FirnException.class::cast)
                .toList();
    }

    @Override
    FirnException again() {
        return with(new UnavailableException(getMessage(), this));
    }
}
