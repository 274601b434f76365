//go:build unix

package noderun

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestGenerators: generators of others, run under node IDs and killed and
// stopped at random, repeat no ID.
func TestGenerators(t *testing.T) {
	t.Parallel()
	nettest.All(t)
	lives := 6
	if os.Getenv("FIRN_SOAK") != "" {
		lives = 201
	}
	sources, err := filepath.Abs("testdata/generators")
	if err != nil {
		t.Fatal(err)
	}
	build, err := filepath.Abs("../../../build/generators")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		install [][]string
		command []string
	}{
		{"bwmarrin", [][]string{{"go", "build", "-C", sources, "-buildvcs=false", "-o", filepath.Join(build, "bwmarrin")}}, []string{filepath.Join(build, "bwmarrin"), "bwmarrin"}},
		{"sonyflake", [][]string{{"go", "build", "-C", sources, "-buildvcs=false", "-o", filepath.Join(build, "sonyflake")}}, []string{filepath.Join(build, "sonyflake"), "sonyflake"}},
		{"flake-idgen", [][]string{
			{"cp", "-R", filepath.Join(sources, "node"), build},
			{"npm", "install", "--prefix", filepath.Join(build, "node"), "--no-audit", "--no-fund", "--silent"},
		}, []string{"node", filepath.Join(build, "node", "main.js")}},
		{"tsid-creator", [][]string{
			{"mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy", "-Dartifact=com.github.f4b6a3:tsid-creator:5.2.6", "-DoutputDirectory=" + filepath.Join(build, "java")},
			{"javac", "-cp", filepath.Join(build, "java", "*"), "-d", filepath.Join(build, "java"), filepath.Join(sources, "java", "Main.java")},
		}, []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(build, "java") + ":" + filepath.Join(build, "java", "*"), "Main"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := os.MkdirAll(build, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, words := range tt.install {
				cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
				cmd.Dir, cmd.Env = build, append(os.Environ(), "GOWORK=off")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Skipf("%s cannot be installed here: %v: %s", tt.name, err, out)
				}
			}
			dir := t.TempDir()
			clock := filepath.Join(dir, "clock")
			if err := os.WriteFile(clock, []byte("0s"), 0o600); err != nil {
				t.Fatal(err)
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			kinds := someLives(dir, []string{clock}, lives, rand.New(rand.NewPCG(seed, 1)), runVar+"="+strings.Join(append(tt.command, dir), "\n"))
			noneTwice(t, tt.name, dir, kinds)
		})
	}
}

// noneTwice reads the IDs that commands wrote, and reports IDs of two commands.
func noneTwice(t *testing.T, name, dir string, kinds map[string]int) {
	late := excused(t, dir)
	owner := make(map[string]string)
	files, _ := filepath.Glob(filepath.Join(dir, "used-*"))
	repeats := 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		pid := strings.TrimPrefix(filepath.Base(file), "used-")
		for in := bufio.NewScanner(f); in.Scan(); {
			id := in.Text()
			other, twice := owner[id]
			owner[id] = pid
			if !twice || other == pid && len(id) < 10 { // a line that a kill cut
				continue
			}
			if late[pid] || late[other] {
				repeats++
				continue
			}
			t.Errorf("ID %s of process %s and of %s", id, other, pid)
		}
		_ = f.Close()
	}
	if len(owner) == 0 {
		t.Error("no ID was made")
	}
	t.Logf("report: node run: %s: %d IDs of %d processes, %v; none twice, but %d by a stated exception", name, len(owner), len(files), kinds, repeats)
}
