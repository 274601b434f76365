package stores_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/stores"
)

// TestDefaultWindows: the pages, the help and the comments that name the
// default windows have those of the stores. A fence after a restore may depend
// on such a number.
func TestDefaultWindows(t *testing.T) {
	if _, err := os.Stat("../../docs"); err != nil {
		t.Skip("the module stands alone, without the repository's docs")
	}
	window := func(url string) time.Duration {
		s := must.Get(stores.Open(t.Context(), url))(t)
		defer s.Close()
		return grant.DefaultConfig(s, firn.Default(), nil).Window
	}
	directory := window("dir:" + t.TempDir() + "?create=true&volatile=true")
	bucket, cluster := window(keptBucket(t)), window(emptyCluster(t))
	others := grant.DefaultConfig(nil, firn.Default(), nil).Window
	if bucket != cluster {
		t.Fatalf("the window is %v in a bucket and %v in Kubernetes, which the pages name together", bucket, cluster)
	}

	said := fmt.Sprintf("%s in a directory, %s in a bucket or Kubernetes, %s elsewhere",
		spell(directory), spell(bucket), spell(others))
	for file, want := range map[string]string{
		"docs/config.md":                        said,
		"docs/restore.md":                       said,
		"sequencer/options.go":                  said,
		"server/proto/firn/v1/sequencers.proto": said,
		"server/cmd/firn/sequencer.go":          strings.NewReplacer(" s ", "s ", " min ", "m ").Replace(said),
		"docs/object-store.md":                  fmt.Sprintf("default window is %.0f minutes", bucket.Minutes()),
		"docs/kubernetes.md":                    fmt.Sprintf("is %.0f minutes here", cluster.Minutes()),
		"grant/store.go":                        fmt.Sprintf("the default of Config.Window; 0 means %s", spell(others)),
	} {
		// Without the marks and breaks of comments, and of strings joined by +.
		text := regexp.MustCompile(`("\s*\+)?\s+(//\s|")?`).ReplaceAllString(page(t, file), " ")
		if !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}

	// docs/operations.md has a row for each, and docs/restore.md commands that
	// can be copied.
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\| \*\*(.*?)\*\* \|.*\*\*default in (.*?)\*\* \|$`).
		FindAllStringSubmatch(page(t, "docs/operations.md"), -1) {
		rows[m[2]] = m[1]
	}
	want := map[string]string{
		"a directory": spell(directory), "a bucket or Kubernetes": spell(bucket), "etcd and databases": spell(others),
	}
	if !maps.Equal(rows, want) {
		t.Errorf("docs/operations.md has the defaults %v, want %v", rows, want)
	}
	for heading, least := range map[string]time.Duration{
		"etcd": others, "PostgreSQL": others, "MySQL, MariaDB": others, "A directory": directory, "A bucket": bucket,
	} {
		_, section, _ := strings.Cut(page(t, "docs/restore.md"), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		longest := regexp.MustCompile(`--longest-window (\w+)`).FindAllStringSubmatch(section, -1)
		if len(longest) == 0 {
			t.Errorf("docs/restore.md: %s has no --longest-window", heading)
		}
		for _, m := range longest {
			if d := must.Get(time.ParseDuration(m[1]))(t); d < least {
				t.Errorf("docs/restore.md: %s fences with %s, and the default window is %v", heading, m[0], least)
			}
		}
	}
}

// page returns a file of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../" + name))(t))
}

// spell writes a window as the pages do.
func spell(d time.Duration) string {
	if d > time.Minute {
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// keptBucket returns the URL of a bucket that has nothing but the result of a
// probe, so that s3store opens it without another one.
func keptBucket(t *testing.T) string {
	t.Setenv("AWS_ACCESS_KEY_ID", "some")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "some")
	var endpoint string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC()
		w.Header().Set("ETag", `"some"`)
		w.Header().Set("Last-Modified", now.Format(http.TimeFormat))
		fmt.Fprintf(w, `{"endpoint":%q,"bucket":"ids","version":1,"date":%q}`, endpoint, now.Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	endpoint = server.URL
	return "s3://ids/firn?path-style=true&endpoint=" + endpoint
}

// emptyCluster returns the URL of an API server that has one Lease, which
// identifies the store.
func emptyCluster(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		fmt.Fprintf(w, `{"kind":"LeaseList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":%q,"uid":"u"}}]}`,
			name)
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	must.Do(t, os.WriteFile(config, fmt.Appendf(nil, "{current-context: a, contexts: [{name: a, context: {cluster: a}}], "+
		"clusters: [{name: a, cluster: {server: %q}}]}", server.URL), 0o600))
	return "kubernetes://ids?kubeconfig=" + config
}
