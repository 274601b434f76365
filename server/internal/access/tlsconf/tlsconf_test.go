package tlsconf

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	must.Do(t, os.WriteFile(path, content, 0o600))
	return path
}

// connect makes a handshake with a loader, and returns how it ended at both
// ends.
func connect(t *testing.T, l *Loader, c *tls.Config) (tls.ConnectionState, tls.ConnectionState, error) {
	t.Helper()
	return connectTo(t, l.Config(), c)
}

func connectTo(t *testing.T, serverConfig, c *tls.Config) (tls.ConnectionState, tls.ConnectionState, error) {
	t.Helper()
	// Not net.Pipe, which has no buffer: where a session is resumed, both ends
	// write at once.
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	here := must.Get(net.Dial("tcp", listener.Addr().String()))(t)
	defer here.Close()
	there := must.Get(listener.Accept())(t)
	defer there.Close()
	server := tls.Server(there, serverConfig)
	done := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err == nil {
			_, err = server.Write([]byte{1})
		}
		there.Close()
		done <- err
	}()
	client := tls.Client(here, c)
	_ = here.SetDeadline(time.Now().Add(must.Patience))
	_, err := client.Read(make([]byte, 1)) // a refused certificate is reported after the handshake
	here.Close()
	if e := <-done; err == nil {
		err = e
	}
	return client.ConnectionState(), server.ConnectionState(), err
}

// issued writes a certificate that is valid for a month, with the serial number
// 10, and its key.
func issued(t *testing.T) (*nettest.Authority, Files) {
	t.Helper()
	dir := t.TempDir()
	ca := nettest.NewAuthority(t)
	cert, key := nettest.PEM(t, ca.Issue(t, "client", 10, 24*30*time.Hour))
	return ca, Files{Cert: write(t, filepath.Join(dir, "cert"), cert), Key: write(t, filepath.Join(dir, "key"), key)}
}

// loaded loads an issued certificate, and notes what the loader warns of.
func loaded(t *testing.T) (ca *nettest.Authority, f Files, l *Loader, warned *[]string) {
	t.Helper()
	ca, f = issued(t)
	warned = new([]string)
	l, err := Load(f, func(text string) { *warned = append(*warned, text) })
	if err != nil || len(*warned) > 0 {
		t.Fatal(err, *warned)
	}
	return ca, f, l, warned
}

func TestReload(t *testing.T) {
	ca, f, l, _ := loaded(t)
	serial := func(want int64) {
		t.Helper()
		state, _, err := connect(t, l, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"})
		if err != nil || state.PeerCertificates[0].SerialNumber.Int64() != want {
			t.Errorf("%v, want the certificate %d", err, want)
		}
	}
	serial(10)
	if changed, err := l.Reload(); changed || err != nil {
		t.Errorf("Reload() = %t, %v", changed, err)
	}
	cert, key := nettest.PEM(t, ca.Issue(t, "client", 11, time.Hour))
	write(t, f.Cert, append(cert, '\n')) // the key is of the other one
	if changed, err := l.Reload(); !changed || err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("Reload() = %t, %v", changed, err)
	}
	serial(10)
	write(t, f.Key, append(key, '\n'))
	if changed, err := l.Reload(); !changed || err != nil {
		t.Errorf("Reload() = %t, %v", changed, err)
	}
	serial(11)
	must.Do(t, os.Chmod(f.Key, 0o644))
	var warned []string
	if _, err := Load(f, func(text string) { warned = append(warned, text) }); err != nil || len(warned) != 2 {
		t.Errorf("%v, %q", err, warned)
	}
}

func TestProtocols(t *testing.T) {
	ca, _, l, _ := loaded(t)
	for _, test := range []struct {
		offer []string
		want  string
	}{
		{nil, ""}, {[]string{"h2", "http/1.1"}, "http/1.1"}, {[]string{"http/1.1"}, "http/1.1"}, {[]string{"h2"}, "h2"}, {[]string{"redis"}, ""},
	} {
		state, _, err := connect(t, l, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", NextProtos: test.offer})
		if err != nil || state.NegotiatedProtocol != test.want {
			t.Errorf("%q: %q, %v, want %q", test.offer, state.NegotiatedProtocol, err, test.want)
		}
	}
}

func TestClients(t *testing.T) {
	ca, f := issued(t)
	other := nettest.NewAuthority(t)
	f.ClientCA = write(t, f.Cert+".ca", ca.PEM(t))
	pair := func(a *nettest.Authority) []tls.Certificate {
		cert, key := nettest.PEM(t, a.Issue(t, "client", 20, time.Hour))
		p := must.Get(tls.X509KeyPair(cert, key))(t)
		return []tls.Certificate{p}
	}
	for _, test := range []struct {
		require bool
		certs   []tls.Certificate
		ok      bool
		known   bool
	}{
		{false, nil, true, false}, {false, pair(ca), true, true}, {true, nil, false, false}, {true, pair(ca), true, true},
		{false, pair(other), false, false}, {true, pair(other), false, false},
	} {
		f.Require = test.require
		l := must.Get(Load(f, nil))(t)
		certs := test.certs
		c := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if certs == nil {
				return new(tls.Certificate), nil
			}
			return &certs[0], nil
		}}
		_, state, err := connect(t, l, c)
		if (err == nil) != test.ok || test.ok && (len(state.VerifiedChains) > 0) != test.known {
			t.Errorf("%+v: %v, verified %d", test.require, err, len(state.VerifiedChains))
		}
	}
}

