package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// here is the file that findings name as the place of the table and of the
// exceptions.
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
	{pattern: "internal/picture", imports: []string{"."}},
	{pattern: "internal/simkit"},
	{pattern: "tools/kube"},
	{pattern: "tools/mutate"},
	{pattern: "tools/licenses"},
	{pattern: "tools/voice"},
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
		imports: []string{".", "grant", "server/auth", "server/members", "server/requestid", "server/rpcapi/firnv1", "server/service"},
		tests:   []string{"grant/memstore", "sequencer", "server/forwarding", "server/nettest"},
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
	// The Peers of a service, over gRPC.
	{
		pattern: "server/forwarding",
		imports: []string{".", "grant", "sequencer", "server/members", "server/requestid", "server/rpcapi/firnv1", "server/service", "server/textfmt"},
		tests:   []string{"grant/memstore", "server/auth", "server/nettest", "server/rpcapi"},
	},
	// Building blocks of the protocols and of service.
	{pattern: "server/auth", imports: []string{"server/config", "server/readfile"}},
	{pattern: "server/config", imports: []string{".", "grant"}},
	{pattern: "server/inspect", imports: []string{"."}},
	{pattern: "server/load", imports: []string{"server/rpcapi/firnv1", "server/service"}},
	{pattern: "server/check", imports: []string{".", "server/inspect"}},
	{pattern: "server/textfmt", imports: []string{"grant", "server/inspect"}},
	{
		pattern: "server/doctor",
		imports: []string{"grant", "server/members", "server/readfile"},
		tests:   []string{"grant/memstore"},
	},
	{pattern: "server/requestid"},
	{pattern: "server/members", imports: []string{"grant"}, tests: []string{"grant/memstore", "server/nettest"}},
	{pattern: "server/metrics"},
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
		imports: []string{".", "grant", "grant/dirstore", "sequencer", "server/..."},
		tests:   []string{"client", "grant/memstore", "kubestore/kubetest"},
	},
	{
		pattern: "bench",
		imports: []string{".", "grant/...", "sequencer", "client", "etcdstore", "server/..."},
	},
}

// noExample names the exported types of the root package that need no example
// of their own, with the reason. An example named in a reason must exist.
var noExample = map[string]string{
	"AnyID":         "the constraint of the generic types",
	"BatchOf":       "the generic form of Batch and Batch128",
	"PrefetcherOf":  "the generic form of Prefetcher and Prefetcher128",
	"RunOf":         "the generic form of Run and Run128",
	"SourceOf":      "the generic form of Source and Source128",
	"Batch128":      "a Batch with wider IDs, made by the same code",
	"Cursor128":     "a Cursor with wider IDs",
	"Prefetcher128": "a Prefetcher with wider IDs, made by the same code",
	"Run128":        "a Run with wider IDs, made by the same code",
	"Source128":     "a Source with wider IDs",
	"PresetKey":     "a part of PresetInfo",

	"Options":       "in Example and ExampleGenerator_TryNext",
	"WaitError":     "in ExampleGenerator_TryNext",
	"RangeError":    "in ExampleNodePart",
	"ParseError":    "its text contains everything",
	"PrefetchStats": "in ExamplePrefetcher",
	"Source":        "in ExamplePrefetcher",
	"Batch":         "in ExampleGenerator_NextBatch and ExampleRun",
}

func TestImports(t *testing.T) {
	report(t, checkImports(repository(t), imports, here+" (imports)"))
}

// TestTable: each line is for one package, and the table names no package that
// does not exist.
func TestTable(t *testing.T) {
	r := repository(t)
	for i, line := range imports {
		if strings.HasSuffix(line.pattern, "*") || strings.HasSuffix(line.pattern, "...") {
			t.Errorf("%s: the line of %s is for several packages: give each a line", here, line.pattern)
		}
		if slices.ContainsFunc(imports[:i], func(l importLine) bool { return l.pattern == line.pattern }) {
			t.Errorf("%s: the table has two lines for %s", here, line.pattern)
		}
		for _, pattern := range slices.Concat([]string{line.pattern}, line.imports, line.tests) {
			if !slices.ContainsFunc(r.packages, func(p *pkg) bool { return matches(pattern, p.dir) }) {
				t.Errorf("%s: the table of imports names %s, which does not exist", here, pattern)
			}
		}
	}
}

func TestZeroDependencies(t *testing.T) {
	report(t, checkZeroDependencies(repository(t)))
}

func TestPackageComments(t *testing.T) {
	report(t, checkPackageComments(repository(t)))
}

func TestNames(t *testing.T) {
	report(t, checkNames(repository(t)))
}

func TestSelfContained(t *testing.T) {
	report(t, checkSelfContained(repository(t)))
}

func TestExamples(t *testing.T) {
	report(t, checkExamples(repository(t), noExample, here+" (noExample)"))
}

func TestVariables(t *testing.T) {
	report(t, checkVariables(repository(t)))
}

// TestLoad shows that the rules see files.
func TestLoad(t *testing.T) {
	r := repository(t)
	report(t, r.broken)
	found := make(map[string]bool)
	for _, p := range r.packages {
		found[p.dir] = true
	}
	for _, dir := range []string{".", "internal/arch"} {
		if !found[dir] {
			t.Errorf("package %s is not among the %d packages that were read", dir, len(r.packages))
		}
	}
	t.Logf("read %d modules, %d packages and %d text files", len(r.modules), len(r.packages), len(r.texts))
}

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
