package respapi

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestRedisCLI uses redis-cli, which is in Debian's package redis-tools.
func TestRedisCLI(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("SKIPPED: redis-cli is not installed; install it with apt-get install redis-tools")
	}
	_, port, _ := net.SplitHostPort(serveTCP(t, NewServer(Config{Front: service.Front{Backend: counting(), Auth: guard{}}, Version: "v1"})))
	run := func(stdin string, args ...string) string {
		c := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-p", port, "--no-auth-warning"}, args...)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if t.Context().Err() != nil {
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
		{"NEXT orders\nSELECT 0\nGET x\nquit\n", []string{"-a", "right"}, "8\nOK\nERR unknown command 'GET', with args beginning with: 'x' (Firn makes IDs and stores no keys: COMMAND LIST returns its commands)\n\n"},
		{"", []string{"-3", "-a", "right", "--user", "default", "--no-raw", "COMMAND", "INFO", "next"}, "1)  1) \"next\"\n    2) (integer) -2\n"},
		{"", []string{"-3", "-a", "right", "INFO", "server"}, "# Server\r\nredis_version:7.4.0\r\nfirn_version:v1\r\n"},
		{strings.Repeat(line("NEXT many"), 10000), []string{"-a", "right", "--pipe"}, "All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 0, replies: 10000\n"},
	} {
		if got := run(tt.stdin, tt.args...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("redis-cli %q = %q, want %q", tt.args, got, tt.want)
		}
	}
}

// The versions of the clients that TestClients installs; those for Java are in
// pom.xml.
const (
	redisPyVersion   = "8.1.0"
	ioredisVersion   = "6.0.0"
	nodeRedisVersion = "6.3.1"
	goRedisVersion   = "v9.23.0"
	rustVersion      = "1.8.1"
)

// otherGoClients are those of testdata/clients/table/go.
var otherGoClients = []string{
	"github.com/redis/go-redis/v9@" + goRedisVersion, "github.com/redis/rueidis@v1.0.79", "github.com/valkey-io/valkey-go@v1.0.79",
	"github.com/mediocregopher/radix/v4@v4.1.4", "github.com/gomodule/redigo@v1.9.3",
}

// A libraryClient is a published client library, with a program that uses it.
type libraryClient struct {
	name    string
	needs   []string   // commands
	install [][]string // in the directory of the client
	files   []string   // of testdata/clients, to copy into the directory
	runs    [][]string // programs to run with the port
	again   bool       // install it again when a file has changed
	ids     int        // how many increasing IDs each program prints
}

