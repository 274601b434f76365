package stores

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// TestUnreachable: of the errors of each store, those of one that is down match
// grant.ErrUnreachable and are waited for, and those of settings are not.
func TestUnreachable(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	nobody := closed.Addr().String()
	closed.Close()
	hangsUp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer hangsUp.Close()
	go func() {
		for {
			c, err := hangsUp.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // it accepts no connection
	defer silent.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	withTLS := "https" + strings.TrimPrefix(plain.URL, "http")
	cluster := func(server string) string {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		must.Do(t, os.WriteFile(file, []byte(`{"clusters":[{"name":"c","cluster":{"server":"`+server+`"}}],`+
			`"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`), 0o600))
		return "kubernetes://ids?timeout=200ms&kubeconfig=" + url.QueryEscape(file)
	}
	for url, want := range map[string]bool{
		cluster("http://" + nobody):                                         true,
		cluster("http://" + hangsUp.Addr().String()):                        true,
		cluster("http://" + silent.Addr().String()):                         true,
		cluster(untrusted.URL):                                              false,
		cluster(withTLS):                                                    false,
		"s3://ids?endpoint=" + untrusted.URL:                                false,
		"s3://ids?endpoint=" + withTLS:                                      false,
		"kubernetes://ids?kubeconfig=/no":                                   false,
		"s3://ids?timeout=200ms&endpoint=http://" + nobody:                  true,
		"s3://ids?timeout=200ms&endpoint=http://" + hangsUp.Addr().String(): true,
		"s3://ids?timeout=200ms&endpoint=http://" + silent.Addr().String():  true,
		"s3://Ids?endpoint=http://" + nobody:                                false,
		"etcd://" + silent.Addr().String() + "/firn?timeout=200ms":          true,
		"postgres://u@" + silent.Addr().String() + "/firn?timeout=200ms":    true,
		"mysql://u@" + silent.Addr().String() + "/firn?timeout=200ms":       true,
		"etcd://" + nobody + "/firn?timeout=200ms":                          true,
		"etcd://" + hangsUp.Addr().String() + "/firn?timeout=200ms":         true,
		"etcd://no-such-host.invalid/firn?timeout=200ms":                    true,
		"postgres://u@" + nobody + "/firn?timeout=1s":                       true,
		"postgres://u@" + hangsUp.Addr().String() + "/firn?timeout=1s":      true,
		"mysql://u@" + nobody + "/firn?timeout=1s":                          true,
		"mysql://u@" + hangsUp.Addr().String() + "/firn?timeout=1s":         true,
		"etcd://" + nobody + "/firn?colour=red":                             false,
		"postgres://u@" + nobody:                                            false,
		"mysql://u@" + nobody + "/firn?tls=true&ca=/no/such/file":           false,
		"dir:/no/such/directory":                                            false,
		"redis://" + nobody:                                                 false,
	} {
		s, err := Open(t.Context(), url)
		if err == nil {
			s.Close()
			t.Errorf("Open(%q) succeeds", url)
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Unreachable != want {
			t.Errorf("Open(%q) is an error that is waited for: %v, want %v: %v", url, !want, want, err)
		}
	}
}
