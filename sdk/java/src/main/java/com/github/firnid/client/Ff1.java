package com.github.firnid.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.UUID;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** FF1 of NIST SP 800-38G with AES and radix 2. A number is two halves; the second one may be a bit longer. */
final class Ff1 {
    private static final int ROUNDS = 10;
    private static final int BLOCK = 16;

    private final Cipher cipher; // AES-CBC, whose last block is the hash of a round; guarded by this
    private final ByteBuffer message; // P and Q of the standard; guarded by this
    private final int bits;
    private final int bytes; // of a half
    private final long[] masks = new long[2];

    Ff1(byte[] key, int bits, String tweak) {
        if (key.length != 16 && key.length != 24 && key.length != 32) {
            throw new IllegalArgumentException("the key has " + key.length + " bytes: use 16, 24 or 32");
        }
        try {
            cipher = Cipher.getInstance("AES/CBC/NoPadding");
            cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new IvParameterSpec(new byte[BLOCK]));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("AES is unavailable", e);
        }
        this.bits = bits;
        int first = bits / 2;
        int second = bits - first;
        masks[0] = (1L << first) - 1;
        masks[1] = (1L << second) - 1;
        bytes = (second + 7) / 8;
        byte[] name = tweak.getBytes(StandardCharsets.UTF_8);
        int size = (BLOCK + name.length + 1 + bytes + BLOCK - 1) / BLOCK * BLOCK;
        message = ByteBuffer.allocate(size).put(new byte[] {1, 2, 1, 0, 0, 2, ROUNDS, (byte) first});
        message.putInt(bits).putInt(name.length).put(name);
    }

    /** Veils an ID, or returns that of a veiled one. The numbers from 1 are permuted: 0 is not an ID. */
    long walk(long id, boolean back) {
        checkBits(bits != 122, 64);
        long most = -1L >>> 64 - bits;
        if (id == 0 || Long.compareUnsigned(id, most) > 0) {
            throw new IllegalArgumentException((back ? "veiled ID " : "ID ") + Long.toUnsignedString(id)
                    + " is outside of 1 to " + Long.toUnsignedString(most));
        }
        int low = bits - bits / 2;
        long[] half = walk(id >>> low, id & (1L << low) - 1, back);
        return half[0] << low | half[1];
    }

    /** Is the same for a UUID of version 7, which is veiled as one of version 8. */
    UUID walk(UUID id, boolean back) {
        checkBits(bits == 122, 128);
        int from = back ? 8 : 7;
        if (id.variant() != 2 || id.version() != from) {
            throw new IllegalArgumentException((back ? "veiled ID " : "ID ") + id + " is not a UUID of version " + from);
        }
        // 60 and 62 free bits around version and variant, as halves of 61.
        long top = id.getMostSignificantBits();
        top = top >>> 16 << 12 | top & 0xfff;
        long low = id.getLeastSignificantBits() << 2 >>> 2;
        if (top == 0 && low == 0) {
            throw new IllegalArgumentException(id + " has no bits besides version and variant");
        }
        long[] half = walk(top << 1 | low >>> 61, low & masks[1], back);
        top = half[0] >>> 1;
        low = half[0] << 61 | half[1];
        return new UUID(top >>> 12 << 16 | 15L - from << 12 | top & 0xfff, 2L << 62 | low << 2 >>> 2);
    }

    private void checkBits(boolean ok, int got) {
        if (!ok) {
            throw new IllegalArgumentException("the ID has " + got + " bits, but this veil is for " + bits);
        }
    }

    private long[] walk(long a, long b, boolean back) {
        long[] half = {a, b};
        do {
            if (back) {
                decrypt(half);
            } else {
                encrypt(half);
            }
        } while (half[0] == 0 && half[1] == 0);
        return half;
    }

    private synchronized void encrypt(long[] half) {
        for (int i = 0; i < ROUNDS; i++) {
            long sum = half[0] + round(i, half[1]) & masks[i % 2];
            half[0] = half[1];
            half[1] = sum;
        }
    }

    private synchronized void decrypt(long[] half) {
        for (int i = ROUNDS - 1; i >= 0; i--) {
            long rest = half[1] - round(i, half[0]) & masks[i % 2];
            half[1] = half[0];
            half[0] = rest;
        }
    }

    private long round(int i, long half) {
        int end = message.capacity();
        message.put(end - bytes - 1, (byte) i);
        for (int k = 1; k <= bytes; k++) {
            message.put(end - k, (byte) (half >>> 8 * (k - 1)));
        }
        try {
            byte[] hash = cipher.doFinal(message.array());
            // The standard uses 4 bytes more than a half has, in words of 4; the mask removes the upper ones.
            return ByteBuffer.wrap(hash).getLong(end - BLOCK + (bytes + 3) / 4 * 4 - 4);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }
}
