package com.github.firnid.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.ConnectException;
import java.net.ProtocolException;
import java.net.URI;
import java.net.UnknownHostException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;

/** Sends single requests over HTTP, and checks the answers. */
final class Transport {
    /** How much of a problem is read. */
    private static final int PROBLEM = 16 << 10;

    private static final String AGENT = "firn-java";

    private final Core core;

    Transport(Core core) {
        this.core = core;
    }

    /** Requests IDs from a server. The future fails with a FirnException; cancelling it ends the request. */
    <T> CompletableFuture<T> request(int server, String name, int count, Format<T> format) {
        String at = core.options.servers.get(server);
        String place = "\"" + name + "\" at " + at + ": ";
        // HttpClient.send takes half as long as sendAsync, which changes threads more often.
        CompletableFuture<T> result = core.run(() -> send(server, at, place, name, count, format));
        Future<?> timer = core.after(core.options.timeout.toNanos(), () -> result.completeExceptionally(
                new FirnException(at, place + "no answer after " + text(core.options.timeout) + ", the option timeout", null)));
        result.whenComplete((ids, e) -> timer.cancel(false));
        return result;
    }

    private <T> T send(int server, String at, String place, String name, int count, Format<T> format) {
        String nonce = HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong())
                + HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
        HttpRequest.Builder b = HttpRequest.newBuilder(URI.create(core.options.bases.get(server)
                        + "/v1/sequencers/" + name + "/next?count=" + count + format.query()))
                .POST(HttpRequest.BodyPublishers.noBody())
                .header("Accept", format.accept())
                .header("User-Agent", AGENT)
                .header("Firn-Nonce", nonce);
        String token = token();
        if (token != null) {
            b.header("Authorization", "Bearer " + token);
        }
        long millis = core.clock.millis();
        HttpResponse<byte[]> r;
        try {
            r = core.http.send(b.build(), info -> new Body(info, count, format.most()));
        } catch (IOException e) {
            throw explain(e, at, place);
        } catch (InterruptedException e) {
            throw new CancellationException();
        }
        long took = core.clock.millis() - millis;
        if (took >= Math.max(core.options.timeout.toMillis(), core.options.validity.toMillis())) {
            throw new FirnException(at, place + "the answer arrived too late: the machine was suspended", null);
        }
        return read(r, at, place, name, nonce, count, format);
    }

    /** Returns the token, or null. */
    private String token() {
        String token;
        try {
            token = core.options.token.get();
        } catch (Throwable e) { // Kotlin throws checked exceptions too
            throw new TokenException("get the token: " + e, e);
        }
        if (token == null || token.isBlank()) {
            return null;
        }
        token = token.strip();
        if (token.chars().anyMatch(c -> c <= ' ' || c >= 0x7f)) {
            throw new TokenException("the option token has a character that no token has, such as a space or a newline", null);
        }
        return token;
    }

    /** The failure of the option token, which ends a call: it concerns no server. */
    static final class TokenException extends FirnException {
        private static final long serialVersionUID = 1;

        TokenException(String message, Throwable cause) {
            super(null, message, cause);
        }
    }

    /** A mismatch of certificates or protocols, which a retry does not change. */
    static final class TlsException extends FirnException {
        private static final long serialVersionUID = 1;

        TlsException(String server, String message, Throwable cause) {
            super(server, message, cause);
        }
    }

    private static <T> T read(
            HttpResponse<byte[]> r, String at, String place, String name, String nonce, int count, Format<T> format) {
        if (r.statusCode() != 200) {
            throw problem(r, at, place, name);
        }
        String wrong;
        HttpHeaders h = r.headers();
        String media = media(h);
        // An older server, or one behind a proxy that drops the header, answers without it.
        List<String> nonces = h.allValues("Firn-Nonce");
        if (!nonces.isEmpty() && !nonces.equals(List.of(nonce))) {
            wrong = "it answers another request: something between this program and the server caches answers or mixes them up";
        } else if (h.firstValue("Content-Length").isEmpty() && h.firstValue("Transfer-Encoding").isEmpty()) {
            wrong = "it has no length, so it may be cut";
        } else if (!media.equals(format.accept())) {
            wrong = "it is " + quote(media) + ", not " + format.accept() + ": is this a Firn server? Check the option servers";
        } else {
            try {
                return format.reader().read(r.body(), count);
            } catch (ProtocolException e) {
                wrong = e.getMessage();
            }
        }
        throw new AnswerException(at, place + "the answer cannot be used: " + wrong, null);
    }

    private static String media(HttpHeaders h) {
        return h.firstValue("Content-Type").orElse("").replaceFirst(";.*", "").strip();
    }

    private static ServerException problem(HttpResponse<byte[]> r, String at, String place, String name) {
        String body = new String(r.body(), StandardCharsets.UTF_8);
        String kind = "";
        String detail = "";
        String location = r.headers().firstValue("Location").orElse("");
        if (media(r.headers()).equals("application/problem+json")) {
            String type = printable(member(body, "type"));
            kind = type.startsWith("urn:firn:problem:") ? type.substring("urn:firn:problem:".length()) : "";
            detail = printable(member(body, "detail"));
            if (detail.isEmpty()) {
                detail = printable(member(body, "title"));
            }
        } else if (!location.isEmpty()) {
            detail = "a redirect to " + quote(location);
        } else if (!body.isBlank()) {
            detail = "the answer begins with " + quote(body.strip());
        }
        StringBuilder message = new StringBuilder(place).append(r.statusCode());
        String hint = ServerException.hint(kind, r.statusCode(), name, detail);
        message.append(kind.isEmpty() ? "" : " " + kind);
        message.append(detail.isEmpty() ? "" : ": " + detail);
        message.append(hint.isEmpty() ? "" : "; " + hint);
        Duration wish = retryAfter(r.headers().firstValue("Retry-After").orElse(""));
        return new ServerException(at, message.toString(), r.statusCode(), kind, detail, wish, null);
    }

    /** Returns a string member of a problem, or "". Members of problems are not nested. */
    private static String member(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\"\\s*:\\s*\"((?:[^\"\\\\]|\\\\.)*+)\"").matcher(json);
        if (!m.find()) {
            return "";
        }
        return Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))").matcher(m.group(1)).replaceAll(e -> {
            String c = e.group(1) != null
                    ? String.valueOf((char) Integer.parseInt(e.group(1), 16))
                    : "bfnrt".contains(e.group(2)) ? " " : e.group(2);
            return Matcher.quoteReplacement(c);
        });
    }

    /** Parses seconds. Returns zero for anything else, such as a date. */
    private static Duration retryAfter(String text) {
        return text.matches("[0-9]{1,9}") ? Duration.ofSeconds(Long.parseLong(text)) : Duration.ZERO;
    }

    /** What a part of a message of the JDK means, and what to do. The first that occurs applies. */
    private static final Map<String, String> ADVICE = new LinkedHashMap<>();

    static {
        ADVICE.put("content-length", "the answer was cut off");
        ADVICE.put("EOF reached", "the answer was cut off");
        ADVICE.put("refused", "connection refused: does the server run there?");
        ADVICE.put("received no bytes", "the server closed the connection");
        ADVICE.put("terminated the handshake", "the server closed the connection");
        ADVICE.put("Connection reset", "the server closed the connection");
        ADVICE.put("connect timed out", "the connection took longer than the option timeout");
        ADVICE.put("unrecognized SSL message", "the server does not speak TLS: use http:// in the option servers");
        ADVICE.put("plaintext", "the server does not speak TLS: use http:// in the option servers");
        ADVICE.put("PKIX", "the server's certificate is not trusted: set the option ca to its authority");
        ADVICE.put("No trusted", "the server's certificate is not trusted: set the option ca to its authority");
        ADVICE.put("No subject", "the server's certificate is for another name: check the option servers");
        ADVICE.put("No name", "the server's certificate is for another name: check the option servers");
        ADVICE.put("certificate", "the server wants a client certificate that it trusts: load one into the option tls");
    }

    /** Explains the failure of a connection. */
    private static FirnException explain(IOException e, String at, String place) {
        String why = e.getMessage() == null ? "" : e.getMessage();
        if (e instanceof Oversize || e instanceof ProtocolException || why.contains("status line")) {
            String what = printable(why) + ": is this a Firn server? Check the option servers";
            return new AnswerException(at, place + "the answer cannot be used: " + what, e);
        }
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof UnresolvedAddressException || t instanceof UnknownHostException) {
                return new FirnException(at, place + "unknown host: check the option servers", e);
            }
        }
        if (e instanceof ConnectException && why.isEmpty()) {
            why = "refused";
        }
        String reason = why;
        String advice = ADVICE.keySet().stream().filter(reason::contains).findFirst().map(ADVICE::get).orElse(null);
        if (!(e instanceof SSLException)) {
            return new FirnException(at, place + (advice == null ? printable(e.toString()) : advice), e);
        } else if (advice == null) {
            advice = "TLS failed: check the options ca and tls";
        }
        String message = place + advice + " (" + printable(why) + ")";
        boolean lasting = advice.startsWith("the server's certificate") || advice.contains("not speak TLS");
        return lasting ? new TlsException(at, message, e) : new FirnException(at, message, e);
    }

    /** Replaces what a terminal might interpret. */
    private static String printable(String text) {
        return text.replaceAll("[\\p{Cntrl}\\p{Cn}\\p{Cf}]", "\uFFFD");
    }

    /** Quotes a text from a server, truncated to fit a log line. */
    static String quote(String text) {
        int most = 80;
        String shown = text.length() > most ? text.substring(0, most) : text;
        return "\"" + printable(shown) + "\"" + (text.length() > most ? "…" : "");
    }

    static String text(Duration d) {
        return d.getNano() == 0
                ? d.toSeconds() + " s"
                : BigDecimal.valueOf(d.toNanos(), 6).stripTrailingZeros().toPlainString() + " ms";
    }

    /** Thrown for a body with more bytes than the requested IDs have. */
    private static final class Oversize extends IOException {
        private static final long serialVersionUID = 1;

        Oversize(long most) {
            super("it has more than " + most + " bytes, the maximum for the requested IDs");
        }
    }

    /** Reads a body up to a maximum size. */
    private static final class Body implements HttpResponse.BodySubscriber<byte[]> {
        private final CompletableFuture<byte[]> result = new CompletableFuture<>();
        private final ByteArrayOutputStream data = new ByteArrayOutputStream();
        private final boolean whole; // whether the rest of a longer body is an error
        private final long most;
        private Flow.Subscription subscription;

        Body(HttpResponse.ResponseInfo info, int count, int perId) {
            whole = info.statusCode() == 200;
            most = whole ? (long) count * perId : PROBLEM;
        }

        @Override
        public CompletionStage<byte[]> getBody() {
            return result;
        }

        @Override
        public void onSubscribe(Flow.Subscription s) {
            subscription = s;
            s.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(List<ByteBuffer> buffers) {
            for (ByteBuffer b : buffers) {
                byte[] part = new byte[(int) Math.min(b.remaining(), most - data.size())];
                b.get(part);
                data.writeBytes(part);
                if (b.hasRemaining()) {
                    subscription.cancel();
                    if (whole) {
                        result.completeExceptionally(new Oversize(most));
                    }
                    onComplete();
                    return;
                }
            }
        }

        @Override
        public void onError(Throwable t) {
            result.completeExceptionally(t);
        }

        @Override
        public void onComplete() {
            result.complete(data.toByteArray());
        }
    }
}
