import java.io.*;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import org.bouncycastle.crypto.fpe.FPEFF1Engine;
import org.bouncycastle.crypto.params.*;

/**
 * Writes bouncycastle.bin: the results of 10,000 encryptions with FF1 at radix 2 by
 * Bouncy Castle (org.bouncycastle:bcprov-jdk18on), 8 bytes each for 53, 63 and 64 bits,
 * and 16 for 122. TestBouncyCastle derives the same inputs.
 */
public class Cases {
    static byte[] hash(String text) throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.US_ASCII));
    }

    public static void main(String[] args) throws Exception {
        int[] widths = {53, 63, 64, 122};
        try (OutputStream out = new BufferedOutputStream(new FileOutputStream(args[0]))) {
            for (int i = 0; i < 10000; i++) {
                int n = widths[i % 4];
                byte[] key = Arrays.copyOf(hash("key " + i), 16 + 8 * (i % 3));
                byte[] tweak = ("orders-" + i + "/" + n).getBytes(StandardCharsets.US_ASCII);
                BigInteger v = new BigInteger(1, hash("id " + i)).mod(BigInteger.ONE.shiftLeft(n));
                byte[] bits = new byte[n];
                for (int j = 0; j < n; j++) bits[j] = (byte) (v.testBit(n - 1 - j) ? 1 : 0);
                FPEFF1Engine e = new FPEFF1Engine();
                e.init(true, new FPEParameters(new KeyParameter(key), 2, tweak));
                byte[] c = new byte[n];
                e.processBlock(bits, 0, n, c, 0);
                BigInteger r = BigInteger.ZERO;
                for (byte b : c) r = r.shiftLeft(1).add(BigInteger.valueOf(b));
                byte[] raw = r.toByteArray();
                byte[] text = new byte[n > 64 ? 16 : 8];
                int from = Math.max(0, raw.length - text.length);
                System.arraycopy(raw, from, text, text.length - (raw.length - from), raw.length - from);
                out.write(text);
            }
        }
    }
}
