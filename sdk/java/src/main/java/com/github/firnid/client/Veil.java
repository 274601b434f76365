package com.github.firnid.client;

import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Turns the IDs of a sequencer into veiled ones, which look random, and back. It is safe for use by many threads at
 * once. The documentation of Firn says what a veiled ID protects, and what it does not.
 *
 * <p>The text of a veiled ID names its key, such as {@code v1_0f4sdj2pbm8rt}, so keys can be replaced. A number
 * does not, so it needs one key for ever.
 */
public final class Veil {
    private static final Pattern KEY = Pattern.compile("(?:([1-9][0-9]{0,3}):\\s*)?((?:[0-9a-fA-F]{16}){2,4})");
    private static final Pattern TEXT = Pattern.compile("v([1-9][0-9]{0,3})_.*", Pattern.DOTALL);

    private final TreeMap<Integer, Ff1> ciphers = new TreeMap<>();

    /**
     * Makes the veil of a sequencer.
     *
     * @param keys random keys of 16, 24 or 32 bytes, by their number from 1 to 9999; the highest writes
     * @param sequencer the name of the sequencer
     * @param bits what its layout needs: 53 for {@code js53}, 63 for {@code default} and others whose IDs are
     *     positive, 64 for the rest, and 122 for {@code uuidv7}
     */
    public Veil(Map<Integer, byte[]> keys, String sequencer, int bits) {
        Client.checkName(sequencer);
        if (bits != 53 && bits != 63 && bits != 64 && bits != 122) {
            throw new IllegalArgumentException("bits is " + bits + ": it must be 53, 63, 64 or 122");
        }
        if (keys.isEmpty()) {
            throw new IllegalArgumentException("there is no key");
        }
        keys.forEach((number, key) -> {
            if (number < 1 || number > 9999) {
                throw new IllegalArgumentException("the number of a key is " + number + ": it must be from 1 to 9999");
            }
            ciphers.put(number, new Ff1(key, bits, sequencer + "/" + bits));
        });
    }

    /**
     * Parses the contents of a file of keys, as {@code firn serve --veil-keys} reads: one per line in hexadecimal,
     * with its number and a colon in front unless it is 1. Errors do not contain keys.
     *
     * @param text the contents
     * @return the keys by number
     */
    public static Map<Integer, byte[]> parseKeys(String text) {
        Map<Integer, byte[]> keys = new TreeMap<>();
        for (String line : text.lines().map(String::strip).filter(l -> !l.matches("(#.*)?")).toList()) {
            Matcher m = KEY.matcher(line);
            if (!m.matches()) {
                throw new IllegalArgumentException("a line is not a key: 32, 48 or 64 hexadecimal digits, perhaps with a"
                        + " number from 1 to 9999 and a colon in front");
            }
            int number = m.group(1) == null ? 1 : Integer.parseInt(m.group(1));
            if (keys.put(number, HexFormat.of().parseHex(m.group(2))) != null) {
                throw new IllegalArgumentException("key " + number + " occurs twice");
            }
        }
        return keys;
    }

    /**
     * Returns the veiled number of an ID. There must be only one key.
     *
     * @param id the ID, an unsigned number
     * @return the veiled ID, which fits the same columns
     */
    public long veil(long id) {
        return only().walk(id, false);
    }

    /**
     * Returns the ID of a veiled number. There must be only one key; with a wrong one, it is some other ID.
     *
     * @param veiled the veiled ID
     * @return the ID
     */
    public long unveil(long veiled) {
        return only().walk(veiled, true);
    }

    /**
     * Returns the veiled UUID, of version 8, of a UUID of version 7. There must be only one key.
     *
     * @param id the ID
     * @return the veiled ID
     */
    public UUID veil(UUID id) {
        return only().walk(id, false);
    }

    /**
     * Returns the UUID of version 7 of a veiled one. There must be only one key.
     *
     * @param veiled the veiled ID
     * @return the ID
     */
    public UUID unveil(UUID veiled) {
        return only().walk(veiled, true);
    }

    /**
     * Returns the veiled text of an ID, made with the key of the highest number.
     *
     * @param id the ID, an unsigned number
     * @return the text
     */
    public String format(long id) {
        return "v" + ciphers.lastKey() + "_" + TypedId.digits(0, newest().walk(id, false), 13);
    }

    /**
     * Is like {@link #format(long)} for a UUID of version 7.
     *
     * @param id the ID
     * @return the text
     */
    public String format(UUID id) {
        return "v" + ciphers.lastKey() + "_" + TypedId.digits(newest().walk(id, false));
    }

    /**
     * Returns the ID of a veiled text.
     *
     * @param text the text
     * @return the ID
     * @throws IllegalArgumentException if the text is invalid, or its key is not known
     */
    public long parse(String text) {
        return named(text).walk(TypedId.parseLong(text, text.indexOf('_') + 1), true);
    }

    /**
     * Is like {@link #parse} for a UUID.
     *
     * @param text the text
     * @return the ID
     */
    public UUID parse128(String text) {
        return named(text).walk(TypedId.parseUuid(text, text.indexOf('_') + 1), true);
    }

    private Ff1 only() {
        if (ciphers.size() > 1) {
            throw new IllegalStateException("a veiled number does not name its key: use a text, or one key");
        }
        return newest();
    }

    private Ff1 newest() {
        return ciphers.lastEntry().getValue();
    }

    /** Returns the cipher that a text names. */
    private Ff1 named(String text) {
        Matcher m = TEXT.matcher(text);
        if (!m.matches()) {
            throw new IllegalArgumentException("the veiled ID " + Transport.quote(text)
                    + " is invalid: it does not begin with v, the number of a key and _");
        }
        Ff1 cipher = ciphers.get(Integer.valueOf(m.group(1)));
        if (cipher == null) {
            throw new IllegalArgumentException(Transport.quote(text) + " was veiled with key " + m.group(1)
                    + ", and this key is not known");
        }
        return cipher;
    }
}
