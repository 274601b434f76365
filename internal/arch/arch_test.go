// Package arch contains the rules of the repository as tests: which package may
// import which, that the library needs only the standard library, which names
// are exported, and that links between pages work. It exports nothing.
package arch

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// here is the file that findings name as the place of the table.
const here = "internal/arch/arch_test.go"

// imports is the direction of imports: firn ← grant ← sequencer ← service ←
// {protocols} ← server ← cmd, grant ← {stores} ← server/stores, and firn ←
// client. Every package of the repository has its own line.
//
// A line lists only packages of the repository. Imports from elsewhere are
// covered by another rule: the root module has none.
var imports = []importLine{
	// The library. Its internal packages are leaves.
	{pattern: ".", imports: []string{"internal/basen", "internal/freshness", "internal/mutant"}},
	{pattern: "internal/basen"},
	{pattern: "internal/freshness", imports: []string{"internal/mutant"}},
	{pattern: "internal/arch"},
	{pattern: "internal/mutant"},
	{pattern: "internal/simkit"},
	{pattern: "tools/kube"},
	{pattern: "tools/mutate"},
	{pattern: "tools/licenses"},
	{pattern: "tools/release"},
	{pattern: "tools/deploy", tests: []string{"kubestore/kubetest"}},

	// Coordination. A store knows the contract and no other store.
	{
		pattern: "grant",
		imports: []string{".", "internal/mutant"},
		tests:   []string{"grant/storetest", "grant/memstore"},
	},
	{pattern: "grant/storetest", imports: []string{".", "grant"}, tests: []string{"grant/memstore"}},
	{pattern: "grant/memstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest"}},
	{pattern: "grant/dirstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest"}},
	{pattern: "grant/sqlstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest"}},
	{pattern: "grant/sim", tests: []string{".", "grant", "internal/mutant", "internal/simkit"}},
	{pattern: "grant/fleet", tests: []string{".", "grant", "internal/simkit"}},
	{
		pattern: "sequencer",
		imports: []string{".", "grant"},
		tests:   []string{"grant/storetest", "grant/memstore", "grant/dirstore"},
	},

	// The client speaks HTTP and knows nothing of grants.
	{pattern: "client", imports: []string{"."}, tests: []string{"client/clienttest"}},
	{pattern: "client/clienttest", imports: []string{".", "client"}},

	// Other modules may import everything that is published. They never import
	// internal packages of the root module; that is part of the rule.
	{pattern: "etcdstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest", "sequencer"}},
	{pattern: "kubestore", imports: []string{"grant"}, tests: []string{"grant/storetest", "kubestore/kubetest"}},
	{pattern: "kubestore/kubetest"},
	// The server. Protocols talk to service; they are leaves, and none imports
	// another. Package server assembles them.
	{
		pattern: "server/service",
		imports: []string{".", "grant", "sequencer", "server/auth", "server/config", "server/inspect", "server/members"},
		tests:   []string{"grant/memstore", "server/stores"},
	},
	{
		pattern: "server/httpapi",
		imports: []string{".", "grant", "server/auth", "server/inspect", "server/members", "server/requestid", "server/service", "server/textfmt"},
		tests:   []string{"grant/memstore", "sequencer", "server/nettest", "server/stores"},
	},
	{
		pattern: "server/respapi",
		imports: []string{".", "grant", "server/auth", "server/inspect", "server/requestid", "server/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/nettest"},
	},
	{
		pattern: "server/rpcapi",
		imports: []string{".", "grant", "server/auth", "server/requestid", "server/rpcapi/firnv1", "server/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/nettest"},
	},
	{pattern: "server/rpcapi/firnv1"},
	{
		pattern: "server/console",
		imports: []string{".", "grant", "server/auth", "server/inspect", "server/members", "server/metrics", "server/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/httpapi", "server/nettest"},
	},
	{
		pattern: "server/console/e2e",
		tests:   []string{".", "grant", "grant/memstore", "sequencer", "server/auth", "server/console", "server/httpapi", "server/members", "server/metrics", "server/nettest", "server/service"},
	},
	// The Peers of a service, over HTTP.
	{
		pattern: "server/forwarding",
		imports: []string{".", "grant", "sequencer", "server/requestid", "server/service", "server/textfmt"},
		tests:   []string{"grant/memstore", "server/auth", "server/httpapi", "server/nettest"},
	},
	// Building blocks of the protocols and of service.
	{pattern: "server/auth", imports: []string{"server/config", "server/readfile"}},
	{pattern: "server/config", imports: []string{".", "grant"}},
	{pattern: "server/inspect", imports: []string{"."}},
	{pattern: "server/load", imports: []string{".", "client"}},
	{pattern: "server/check", imports: []string{".", "server/inspect"}},
	{pattern: "server/textfmt", imports: []string{"grant", "server/inspect"}},
	{
		pattern: "server/doctor",
		imports: []string{"grant", "server/members", "server/readfile"},
		tests:   []string{".", "grant/memstore"},
	},
	{pattern: "server/requestid"},
	{pattern: "server/members", imports: []string{"grant"}, tests: []string{"grant/memstore", "server/nettest"}},
	{pattern: "server/metrics", imports: []string{"grant"}},
	{pattern: "server/listen", tests: []string{"server/nettest"}},
	{pattern: "server/collector", tests: []string{"server/nettest"}},
	{pattern: "server/logwriter"},
	{pattern: "server/systemd"},
	{pattern: "server/readfile"},
	{pattern: "server/records"},
	{pattern: "server/tlsconf", imports: []string{"server/readfile"}, tests: []string{"server/nettest"}},
	{pattern: "server/nettest", imports: []string{"grant"}},
	{
		pattern: "server/tracing",
		imports: []string{"grant", "server/requestid"},
		tests:   []string{".", "grant/memstore", "server/httpapi", "server/service", "server/tracing/tracingtest", "server/nettest"},
	},
	{pattern: "server/tracing/tracingtest", imports: []string{"server/nettest"}},
	// Only this package knows the stores.
	{
		pattern: "server/stores",
		imports: []string{"etcdstore", "grant", "grant/dirstore", "grant/sqlstore", "kubestore", "server/readfile", "server/tlsconf"},
		tests:   []string{".", "grant/memstore", "grant/storetest", "sequencer", "server/stores/sqltest", "server/nettest"},
	},
	{pattern: "server/stores/sqltest", imports: []string{"server/nettest"}},
	// Programs that take a node ID from a store.
	{pattern: "server/noderun", imports: []string{".", "grant", "sequencer", "server/textfmt"}, tests: []string{"grant/memstore", "grant/dirstore", "server/nettest"}},
	// The server, tests of complete ones, and the command.
	{
		pattern: "server",
		imports: []string{
			".", "grant", "sequencer", "server/auth", "server/console", "server/forwarding", "server/httpapi", "server/listen", "server/members",
			"server/metrics", "server/respapi", "server/rpcapi", "server/service", "server/stores", "server/tlsconf", "server/tracing",
		},
		tests: []string{"client", "grant/memstore", "server/rpcapi/firnv1", "server/nettest"},
	},
	{
		pattern: "server/e2e",
		tests:   []string{".", "etcdstore", "grant/...", "kubestore/kubetest", "sequencer", "server/e2e/etcdtest", "server/nettest", "server/stores"},
	},
	{pattern: "server/e2e/etcdtest"},
	{
		pattern: "server/cmd/firn",
		imports: []string{".", "client", "grant", "grant/dirstore", "sequencer", "server/..."},
		tests:   []string{"grant/memstore", "kubestore/kubetest"},
	},
	{pattern: "bench", tests: []string{".", "client", "etcdstore", "grant", "grant/dirstore", "sequencer"}},
}

func TestImports(t *testing.T) { report(t, checkImports(repository(t), imports)) }

func TestZeroDependencies(t *testing.T) { report(t, checkZeroDependencies(repository(t))) }

func TestSelfContained(t *testing.T) { report(t, checkSelfContained(repository(t))) }

func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

var loadRepository = sync.OnceValues(func() (*repo, error) {
	dir, err := rootDir()
	if err != nil {
		return nil, err
	}
	return load(os.DirFS(dir))
})

func repository(t *testing.T) *repo {
	t.Helper()
	r, err := loadRepository()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rootDir returns the repository's root: the nearest parent directory with a
// go.work or, in a copy of only the module, with a go.mod.
func rootDir() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for _, mark := range []string{"go.work", "go.mod"} {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", os.ErrNotExist
}
