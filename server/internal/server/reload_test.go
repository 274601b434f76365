package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestOldTokenIsLogged: the use of a token that is being replaced is logged
// once an hour, and that of the new one is not.
func TestOldTokenIsLogged(t *testing.T) {
	old, oldHash := auth.NewToken()
	fresh, freshHash := auth.NewToken()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	must.Do(t, os.WriteFile(path, []byte("tokens: [{name: web, role: generate, sha256: ["+oldHash+", "+freshHash+"]}]\n"), 0o600))
	tokens := must.Get(auth.Open(path, nil))(t)
	var log bytes.Buffer
	s := &Server{config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, files: files{tokens: tokens}}
	g := auth.NewGuard(tokens.Get, nil)
	said := make(map[string]time.Time)
	now := time.Now()
	for _, row := range []struct {
		token string
		after time.Duration
		want  int // lines so far
	}{
		{fresh, 0, 0}, {old, 0, 1}, {old, time.Minute, 1}, {fresh, 2 * time.Hour, 1}, {old, 2 * time.Hour, 2},
	} {
		must.Do(t, g.Allow(&auth.Credentials{Token: row.token, Given: true}, auth.Take, "a"))
		s.logReplaced(said, now.Add(row.after))
		if got := strings.Count(log.String(), `msg="old token still used" entry=web`); got != row.want {
			t.Errorf("after %v: %d lines, want %d: %s", row.after, got, row.want, &log)
		}
	}
}

// TestEmptiedTokens: a token file that is emptied by mistake locks no client
// out, and one without tokens is reported in the log.
func TestEmptiedTokens(t *testing.T) {
	path, token := tokensOf(t)
	log := new(nettest.Output)
	s, address := served(t, Config{Static: new(service.StaticBackendConfig), TokenFile: path, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, step := range []struct {
		text, want string
		status     int
	}{
		{"", `msg="tokens loaded" entries=1`, 200},
		{"\n", `level=ERROR msg="invalid tokens: keeping the previous ones"`, 200},
		{"tokens: []\n", `msg="tokens reloaded" entries=0`, 401},
	} {
		if step.text != "" {
			must.Do(t, os.WriteFile(path, []byte(step.text), 0o600))
			s.Reload()
		}
		if !strings.Contains(log.String(), step.want) || strings.Contains(log.String(), "no client may do anything") != (step.status == 401) {
			t.Errorf("the file is %q, and the log has no %s:\n%s", step.text, step.want, log)
		}
		code, _ := send(t, address, "POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		if code != step.status {
			t.Errorf("the file is %q: status %d, want %d", step.text, code, step.status)
		}
	}
}
