package respapi

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// redis-cli, which Debian has in the package redis-tools.
func TestRedisCLI(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("SKIPPED: redis-cli is not installed; apt-get install redis-tools brings it")
	}
	_, port, _ := net.SplitHostPort(serveTCP(t, NewServer(Config{Backend: counting(), Version: "v1", Auth: guard{}})))
	run := func(stdin string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, "redis-cli", append([]string{"-p", port, "--no-auth-warning"}, args...)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if err != nil && ctx.Err() != nil {
			t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, tt := range []struct {
		stdin string
		args  []string
		want  string
	}{
		{"", []string{"NEXT", "orders"}, "NOAUTH Authentication required.\n\n"},
		{"", []string{"-a", "right", "NEXT", "orders"}, "1\n"},
		{"", []string{"-a", "right", "NEXT", "orders", "3"}, "2\n3\n4\n"},
		{"", []string{"-3", "-a", "right", "--no-raw", "NEXT", "orders", "2"}, "1) \"5\"\n2) \"6\"\n"},
		{"", []string{"-3", "-a", "right", "--no-raw", "INCR", "orders"}, "(integer) 7\n"},
		{"NEXT orders\nSELECT 0\nGET x\nquit\n", []string{"-a", "right"}, "8\nOK\nERR unknown command 'GET', with args beginning with: 'x' \n\n"},
		{"", []string{"-3", "-a", "right", "--user", "default", "--no-raw", "COMMAND", "INFO", "next"}, "1)  1) \"next\"\n    2) (integer) -2\n"},
		{"", []string{"-3", "-a", "right", "INFO", "server"}, "# Server\r\nredis_version:7.4.0\r\nfirn_version:v1\r\n"},
		{strings.Repeat(line("NEXT many"), 10000), []string{"-a", "right", "--pipe"}, "All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 0, replies: 10000\n"},
	} {
		if got := run(tt.stdin, tt.args...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("redis-cli %q = %q, want %q", tt.args, got, tt.want)
		}
	}
}

// The versions of the clients that TestClients installs.
const (
	redisPyVersion   = "8.1.0"
	ioredisVersion   = "5.11.1"
	nodeRedisVersion = "5.12.1"
	goRedisVersion   = "v9.23.0"
)

// Clients of several languages, as they are published, do what a program would
// with them. They are installed into build/clients at the first run.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it installs clients, and -short is given")
	}
	cache, err := filepath.Abs("../../build/clients")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("../../go.work"); err != nil {
		t.Skip("SKIPPED: the module stands alone, and there is no directory to install clients into")
	}
	for _, tt := range []struct {
		name, needs, version string
		install              [][]string // in the directory of the client
		file                 string     // what is copied into it
		run                  []string
	}{
		{"redis-py", "python3", redisPyVersion, [][]string{{"python3", "-m", "venv", "."}, {"bin/pip", "install", "-q", "redis==" + redisPyVersion}},
			"redis_py.py", []string{"bin/python", "redis_py.py"}},
		{"ioredis", "npm", ioredisVersion, [][]string{{"npm", "install", "--no-audit", "--no-fund", "--prefix", ".", "ioredis@" + ioredisVersion}},
			"ioredis.mjs", []string{"node", "ioredis.mjs"}},
		{"node-redis", "npm", nodeRedisVersion, [][]string{{"npm", "install", "--no-audit", "--no-fund", "--prefix", ".", "redis@" + nodeRedisVersion}},
			"node_redis.mjs", []string{"node", "node_redis.mjs"}},
		{"go-redis", "go", goRedisVersion, [][]string{{"go", "mod", "init", "example.org/client"}, {"go", "get", "github.com/redis/go-redis/v9@" + goRedisVersion}, {"go", "build", "-o", "client", "."}},
			"go_redis/main.go", []string{"./client"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath(tt.needs); err != nil {
				t.Skipf("SKIPPED: %s is not installed", tt.needs)
			}
			dir := filepath.Join(cache, tt.name)
			script, err := os.ReadFile(filepath.Join("testdata/clients", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			run := func(d time.Duration, args ...string) ([]byte, error) {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				if strings.Contains(args[0], "/") {
					args[0] = filepath.Join(dir, args[0])
				}
				c := exec.CommandContext(ctx, args[0], args[1:]...)
				c.WaitDelay = time.Second
				c.Dir = dir
				c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
				return c.CombinedOutput()
			}
			// The stamp has all that the installation depends on.
			stamp := tt.version
			if tt.needs == "go" {
				stamp += "\n" + string(script) // which is built there
			}
			if was, err := os.ReadFile(filepath.Join(dir, "stamp")); err != nil || string(was) != stamp {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(tt.file)), script, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "stamp")); err != nil {
				for _, args := range tt.install {
					if out, err := run(90*time.Second, args...); err != nil {
						t.Skipf("SKIPPED: %s %s cannot be installed here: %v\n%s", tt.name, tt.version, err, out)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, "stamp"), []byte(stamp), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, port, _ := net.SplitHostPort(serveTCP(t, NewServer(Config{Backend: newFast(t)})))
			out, err := run(time.Minute, append(tt.run, port)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
