package deploy

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// root is the repository.
const root = "../.."

// chartDir is the chart.
var chartDir = filepath.Join(root, "deploy", "helm", "firn")

// read reads a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(root, name)))(t))
}

// An object is a Kubernetes object.
type object = map[string]any

// at returns the value at a path of keys and indices, or nil.
func at(v any, keys ...any) any {
	for _, k := range keys {
		switch k := k.(type) {
		case string:
			m, ok := v.(object)
			if !ok {
				return nil
			}
			v = m[k]
		case int:
			list, ok := v.([]any)
			if !ok || k >= len(list) {
				return nil
			}
			v = list[k]
		}
	}
	return v
}

// parse reads YAML documents.
func parse(t *testing.T, name, text string) (all []object) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(part), &o); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, part)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// render renders the chart like helm install. The notes are among the files.
func render(t *testing.T, values string) (objects []object, notes string) {
	t.Helper()
	files := must.Get(tryRender(t.Context(), values, common.DefaultCapabilities))(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == "NOTES.txt" {
			notes = files[name]
			continue
		}
		objects = append(objects, parse(t, name, files[name])...)
	}
	return objects, notes
}

func tryRender(ctx context.Context, values string, cluster *common.Capabilities) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	var v object
	if err := yaml.UnmarshalStrict([]byte(values), &v); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "firn", Namespace: "ids", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, v, release, cluster)
	if err != nil {
		return nil, err
	}
	e := engine.Engine{Strict: true}
	return e.RenderWithContext(ctx, chart, all)
}

// one returns the only object of a kind.
func one(t *testing.T, objects []object, kind string) object {
	t.Helper()
	var found []object
	for _, o := range objects {
		if o["kind"] == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s among %v, want one", len(found), kind, kinds(objects))
	}
	return found[0]
}

func kinds(objects []object) (all []string) {
	for _, o := range objects {
		all = append(all, fmt.Sprint(o["kind"]))
	}
	slices.Sort(all)
	return all
}

// valueSets are settings of the chart that users need.
var valueSets = map[string]string{
	"defaults": ``,
	"etcd":     `store: {url: "etcd://etcd-1:2379,etcd-2:2379/firn"}`,
	"password": `store: {existingSecret: firn-store}`,
	"bucket": `
store: {url: "s3://ids/firn?region=eu-central-1"}
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/firn"}}
extraEnv: [{name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: firn-bucket, key: id}}}]`,
	"secured": `
tls: {existingSecret: firn-tls}
tokens: {existingSecret: firn-tokens}
networkPolicy: {enabled: true}
serviceMonitor: {enabled: true, tokenSecret: firn-metrics, labels: {release: prometheus}}
prometheusRule: {enabled: true}`,
	"much": `
replicas: 5
config:
  drain: {delay: 1m30s, timeout: 2500ms}
  sequencers: {default: {layout: default}, "orders-*": {layout: hazelcast}}
podAnnotations: {a: b}
podLabels: {c: d}
nodeSelector: {disk: ssd}
tolerations: [{key: k, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
extraEnv: [{name: FIRN_LOG_LEVEL, value: debug}]
extraVolumes: [{name: ca, configMap: {name: store-ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/firn/store-ca, readOnly: true}]
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {team: shop}}}]}
imagePullSecrets: [{name: pull}]
serviceAccount: {annotations: {x: z}}
service: {annotations: {x: z}, type: LoadBalancer}`,
	"little": `
podDisruptionBudget: {enabled: false}
rbac: {create: false}
serviceAccount: {create: false, name: mine}`,
}

var firn proc.Shared[string] // the program

func TestMain(m *testing.M) { firn.Main(m) }

// checkConfig lets firn itself check a configuration. Files of secrets do not
// exist here.
func checkConfig(t *testing.T, text string) {
	t.Helper()
	program := firn.Get(t, func(t testing.TB) string { return proc.BuildGo(t, root+"/server", "./cmd/firn") })
	var v object
	must.Do(t, yaml.UnmarshalStrict([]byte(text), &v))
	if at(v, "tls") != nil {
		delete(v, "tls")
		delete(v, "tokens")
		v["insecure"] = true
	}
	data := must.Get(yaml.Marshal(v))(t)
	file := filepath.Join(t.TempDir(), "firn.yaml")
	must.Do(t, os.WriteFile(file, data, 0o644))
	if out, err := exec.Command(program, "config", "check", file).CombinedOutput(); err != nil {
		t.Errorf("firn config check: %v\n%s\n%s", err, out, data)
	}
}

