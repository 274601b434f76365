package s3store

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/proc"
)

// realServers are servers of others: how to install each in a directory, how to
// start it there with a bucket at $HOST:$PORT, and why Open refuses it. Bash runs
// both; "" means that it is accepted.
var realServers = []struct{ name, install, start, want string }{
	{"s3rver 3.7.1", npm("s3rver@3.7.1"), s3rver("s3rver"), "a second create of one key"},
	{"s3rver 4.0.4", npm("@20minutes/s3rver@4.0.4"), s3rver("@20minutes/s3rver"), "a second create of one key"},
	{"S3Mock 5.0.0", "mvn -q -B dependency:copy -Dartifact=com.adobe.testing:s3mock:5.0.0:jar:exec -DoutputDirectory=.",
		"exec java -Dserver.port=0 -Dhttp.port=$PORT -Dcom.adobe.testing.s3mock.store.initial-buckets=ids -jar s3mock-5.0.0-exec.jar",
		"whose If-Match is true and whose If-None-Match is false"},
	{"s3proxy 3.0.0", `echo '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId>
<version>1</version><dependencies><dependency><groupId>org.gaul</groupId><artifactId>s3proxy</artifactId>
<version>3.0.0</version></dependency></dependencies></project>' >pom.xml
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib`, `mkdir -p data/ids
printf '%s\n' s3proxy.endpoint=http://$HOST:$PORT s3proxy.authorization=none jclouds.provider=filesystem-nio2 \
	jclouds.identity=a jclouds.credential=a jclouds.filesystem.basedir=data >conf
exec java -cp 'lib/*' org.gaul.s3proxy.Main --properties conf`, "cannot be a store"}, // which fault shows varies
	{"gofakes3 1.2.0 in memory", "GOBIN=$PWD GOFLAGS=-mod=mod GOWORK=off go install github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0",
		"exec ./gofakes3 -backend memory -host $HOST:$PORT -initialbucket ids", ""},
}

func npm(name string) string {
	return "npm install --prefix . --no-audit --no-fund --loglevel=error " + name
}

func s3rver(name string) string {
	return `exec node -e 'new (require("` + name + `"))({address: "'$HOST'", port: '$PORT', silent: true, directory: "data",
configureBuckets: [{name: "ids"}]}).run()'`
}

// TestRealServers installs real servers from package registries, and opens a store
// on each.
func TestRealServers(t *testing.T) {
	if os.Getenv("FIRN_ALL") == "" {
		t.Skip("it installs servers: make test-all runs it, or FIRN_ALL=1")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "S3RVER") // the others accept any
	t.Setenv("AWS_SECRET_ACCESS_KEY", "S3RVER")
	for _, c := range realServers {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			install := exec.Command("bash", "-c", c.install)
			install.Dir = dir
			if out, err := install.CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: %s cannot be installed: %v: %s", c.name, err, out)
			}
			address := proc.FreeAddress(t)
			host, port, _ := strings.Cut(address, ":")
			cmd := exec.Command("bash", "-c", c.start)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOST="+host, "PORT="+port)
			server := proc.StartCommand(t, cmd)
			t.Cleanup(server.Kill)
			if !server.AwaitAnswer("http://"+address, false) {
				t.Fatalf("%s does not start: %s", c.name, server.Log())
			}
			o := options("http://" + address)
			s, err := Open(t.Context(), &o)
			switch {
			case err == nil && c.want == "":
				_ = s.Close()
			case c.want == "" || !isUnfit(err) || !strings.Contains(err.Error(), c.want):
				t.Errorf("Open = %v, want %q", err, c.want)
			}
			t.Logf("report: %s: %v", c.name, err)
		})
	}
}
