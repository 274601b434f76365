package com.github.firnid.client;

/** Thrown if a server returned something other than the requested IDs. None of them is used. */
public final class AnswerException extends FirnException {
    private static final long serialVersionUID = 1;

    AnswerException(String server, String message, Throwable cause) {
        super(server, message, cause);
    }

    @Override
    FirnException again() {
        return with(new AnswerException(server(), getMessage(), this));
    }
}
