//go:build unix

package e2e

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/sqltest"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
)

// examples/webshop over a real database: each place sees its own form of the
// same ID, and no form is taken for another one.
func TestWebshop(t *testing.T) {
	database := sqltest.PostgreSQL(t)
	shop := proc.BuildGo(t, "../../../../examples/webshop", ".")
	key := bytes.Repeat([]byte{7}, 32)
	keyFile := filepath.Join(t.TempDir(), "veil.keys")
	must.Do(t, os.WriteFile(keyFile, []byte(hex.EncodeToString(key)+"\n"), 0o600))
	public, staff := nettest.FreeAddress(t), nettest.FreeAddress(t)
	log := new(nettest.Output)
	cmd := exec.Command(shop, "-database", database.URL(), "-keys", keyFile, "-public", public, "-staff", staff)
	cmd.Stderr = log
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	call := func(address, path string, form url.Values) (int, string) {
		t.Helper()
		var resp *http.Response
		var err error
		if form != nil {
			resp, err = http.PostForm("http://"+address+path, form)
		} else {
			resp, err = http.Get("http://" + address + path)
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, log)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, strings.TrimSpace(string(body))
	}
	for _, address := range []string{public, staff} {
		must.Await(t, func() bool {
			resp, err := http.Get("http://" + address)
			if err == nil {
				resp.Body.Close()
			}
			return err == nil
		}, "the shop answers at %s: %s", address, log)
	}

	status, body := call(public, "/orders", url.Values{"item": {"tea"}})
	var placed struct{ URL string }
	if err := json.Unmarshal([]byte(body), &placed); err != nil || status != 200 || !regexp.MustCompile(`^/orders/v1_\w{13}$`).MatchString(placed.URL) {
		t.Fatalf("an order is answered with %d %s\n%s", status, body, log)
	}
	stored := must.Get(firn.ParseID(database.Query(`\c ids` + "\nSELECT id FROM orders")))(t)
	cipher := must.Get(veil.New(key, "orders", firn.Default()))(t)
	veiled, err := cipher.Veil(stored)
	if want := "/orders/v1_" + typed.Text("", veiled); err != nil || placed.URL != want {
		t.Errorf("the URL of order %d is %s, want %s, %v", stored, placed.URL, want, err)
	}
	name := typed.Text("order", stored)
	if want := "order placed: " + name; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %q", log, want)
	}
	for _, row := range []struct {
		address, path string
		status        int
		want          string
	}{
		{public, placed.URL, 200, `{"item":"tea"}`},
		{public, "/orders/v1_0000000000001", 404, "no such order"},
		{public, "/orders/" + stored.String(), 400, "it is a plain ID"},
		{public, "/orders/" + name, 400, "it is a plain ID"},
		{public, strings.Replace(placed.URL, "v1", "v2", 1), 400, "this key is not known"},
		{public, "/orders/v1_f000000000000", 400, "outside of 1 to 9223372036854775807"},
		{staff, "/orders/" + name, 200, `{"id":"` + name + `","item":"tea"}`},
		{staff, placed.URL, 400, `firn: parse typed ID`},
		{staff, "/orders/customer" + name[len("order"):], 400, `its prefix is "customer", not "order"`},
	} {
		if status, body := call(row.address, row.path, nil); status != row.status || !strings.Contains(body, row.want) {
			t.Errorf("%s: %d %s, want %d with %q", row.path, status, body, row.status, row.want)
		}
	}
}