// TestChart lints and renders the chart with settings that users need.
func TestChart(t *testing.T) {
	for name, values := range valueSets {
		t.Run(name, func(t *testing.T) {
			var v object
			must.Do(t, yaml.Unmarshal([]byte(values), &v))
			for _, m := range lint.RunAll(chartDir, v, "ids").Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
			objects, notes := render(t, values)
			deployment := one(t, objects, "Deployment")
			pod := at(deployment, "spec", "template", "spec")
			config := fmt.Sprint(at(one(t, objects, "ConfigMap"), "data", "firn.yaml"))
			checkConfig(t, config)
			leases, secured := strings.Contains(config, "store: kubernetes://ids"), name == "secured"
			account, grace := "firn", "35"
			switch name {
			case "little":
				account = "mine"
			case "much":
				grace = "103" // 90 + 3 + 10, longer than the drain
			}
			scheme := map[bool]string{true: "HTTPS", false: "HTTP"}[secured]
			selector := at(deployment, "spec", "selector", "matchLabels")
			all, container := kinds(objects), at(pod, "containers", 0)
			warned := strings.Contains(notes, "every pod that reaches the service is an administrator")
			for what, c := range map[string]struct{ got, want any }{
				"makes a role":                        {slices.Contains(all, "Role"), leases && name != "little"},
				"makes a NetworkPolicy":               {slices.Contains(all, "NetworkPolicy"), secured || name == "much"},
				"notes say what helm uninstall keeps": {strings.Contains(notes, "helm uninstall\" keeps"), leases},
				"notes warn that it is not secured":   {warned, !secured},
				"insecure":                            {strings.Contains(config, "insecure: true"), !secured},
				"service account":                     {at(pod, "serviceAccountName"), account},
				"grace period":                        {fmt.Sprint(at(pod, "terminationGracePeriodSeconds")), grace},
				"scheme of the liveness probe":        {at(container, "livenessProbe", "httpGet", "scheme"), scheme},
				"scheme of the readiness probe":       {at(container, "readinessProbe", "httpGet", "scheme"), scheme},
				"selector of the service":             {at(one(t, objects, "Service"), "spec", "selector"), selector},
				"selector of the topology":            {at(pod, "topologySpreadConstraints", 0, "labelSelector", "matchLabels"), selector},
			} {
				if !reflect.DeepEqual(c.got, c.want) {
					t.Errorf("%s: %v, want %v", what, c.got, c.want)
				}
			}
			if t.Failed() {
				t.Logf("firn.yaml:\n%s\nnotes:\n%s", config, notes)
			}
		})
	}
}

// TestChartRefusals: settings that would not work are an error of helm.
func TestChartRefusals(t *testing.T) {
	for values, want := range map[string]string{
		`tokens: {existingSecret: x}`:      "needs tls.existingSecret",
		`config: {drain: {delay: "soon"}}`: "is not a duration",
		`tls: {exstingSecret: x}`:          "exstingSecret",
		`replicas: three`:                  "replicas",
		`env: [{name: A, value: b}]`:       "env",
	} {
		if _, err := tryRender(t.Context(), values, common.DefaultCapabilities); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %s: error %v, want one with %q", values, err, want)
		}
	}
}

// TestOpenShift: the chart chooses no user and no group there, which its default
// security context constraints refuse.
func TestOpenShift(t *testing.T) {
	cluster := *common.DefaultCapabilities
	cluster.APIVersions = append(slices.Clone(cluster.APIVersions), "security.openshift.io/v1")
	for name, c := range map[string]*common.Capabilities{"Kubernetes": common.DefaultCapabilities, "OpenShift": &cluster} {
		files := must.Get(tryRender(t.Context(), valueSets["secured"], c))(t)
		text := files["firn/templates/deployment.yaml"]
		if got := strings.Contains(text, "fsGroup"); got != (name == "Kubernetes") || strings.Contains(text, "runAsUser") || strings.Contains(text, "runAsGroup") {
			t.Errorf("the security context on %s is wrong in\n%s", name, text)
		}
	}
}

// TestAlertsOfChart: the chart contains the rules of deploy/prometheus.
func TestAlertsOfChart(t *testing.T) {
	file := read(t, "deploy/prometheus/alerts.yaml")
	if file != read(t, "deploy/helm/firn/alerts.yaml") {
		t.Error("deploy/helm/firn/alerts.yaml differs from deploy/prometheus/alerts.yaml: copy it")
	}
	objects, _ := render(t, "prometheusRule: {enabled: true}")
	want := parse(t, "alerts.yaml", file)[0]
	if got := at(one(t, objects, "PrometheusRule"), "spec"); !reflect.DeepEqual(got, want) {
		t.Errorf("the PrometheusRule has\n%v\nwant\n%v", got, want)
	}
}

// TestManifests: the plain manifests run the same pods as the chart.
func TestManifests(t *testing.T) {
	plain := parse(t, "firn.yaml", read(t, "deploy/kubernetes/firn.yaml"))
	chart, _ := render(t, "")
	container := func(objects []object) object {
		c, _ := at(one(t, objects, "Deployment"), "spec", "template", "spec", "containers", 0).(object)
		delete(c, "env") // the store is in the chart's file
		return c
	}
	if got, want := container(plain), container(chart); !reflect.DeepEqual(got, want) {
		t.Errorf("the container of the manifests is\n%v\nand that of the chart\n%v", got, want)
	}
	for _, key := range []string{"terminationGracePeriodSeconds", "securityContext", "enableServiceLinks"} {
		get := func(objects []object) any {
			return at(one(t, objects, "Deployment"), "spec", "template", "spec", key)
		}
		if got, want := get(plain), get(chart); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v in the manifests and %v in the chart", key, got, want)
		}
	}
	checkConfig(t, fmt.Sprint(at(one(t, plain, "ConfigMap"), "data", "firn.yaml")))
}
