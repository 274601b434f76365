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
	{pattern: ".", imports: []string{"internal/basen", "internal/freshness"}},
	{pattern: "internal/basen"},
	{pattern: "internal/freshness"},
	{pattern: "internal/arch"},
	{pattern: "internal/mistakes"},
	{pattern: "internal/history"},
	{pattern: "internal/kubetest"},
	{pattern: "internal/replicated", imports: []string{"grant"}, tests: []string{"grant/storetest"}},
	{pattern: "typed", imports: []string{"."}},
	{pattern: "veil", imports: []string{".", "typed"}},
	{pattern: "tools/kube"},
	{pattern: "tools/licenses"},
	{pattern: "tools/release"},
	{pattern: "tools/deploy", tests: []string{"internal/kubetest"}},

	// Coordination. A store knows the contract and no other store.
	{
		pattern: "grant",
		imports: []string{".", "typed"},
		tests:   []string{"grant/storetest", "grant/memstore", "internal/replicated"},
	},
	{pattern: "grant/storetest", imports: []string{".", "grant", "internal/history"}, tests: []string{"grant/memstore"}},
	{pattern: "grant/memstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest"}},
	{pattern: "grant/dirstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest", "internal/history"}},
	{pattern: "grant/sqlstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest"}},
	{
		pattern: "sequencer",
		imports: []string{".", "grant"},
		tests:   []string{"grant/memstore", "grant/dirstore", "internal/replicated"},
	},

	// The client speaks HTTP and knows nothing of grants.
	{pattern: "examples/lost-lease", imports: []string{".", "grant", "grant/memstore", "sequencer"}},
	{pattern: "client", imports: []string{"."}, tests: []string{"client/clienttest"}},
	{pattern: "client/clienttest", imports: []string{".", "client"}},

	// Other modules may import everything that is published. They never import
	// internal packages of the root module; that is part of the rule, with one
	// exception: tests of all modules use internal/kubetest.
	{pattern: "etcdstore", imports: []string{".", "grant"}, tests: []string{"grant/storetest", "sequencer"}},
	{pattern: "kubestore", imports: []string{"grant"}, tests: []string{"grant/storetest", "internal/kubetest"}},
	// The server. Protocols talk to service; they are leaves, and none imports
	// another. Package server assembles them.
	{
		pattern: "server/internal/service",
		imports: []string{".", "grant", "sequencer", "veil", "server/internal/access/auth", "server/internal/config", "server/internal/ids/form", "server/internal/ids/inspect", "server/internal/fleet/members"},
		tests:   []string{"grant/memstore", "server/internal/fleet/health", "server/internal/test/nettest"},
	},
	{
		pattern: "server/internal/protocol/httpapi",
		imports: []string{".", "grant", "veil", "server/internal/access/auth", "server/internal/ids/form", "server/internal/ids/inspect", "server/internal/fleet/members", "server/internal/protocol/requestid", "server/internal/service", "server/internal/ids/textfmt"},
		tests:   []string{"grant/memstore", "sequencer", "server/internal/fleet/health", "server/internal/test/nettest", "server/internal/test/servicetest"},
	},
	{
		pattern: "server/internal/protocol/respapi",
		imports: []string{".", "grant", "veil", "server/internal/access/auth", "server/internal/ids/form", "server/internal/ids/inspect", "server/internal/protocol/requestid", "server/internal/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/internal/test/nettest", "server/internal/test/servicetest"},
	},
	{
		pattern: "server/internal/protocol/rpcapi",
		imports: []string{".", "grant", "server/internal/access/auth", "server/internal/ids/form", "server/internal/protocol/requestid", "server/internal/protocol/rpcapi/firnv1", "server/internal/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/internal/test/nettest"},
	},
	{pattern: "server/internal/protocol/rpcapi/firnv1"},
	{
		pattern: "server/internal/console",
		imports: []string{".", "grant", "veil", "server/internal/access/auth", "server/internal/ids/form", "server/internal/ids/inspect", "server/internal/fleet/members", "server/internal/fleet/metrics", "server/internal/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/internal/protocol/httpapi", "server/internal/test/nettest"},
	},
	{
		pattern: "server/internal/console/e2e",
		tests:   []string{".", "grant", "grant/memstore", "sequencer", "server/internal/access/auth", "server/internal/console", "server/internal/ids/form", "server/internal/protocol/httpapi", "server/internal/fleet/members", "server/internal/fleet/metrics", "server/internal/test/nettest", "server/internal/service"},
	},
	// The Peers of a service, over HTTP.
	{
		pattern: "server/internal/service/forwarding",
		imports: []string{".", "grant", "sequencer", "server/internal/protocol/requestid", "server/internal/service", "server/internal/ids/textfmt"},
		tests:   []string{"grant/memstore", "server/internal/access/auth", "server/internal/ids/form", "server/internal/protocol/httpapi", "server/internal/test/nettest"},
	},
	// Building blocks of the protocols and of service.
	{pattern: "server/internal/access/auth", imports: []string{"server/internal/config", "server/internal/access/readfile"}},
	{pattern: "server/internal/config", imports: []string{".", "grant", "typed"}},
	{pattern: "server/internal/ids/inspect", imports: []string{".", "typed", "veil", "server/internal/ids/form"}},
	{pattern: "server/internal/ids/form", imports: []string{".", "typed", "veil"}},
	{pattern: "server/internal/load", imports: []string{".", "client"}},
	{pattern: "server/internal/ids/check", imports: []string{".", "server/internal/ids/inspect"}},
	{pattern: "server/internal/ids/adopt", imports: []string{".", "server/internal/ids/check", "server/internal/ids/inspect"}},
	{pattern: "server/internal/ids/textfmt", imports: []string{"grant", "server/internal/ids/inspect"}},
	{
		pattern: "server/internal/fleet/doctor",
		imports: []string{"grant", "server/internal/fleet/health", "server/internal/fleet/members", "server/internal/access/readfile", "server/internal/service"},
		tests:   []string{".", "grant/memstore"},
	},
	{pattern: "server/internal/protocol/requestid"},
	{pattern: "server/internal/fleet/members", imports: []string{"grant"}, tests: []string{"grant/memstore", "server/internal/test/nettest"}},
	{pattern: "server/internal/fleet/metrics", imports: []string{"grant"}},
	{pattern: "server/internal/protocol/listen", tests: []string{"server/internal/test/nettest"}},
	{pattern: "server/internal/access/readfile"},
	{pattern: "server/internal/ids/records"},
	{pattern: "server/internal/ids/sqlgen", imports: []string{"."}, tests: []string{"server/internal/test/sqltest", "typed"}},
	{pattern: "server/internal/access/tlsconf", imports: []string{"server/internal/access/readfile"}, tests: []string{"server/internal/test/nettest"}},
	{pattern: "server/internal/test/nettest", imports: []string{"grant"}},
	{pattern: "server/internal/test/servicetest", imports: []string{".", "server/internal/service"}},
	{
		pattern: "server/internal/fleet/tracing",
		imports: []string{"grant", "server/internal/protocol/requestid"},
		tests:   []string{".", "grant/memstore", "server/internal/protocol/httpapi", "server/internal/service", "server/internal/test/tracingtest", "server/internal/test/nettest"},
	},
	{pattern: "server/internal/test/tracingtest", imports: []string{"server/internal/test/nettest"}},
	// Only this package knows the stores.
	{
		pattern: "server/stores",
		imports: []string{"etcdstore", "grant", "grant/dirstore", "grant/sqlstore", "kubestore", "server/internal/access/tlsconf"},
		tests:   []string{".", "grant/memstore", "grant/storetest", "sequencer", "server/internal/fleet/health", "server/internal/test/sqltest", "server/internal/test/nettest"},
	},
	{pattern: "server/internal/fleet/health", imports: []string{"grant", "server/stores"}, tests: []string{"grant/memstore"}},
	{pattern: "server/internal/localstore"},
	{pattern: "server/internal/test/sqltest", imports: []string{"server/internal/test/nettest"}},
	// Programs that take a node ID from a store.
	{pattern: "server/internal/noderun", imports: []string{".", "grant", "sequencer", "server/internal/ids/textfmt"}, tests: []string{"grant/memstore", "grant/dirstore", "server/internal/test/nettest"}},
	// The server, tests of complete ones, and the command.
	{
		pattern: "server",
		imports: []string{
			".", "grant", "sequencer", "veil", "server/internal/access/auth", "server/internal/console", "server/internal/service/forwarding", "server/internal/protocol/httpapi", "server/internal/protocol/listen", "server/internal/fleet/members",
			"server/internal/fleet/metrics", "server/internal/protocol/respapi", "server/internal/protocol/rpcapi", "server/internal/service", "server/internal/fleet/health", "server/internal/access/tlsconf", "server/internal/fleet/tracing",
		},
		tests: []string{"client", "grant/memstore", "server/internal/protocol/requestid", "server/internal/protocol/rpcapi/firnv1", "server/internal/test/nettest", "server/stores"},
	},
	{
		pattern: "server/internal/test/e2e",
		tests:   []string{".", "etcdstore", "grant/...", "internal/kubetest", "sequencer", "server/internal/test/etcdtest", "server/internal/test/nettest", "server/internal/test/sqltest", "server/stores", "typed", "veil"},
	},
	{pattern: "server/internal/test/etcdtest"},
	{pattern: "server/internal/test/conformance", tests: []string{".", "client", "server/internal/test/nettest"}},
	{
		pattern: "server/cmd/firn",
		imports: []string{".", "client", "grant", "grant/dirstore", "sequencer", "veil", "server/..."},
		tests:   []string{"grant/memstore", "internal/kubetest"},
	},
	{pattern: "examples/go/postgres", imports: []string{".", "grant/sqlstore", "sequencer"}},
	{pattern: "examples/go/etcd", imports: []string{".", "etcdstore", "sequencer"}},
	{pattern: "examples/go/kubernetes", imports: []string{".", "kubestore", "sequencer"}},
	{pattern: "examples/gorm", imports: []string{"client", "typed"}, tests: []string{"client/clienttest"}},
	{pattern: "examples/webshop", imports: []string{".", "grant/sqlstore", "sequencer", "typed", "veil"}},
	{pattern: "bench", tests: []string{".", "client", "etcdstore", "grant", "grant/dirstore", "sequencer", "veil"}},
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
