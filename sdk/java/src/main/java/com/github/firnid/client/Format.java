package com.github.firnid.client;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How IDs are requested and read. Anything other than exactly the requested number of IDs is an error.
 *
 * @param query what follows the count in the URL
 * @param accept the media type of the answer
 * @param most the maximum size of an ID in the answer, in bytes
 * @param fallback the format to use if the layout has no runs, or null if this one has none either
 */
record Format<T>(String query, String accept, int most, Format<T> fallback, Reader<T> reader) {
    /** Reads an answer that should have this many IDs; the message of the exception says what is wrong. */
    interface Reader<T> {
        T read(byte[] answer, int count) throws ProtocolException;
    }

    /** A run, and what follows it. Newer servers may add members. */
    private static final Pattern RUN = Pattern.compile("(?:\\A\\{\"runs\":\\[|\\G(?!\\A))"
            + "\\{\"first\":\"([0-9a-f]{16}|[0-9a-f]{32})\",\"step\":\"([1-9][0-9]{0,18})\",\"count\":([1-9][0-9]{0,5})(?:,[^{}]*)?\\}"
            + "(,|\\](?:,[^{}]*)?\\}\\s*\\z)");

    /** Runs of IDs with 64 bits. Layouts with random bits have none. */
    static Format<long[]> runs(Format<long[]> packed, Predicate<long[]> isRepeat) {
        return new Format<>("&runs=true&format=hex", "application/json", 128, packed, (answer, count) ->
                check(parse(new String(answer, StandardCharsets.US_ASCII), count), 1, isRepeat));
    }

    private static long[] parse(String answer, int count) throws ProtocolException {
        long[] ids = new long[count];
        int size = 0;
        Matcher m = RUN.matcher(answer);
        for (boolean more = true; more; more = m.group(4).equals(",")) {
            if (!m.find()) {
                throw new ProtocolException("its runs cannot be read: " + Transport.quote(answer));
            }
            if (m.group(1).length() > 16) {
                throw wrongWidth(2);
            }
            int end = size + Integer.parseInt(m.group(3));
            if (end > count) {
                throw new ProtocolException("it has more IDs than the " + count + " requested");
            }
            long id = Long.parseUnsignedLong(m.group(1), 16);
            long step = Long.parseUnsignedLong(m.group(2));
            if (Long.compareUnsigned(end - size - 1, Long.divideUnsigned(-1 - id, step)) > 0) {
                throw new ProtocolException("a run exceeds the greatest ID");
            }
            for (; size < end; id += step) {
                ids[size++] = id;
            }
        }
        if (size < count) {
            throw new ProtocolException("it has " + size + " IDs, not the " + count + " requested");
        }
        return ids;
    }

    /** IDs of one or two longs, big-endian, with nothing between them. */
    static Format<long[]> packed(int width, Predicate<long[]> isRepeat) {
        return new Format<>("", "application/octet-stream", 16, null, (answer, count) -> {
            if (answer.length == 8 * (3 - width) * count) {
                throw wrongWidth(3 - width);
            }
            if (answer.length != 8 * width * count) {
                throw new ProtocolException("it has " + answer.length + " bytes, not the " + 8 * width * count
                        + " of " + count + " IDs of " + 64 * width + " bits");
            }
            long[] ids = new long[width * count];
            ByteBuffer.wrap(answer).asLongBuffer().get(ids);
            return check(ids, width, isRepeat);
        });
    }

    private static ProtocolException wrongWidth(int width) {
        return new ProtocolException("the sequencer has IDs of " + 64 * width + " bits: use the method "
                + (width == 1 ? "sequencer" : "sequencer128") + " of the client");
    }

    private static long[] check(long[] ids, int width, Predicate<long[]> isRepeat) throws ProtocolException {
        if (!ascend(ids, width)) {
            Set<UUID> seen = new HashSet<>();
            for (int i = 0; i < ids.length; i += width) {
                UUID id = new UUID(width == 1 ? 0 : ids[i], ids[i + width - 1]);
                if (id.getMostSignificantBits() == 0 && id.getLeastSignificantBits() == 0) {
                    throw new ProtocolException("it has the ID 0, which is never made");
                }
                if (!seen.add(id)) {
                    throw new ProtocolException("it contains an ID twice");
                }
            }
        }
        if (isRepeat.test(ids)) {
            throw new ProtocolException("it begins with the same ID as the previous one: something between"
                    + " this program and the server caches answers");
        }
        return ids;
    }

    /** Whether each ID is greater than the previous one, and the first is not 0, as in most layouts. */
    private static boolean ascend(long[] ids, int width) {
        long high = 0;
        long low = 0;
        for (int i = 0; i < ids.length; i += width) {
            long nextHigh = width == 1 ? 0 : ids[i];
            long nextLow = ids[i + width - 1];
            int order = Long.compareUnsigned(high, nextHigh);
            if (order > 0 || order == 0 && Long.compareUnsigned(low, nextLow) >= 0) {
                return false;
            }
            high = nextHigh;
            low = nextLow;
        }
        return true;
    }

    /** IDs as text, each followed by a newline. */
    static Format<List<String>> text(String format) {
        if (format == null || !format.matches("[a-z0-9]+") || format.equals("raw")) {
            throw new IllegalArgumentException("format is \"" + format
                    + "\": it must be dec, hex, bin, uuid, typed, veiled, base2 to base62, or flake2 to flake62");
        }
        int most = 129; // 128 bits in base 2, and the newline
        return new Format<>("&format=" + format, "text/plain", most, null, (answer, count) -> {
            List<String> ids = List.of(new String(answer, StandardCharsets.US_ASCII).split("\n", -1));
            if (ids.size() != count + 1 || !ids.get(count).isEmpty()) {
                throw new ProtocolException("it has not the " + count + " lines of the requested IDs");
            }
            ids = ids.subList(0, count);
            if (Set.copyOf(ids).size() != count || ids.contains("")) {
                throw new ProtocolException("it has an empty line, or contains an ID twice");
            }
            return ids;
        });
    }
}