// TestResumeAfterReload: who had a certificate of an authority that was taken
// out does not come in with the session that it has from before.
func TestResumeAfterReload(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		ca, f := issued(t)
		other := nettest.NewAuthority(t)
		f.ClientCA, f.Require = write(t, f.Cert+".ca", ca.PEM(t)), true
		l := must.Get(Load(f, nil))(t)
		server := l.Config() // one for all, as a listener has it: it has the keys of sessions
		clientCert, clientKey := nettest.PEM(t, ca.Issue(t, "client", 20, time.Hour))
		pair := must.Get(tls.X509KeyPair(clientCert, clientKey))(t)
		client := &tls.Config{
			RootCAs: ca.Pool(), ServerName: "localhost", MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(4),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
		}
		for i, want := range []bool{false, true} {
			state, _, err := connectTo(t, server, client)
			if err != nil || state.DidResume != want {
				t.Errorf("TLS %#x, connection %d: %v, resumed %t", version, i, err, state.DidResume)
			}
		}
		write(t, f.ClientCA, append(other.PEM(t), '\n'))
		if changed, err := l.Reload(); !changed || err != nil {
			t.Fatal(changed, err)
		}
		if state, _, err := connectTo(t, server, client); err == nil {
			t.Errorf("TLS %#x: a client of the removed authority connected, resumed %t", version, state.DidResume)
		}
	}
}

// TestTrusts: a renewed authority, with its name and key, is still trusted, and
// another one or one that has expired is not.
func TestTrusts(t *testing.T) {
	ca, f := issued(t)
	f.ClientCA = write(t, f.Cert+".ca", ca.PEM(t))
	old := must.Get(authorities("old", ca.PEM(t)))(t)[0]
	l := must.Get(Load(f, nil))(t)
	for _, test := range []struct {
		file   []byte
		after  time.Duration
		trusts bool
	}{
		{ca.PEM(t), 0, true}, {ca.Renew(t, 48*time.Hour), 25 * time.Hour, true}, {ca.PEM(t), 25 * time.Hour, false},
		{nettest.NewAuthority(t).PEM(t), 0, false}, // of the same name
	} {
		write(t, f.ClientCA, test.file)
		must.Get(l.Reload())(t)
		if got := l.Trusts(old, time.Now().Add(test.after)); got != test.trusts {
			t.Errorf("after %v: trusted %t, want %t", test.after, got, test.trusts)
		}
	}
}

// TestWarnings: what has expired, or is not valid yet, is used and said, also
// where it comes later.
func TestWarnings(t *testing.T) {
	ca, f, l, warned := loaded(t)
	for i, test := range []struct {
		valid time.Duration
		want  string
	}{
		{-time.Minute, "expired at "}, {time.Hour, "expires soon, at "}, {24 * 13 * time.Hour, "expires soon, at "},
		{24 * 15 * time.Hour, ""},
	} {
		*warned = nil
		cert, key := nettest.PEM(t, ca.Issue(t, "client", int64(20+i), test.valid))
		write(t, f.Cert, append(cert, make([]byte, i+1)...)) // each of another size
		write(t, f.Key, key)
		if changed, err := l.Reload(); !changed || err != nil {
			t.Errorf("Reload() = %t, %v", changed, err)
		}
		if text := strings.Join(*warned, "\n"); !strings.Contains(text, test.want) || (text == "") != (test.want == "") {
			t.Errorf("valid for %v: the warning %q, want %q", test.valid, text, test.want)
		}
	}
	early := l.Judge(time.Now().Add(-2 * time.Hour))
	if len(early) != 1 || !early[0].Wrong || !strings.Contains(early[0].Text, f.Cert+`: the certificate of "CN=client" is not valid before`) {
		t.Errorf("too early, it is %+v", early)
	}
	*warned = nil
	f.ClientCA = write(t, f.Cert+".ca", ca.PEM(t)) // valid for a day
	if _, err := Load(f, func(text string) { *warned = append(*warned, text) }); err != nil || len(*warned) != 1 ||
		!strings.Contains((*warned)[0], f.ClientCA+`: the certificate of "CN=CA" expires soon`) {
		t.Errorf("%v, %q", err, *warned)
	}
}

func TestFaults(t *testing.T) {
	_, good := issued(t)
	dir := filepath.Dir(good.Cert)
	cert := must.Get(os.ReadFile(good.Cert))(t)
	junk := write(t, filepath.Join(dir, "junk"), []byte("junk"))
	half := write(t, filepath.Join(dir, "half"), append(cert, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...))
	for want, f := range map[string]Files{
		"one of them is missing":         {Cert: good.Cert},
		"no such file":                   {Cert: good.Cert, Key: filepath.Join(dir, "nowhere")},
		"find any PEM":                   {Cert: junk, Key: good.Key},
		"needs the authorities":          {Cert: good.Cert, Key: good.Key, Require: true},
		"certificate 2: x509: malformed": {Cert: half, Key: good.Key},
		"unexpected PRIVATE KEY":         {Cert: good.Cert, Key: good.Key, ClientCA: good.Key},
		"certificate 2: x509":            {Cert: good.Cert, Key: good.Key, ClientCA: half},
		"2 is incomplete":                {Cert: good.Cert, Key: good.Key, ClientCA: write(t, filepath.Join(dir, "cut"), append(cert, cert[:len(cert)/2]...))},
		"no certificate found":           {Cert: good.Cert, Key: good.Key, ClientCA: junk},
	} {
		if _, err := Load(f, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}
