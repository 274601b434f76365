package com.github.firnid.client;

import java.util.UUID;

/**
 * IDs as typed text: a prefix that says what they identify, an underscore, and the ID in Crockford's base32 in
 * lower case, such as {@code order_03887nf7a8003}. There are 13 digits for 64 bits and 26 for 128. Texts of one
 * prefix sort like their IDs. The text of a UUID of version 7 is a TypeID, version 0.3.
 */
public final class TypedId {
    private static final String DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
    private static final int SHORT = 13;
    private static final int LONG = 26;

    private TypedId() {}

    /**
     * Returns the typed text of an ID with 64 bits.
     *
     * @param prefix 1 to 63 characters of a-z and _, beginning and ending with a letter; "" for only the digits
     * @param id the ID, an unsigned number
     * @return the text
     */
    public static String format(String prefix, long id) {
        return begin(prefix) + digits(0, id, SHORT);
    }

    /**
     * Returns the typed text of an ID with 128 bits.
     *
     * @param prefix as for 64 bits
     * @param id the ID
     * @return the text
     */
    public static String format(String prefix, UUID id) {
        return begin(prefix) + digits(id);
    }

    /**
     * Parses the typed text of an ID with 64 bits.
     *
     * @param prefix the prefix that the text must have; "" for none
     * @param text the text
     * @return the ID
     * @throws IllegalArgumentException if the text is not exactly what {@code format} returns
     */
    public static long parse(String prefix, String text) {
        return parseLong(text, cut(prefix, text));
    }

    /**
     * Parses the typed text of an ID with 128 bits.
     *
     * @param prefix as for 64 bits
     * @param text the text
     * @return the ID
     */
    public static UUID parse128(String prefix, String text) {
        return parseUuid(text, cut(prefix, text));
    }

    private static String begin(String prefix) {
        if (prefix.isEmpty()) {
            return "";
        }
        checkPrefix(prefix);
        return prefix + "_";
    }

    private static void checkPrefix(String prefix) {
        if (!prefix.matches("[a-z]([a-z_]{0,61}[a-z])?")) {
            throw new IllegalArgumentException("the prefix " + Transport.quote(prefix)
                    + " is invalid: it must have 1 to 63 characters of a-z and _, and begin and end with a letter");
        }
    }

    /** Checks the prefix of a text, and returns where the digits begin. */
    private static int cut(String prefix, String text) {
        int last = text.lastIndexOf('_');
        String got = last < 0 ? "" : text.substring(0, last);
        if (last >= 0) {
            checkPrefix(got);
        }
        if (!got.equals(prefix)) {
            throw fail(text, "its prefix is \"" + got + "\", not " + Transport.quote(prefix));
        }
        return last + 1;
    }

    static String digits(UUID id) {
        return digits(id.getMostSignificantBits(), id.getLeastSignificantBits(), LONG);
    }

    static String digits(long high, long low, int size) {
        char[] all = new char[size];
        for (int i = size - 1; i >= 0; i--) {
            all[i] = DIGITS.charAt((int) low & 31);
            low = low >>> 5 | high << 59;
            high >>>= 5;
        }
        return new String(all);
    }

    /** Parses the digits from an offset on. */
    static long parseLong(String text, int start) {
        return parse(text, start, SHORT, 'f').getLeastSignificantBits();
    }

    static UUID parseUuid(String text, int start) {
        return parse(text, start, LONG, '7');
    }

    private static UUID parse(String text, int start, int size, char most) {
        long high = 0;
        long low = 0;
        for (int i = start; i < text.length(); i++) {
            int digit = DIGITS.indexOf(text.charAt(i));
            if (digit < 0) {
                throw fail(text, notADigit(text.charAt(i), i));
            }
            high = high << 5 | low >>> 59;
            low = low << 5 | digit;
        }
        int got = text.length() - start;
        if (got != size) {
            throw fail(text, "it has " + got + " digits after the prefix, not the " + size + " of " + 64 * size / SHORT + " bits");
        }
        if (text.charAt(start) > most) {
            throw fail(text, "'" + text.charAt(start) + "' at offset " + start + " is more than '" + most
                    + "': the number does not fit " + 64 * size / SHORT + " bits");
        }
        return new UUID(high, low);
    }

    private static String notADigit(char c, int offset) {
        char lower = Character.toLowerCase(c);
        String place = Transport.quote(String.valueOf(c)) + " at offset " + offset;
        if (c != lower && DIGITS.indexOf(lower) >= 0) {
            return place + " is in upper case; it may mean '" + lower + "'";
        }
        String hint = switch (lower) {
            case 'i', 'l' -> "; it may mean '1'";
            case 'o' -> "; it may mean '0'";
            case 'u' -> "; it may mean 'v'";
            default -> "; digits are " + DIGITS;
        };
        return place + " is not a digit" + hint;
    }

    private static IllegalArgumentException fail(String text, String reason) {
        return new IllegalArgumentException("the ID " + Transport.quote(text) + " is invalid: " + reason);
    }
}
