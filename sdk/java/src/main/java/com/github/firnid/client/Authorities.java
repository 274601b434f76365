package com.github.firnid.client;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/**
 * Trusts the authorities of a PEM file, which is read again when it has changed. The JDK checks the name of the
 * server itself.
 */
final class Authorities implements X509TrustManager {
    private final Path file;
    private FileTime modified;
    private volatile X509TrustManager current;

    private Authorities(Path file) {
        this.file = file;
    }

    static SSLContext context(Path file) {
        try {
            Authorities a = new Authorities(file);
            a.read();
            SSLContext c = SSLContext.getInstance("TLS");
            c.init(null, new TrustManager[] {a}, null);
            return c;
        } catch (Exception e) {
            throw new FirnException(null, "read certificates of " + file + ": " + e, e);
        }
    }

    private synchronized X509TrustManager read() throws CertificateException {
        try {
            FileTime now = Files.getLastModifiedTime(file);
            if (current != null && now.equals(modified)) {
                return current;
            }
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            try (InputStream in = Files.newInputStream(file)) {
                int n = 0;
                for (Certificate c : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                    store.setCertificateEntry("ca" + n++, c);
                }
                if (n == 0) {
                    throw new CertificateException("no certificate found");
                }
            }
            TrustManagerFactory f = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            f.init(store);
            current = (X509TrustManager) f.getTrustManagers()[0];
            modified = now;
            return current;
        } catch (Exception e) {
            if (current != null) {
                return current; // the file is just being written
            }
            throw new CertificateException(e.getMessage(), e);
        }
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
        read().checkServerTrusted(chain, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
        throw new CertificateException("not a server");
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return current.getAcceptedIssuers();
    }
}
