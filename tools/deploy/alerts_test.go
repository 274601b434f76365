package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlerts runs promtool on the rules and their tests.
func TestAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here (of the package prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = filepath.Join(root, "deploy", "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestAlertsComplete: every rule has a test in which it fires, a runbook, and
// existing metrics.
func TestAlertsComplete(t *testing.T) {
	rules, tests, metrics := read(t, "deploy/prometheus/alerts.yaml"), read(t, "deploy/prometheus/alerts_test.yaml"), read(t, "docs/metrics.md")
	names := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(names) < 5 {
		t.Fatalf("the rules are %v", names)
	}
	runbooks := read(t, "docs/runbooks.md")
	for _, name := range names {
		if !strings.Contains(runbooks, "\n### "+name[1]+"\n") || !strings.Contains(rules, "docs/runbooks.md#"+strings.ToLower(name[1])+"\n") {
			t.Errorf("%s has no runbook, or does not link to it", name[1])
		}
		if !regexp.MustCompile(`alertname: ` + name[1] + `\n\s+exp_alerts:.*\n\s+- exp_labels`).MatchString(tests) {
			t.Errorf("no test has %s fire", name[1])
		}
	}
	for _, m := range regexp.MustCompile(`firn_\w+`).FindAllString(rules, -1) {
		if !strings.Contains(metrics, "`"+m+"`") {
			t.Errorf("a rule is of %s, which docs/metrics.md does not have", m)
		}
	}
}