var libraryClients = []libraryClient{
	{name: "redis-py", needs: []string{"python3"}, files: []string{"redis_py.py"}, runs: [][]string{{"bin/python", "redis_py.py"}},
		install: [][]string{{"python3", "-m", "venv", "."}, {"bin/pip", "install", "-q", "redis==" + redisPyVersion}}},
	{name: "ioredis", needs: []string{"npm", "node"}, files: []string{"ioredis.mjs"}, runs: [][]string{{"node", "ioredis.mjs"}},
		install: [][]string{{"npm", "install", "--no-audit", "--no-fund", "--prefix", ".", "ioredis@" + ioredisVersion}}},
	{name: "node-redis", needs: []string{"npm", "node"}, files: []string{"node_redis.mjs"}, runs: [][]string{{"node", "node_redis.mjs"}},
		install: [][]string{{"npm", "install", "--no-audit", "--no-fund", "--prefix", ".", "redis@" + nodeRedisVersion}}},
	{name: "go-redis", needs: []string{"go"}, files: []string{"go_redis/main.go"}, runs: [][]string{{"./client"}}, again: true,
		install: [][]string{{"go", "mod", "init", "example.org/client"}, {"go", "get", "github.com/redis/go-redis/v9@" + goRedisVersion}, {"go", "build", "-o", "client", "."}}},
	{name: "go-others", needs: []string{"go"}, files: []string{"table/go/main.go"}, ids: 104, again: true,
		install: [][]string{{"go", "mod", "init", "example.org/client"}, append([]string{"go", "get"}, otherGoClients...), {"go", "build", "-o", "client", "."}},
		runs:    [][]string{{"./client", "rueidis"}, {"./client", "valkey-go"}, {"./client", "radix"}, {"./client", "redigo"}}},
	{name: "java", needs: []string{"java", "javac", "mvn"}, files: []string{"java/pom.xml", "java/JedisClient.java", "java/LettuceClient.java"}, again: true,
		install: [][]string{{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"}, {"javac", "-cp", "lib/*", "JedisClient.java", "LettuceClient.java"}},
		runs:    [][]string{{"java", "-cp", "lib/*:.", "JedisClient"}, {"java", "-cp", "lib/*:.", "LettuceClient"}}},
	{name: "phpredis", needs: []string{"php"}, files: []string{examples + "php/ids.php"}, runs: [][]string{{"php", "ids.php"}}, ids: 101,
		install: [][]string{{"php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"}}},
	{name: "redis-rb", needs: []string{"ruby"}, files: []string{examples + "ruby/ids.rb"}, runs: [][]string{{"ruby", "ids.rb"}}, ids: 103,
		install: [][]string{{"ruby", "-e", "require 'redis'"}}},
	{name: "redis-rs", needs: []string{"cargo"}, files: []string{examples + "rust/main.rs"}, runs: [][]string{{"target/debug/client"}}, ids: 101, again: true,
		install: [][]string{{"cargo", "init", "-q", "--name", "client"}, {"cargo", "add", "-q", "redis@" + rustVersion, "--no-default-features"}, {"cargo", "build", "-q"}}},
}

// examples, seen from testdata/clients, has the programs of docs/languages.md.
const examples = "../../../../../../examples/"

// TestClients: published clients in several languages do what a program would
// do with them, by their own methods. The first run installs them into
// build/clients.
func TestClients(t *testing.T) {
	nettest.Long(t)
	cache := must.Get(filepath.Abs("../../../../build/clients"))(t)
	if _, err := os.Stat("../../../../go.work"); err != nil {
		t.Skip("SKIPPED: the module stands alone, and there is no directory to install clients into")
	}
	for _, c := range libraryClients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of the time goes into downloads
			for _, name := range c.needs {
				if _, err := exec.LookPath(name); err != nil {
					t.Skipf("SKIPPED: %s is not installed", name)
				}
			}
			dir := filepath.Join(cache, c.name)
			c.prepare(t, dir)
			_, port, _ := net.SplitHostPort(serveTCP(t, NewServer(Config{Front: service.Front{Backend: newFast(t)}, Version: "v1"})))
			for _, run := range c.runs {
				out, err := runIn(t, dir, append(run, port)...)
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				if c.ids > 0 {
					checkIncreasing(t, numbers.FindAllString(string(out), -1), c.ids)
				} else {
					t.Logf("%s", out)
				}
			}
		})
	}
}

var numbers = regexp.MustCompile(`\d+`)

// checkIncreasing checks that a program has printed that many increasing IDs.
func checkIncreasing(t *testing.T, ids []string, want int) {
	t.Helper()
	if len(ids) != want {
		t.Errorf("got %d IDs, want %d", len(ids), want)
	}
	var last uint64
	for _, text := range ids {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil || id <= last {
			t.Errorf("got %q after %d, want a greater ID", text, last)
		}
		last = id
	}
}

// prepare installs the client into a directory, unless it is already there.
func (c *libraryClient) prepare(t *testing.T, dir string) {
	t.Helper()
	stamp := fmt.Sprint(c.install) // everything that the installation depends on
	var files [][]byte
	for _, name := range c.files {
		b := must.Get(os.ReadFile(filepath.Join("testdata/clients", name)))(t)
		files = append(files, b)
		if c.again {
			stamp += "\n" + string(b)
		}
	}
	was, err := os.ReadFile(filepath.Join(dir, "stamp"))
	installed := err == nil && string(was) == stamp
	if !installed {
		must.Do(t, os.RemoveAll(dir))
		must.Do(t, os.MkdirAll(dir, 0o777))
	}
	for i, name := range c.files {
		must.Do(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), files[i], 0o666))
	}
	if installed {
		return
	}
	for _, args := range c.install {
		out, err := runIn(t, dir, args...)
		switch {
		case err == nil:
		case args[0] == "javac", len(args) > 1 && args[1] == "build": // an error of the program, not of the network
			t.Fatalf("%q: %v\n%s", args, err, out)
		default:
			t.Skipf("SKIPPED: %s cannot be installed here: %v\n%s", c.name, err, out)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "stamp"), []byte(stamp), 0o666))
}

// runIn runs a command in a directory.
func runIn(t *testing.T, dir string, args ...string) ([]byte, error) {
	name := args[0]
	if strings.Contains(name, "/") {
		name = filepath.Join(dir, name)
	}
	c := exec.CommandContext(t.Context(), name, args[1:]...)
	c.WaitDelay = time.Second
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	return c.CombinedOutput()
}
