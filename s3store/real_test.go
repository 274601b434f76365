package s3store

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/internal/proc"
)

// TestRealUnfitServers runs servers from npm that ignore the conditions, and
// checks that Open refuses them.
func TestRealUnfitServers(t *testing.T) {
	if os.Getenv("FIRN_ALL") == "" {
		t.Skip("it installs servers: make test-all runs it, or FIRN_ALL=1")
	}
	for _, c := range []struct{ name, want string }{
		{"s3rver@3.7.1", "a second create of one key"},
		{"@20minutes/s3rver@4.0.4", "a second create of one key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			install := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--loglevel=error", c.name)
			if out, err := install.CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: npm cannot install %s: %v: %s", c.name, err, out)
			}
			address := proc.FreeAddress(t)
			host, port, _ := strings.Cut(address, ":")
			name := c.name[:strings.LastIndex(c.name, "@")]
			script := filepath.Join(dir, "run.cjs")
			must.Do(t, os.WriteFile(script, []byte(`new (require("`+name+`"))({address: "`+host+`", port: `+port+
				`, silent: true, directory: "`+filepath.Join(dir, "data")+`", configureBuckets: [{name: "ids"}]}).run()`), 0o600))
			t.Setenv("AWS_ACCESS_KEY_ID", "S3RVER")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "S3RVER")
			server := proc.Start(t, "node", script)
			t.Cleanup(server.Kill)
			for begin := time.Now(); time.Since(begin) < patience; time.Sleep(50 * time.Millisecond) {
				if r, err := http.Get("http://" + address); err == nil {
					_ = r.Body.Close()
					break
				}
				select {
				case <-server.Ended:
					t.Fatalf("%s does not start: %s", c.name, server.Log())
				default:
				}
			}
			o := options("http://" + address)
			if _, err := Open(t.Context(), &o); !isUnfit(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Open = %v, want %q", err, c.want)
			}
		})
	}
}
