//go:build unix

package noderun

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestGenerators: generators of others, run under node IDs as
// docs/worker-ids.md says, and killed and stopped at random, repeat no ID.
func TestGenerators(t *testing.T) {
	t.Parallel()
	nettest.Long(t)
	lives := 6
	if os.Getenv("FIRN_SOAK") != "" {
		lives = 201
	}
	sources := must.Get(filepath.Abs("testdata/generators"))(t)
	build := must.Get(filepath.Abs("../../../../build/generators"))(t)
	peers, classes, module := filepath.Join(build, "peers"), filepath.Join(build, "java"), filepath.Join(build, "node")
	jars := filepath.Join(classes, "*")
	type generator struct{ name, env string }
	for _, language := range []struct {
		install    [][]string
		command    []string
		generators []generator
	}{{
		install:    [][]string{{"go", "build", "-C", sources, "-buildvcs=false", "-o", peers}},
		command:    []string{peers},
		generators: []generator{{"bwmarrin", "WORKER_ID={node}"}, {"sonyflake", "WORKER_ID={node}"}},
	}, {
		install: [][]string{
			{"cp", "-R", filepath.Join(sources, "node"), build},
			{"npm", "install", "--prefix", module, "--no-audit", "--no-fund", "--silent"},
		},
		command:    []string{"node", filepath.Join(module, "main.js")},
		generators: []generator{{"flake-idgen", "WORKER_ID={node}"}},
	}, {
		install: append(copyJars(classes,
			"com.baomidou:mybatis-plus-core:3.5.7", "org.mybatis:mybatis:3.5.16", "cn.hutool:hutool-core:5.8.28",
			"com.github.yitter:yitter-idgenerator:1.0.6", "com.github.f4b6a3:tsid-creator:5.2.6",
			"io.hypersistence:hypersistence-tsid:2.1.4", "io.seata:seata-common:1.8.0",
		), []string{"javac", "-cp", jars, "-d", classes, filepath.Join(sources, "java", "Main.java")}),
		command: []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classes + ":" + jars, "Main"},
		generators: []generator{
			{"mybatis-plus", "WORKER_ID={node%32} DATACENTER_ID={node/32}"},
			{"hutool", "WORKER_ID={node%32} DATACENTER_ID={node/32}"},
			{"tsid-creator", "TSIDCREATOR_NODE={node} TSIDCREATOR_NODE_COUNT=1024"},
			{"hypersistence-tsid", "TSID_NODE={node} TSID_NODE_COUNT=1024"},
			{"yitter", "WORKER_ID={node}"},
			{"seata", "WORKER_ID={node}"},
		},
	}} {
		missing := install(t, build, language.install)
		for _, g := range language.generators {
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				if missing != "" {
					t.Skip("cannot be installed here: " + missing)
				}
				dir := t.TempDir()
				clock := filepath.Join(dir, "clock")
				must.Do(t, os.WriteFile(clock, []byte("0s"), 0o600))
				seed := uint64(time.Now().UnixNano())
				t.Logf("seed %d", seed)
				command := slices.Concat([]string{"env"}, strings.Fields(g.env), language.command, []string{g.name, dir})
				kinds := someLives(dir, []string{clock}, lives, rand.New(rand.NewPCG(seed, 1)), runVar+"="+strings.Join(command, "\n"))
				noneTwice(t, g.name, dir, kinds)
			})
		}
	}
}

// copyJars returns the commands that download the given artifacts.
func copyJars(dir string, artifacts ...string) (commands [][]string) {
	for _, artifact := range artifacts {
		commands = append(commands, []string{
			"mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy", "-Dartifact=" + artifact, "-DoutputDirectory=" + dir,
		})
	}
	return commands
}

// install runs commands in a directory, and returns why the first one failed.
func install(t *testing.T, dir string, commands [][]string) (failure string) {
	must.Do(t, os.MkdirAll(dir, 0o755))
	for _, words := range commands {
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %v: %s", words, err, out)
		}
	}
	return ""
}

// noneTwice reads the IDs that commands wrote, and reports IDs of two commands.
func noneTwice(t *testing.T, name, dir string, kinds map[string]int) {
	late := excused(t, dir)
	owner := make(map[string]string)
	files, _ := filepath.Glob(filepath.Join(dir, "used-*"))
	repeats := 0
	for _, file := range files {
		f := must.Get(os.Open(file))(t)
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
