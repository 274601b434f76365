/** Unique, time-ordered IDs from servers that run {@code firn serve}. */
module com.github.firnid.client {
    requires java.net.http;

    exports com.github.firnid.client;
}
