//go:build unix

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// lettuceVersion is the measured release of Lettuce.
const lettuceVersion = "7.7.0.RELEASE"

//go:embed LettucePeer.java
var lettucePeer []byte

// lettucePOM is the input of Maven: Lettuce has dependencies.
const lettucePOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>bench</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>io.lettuce</groupId>
      <artifactId>lettuce-core</artifactId>
      <version>` + lettuceVersion + `</version>
    </dependency>
  </dependencies>
</project>
`

// lettuceModes are the modes of LettucePeer.java.
func lettuceModes() []string { return []string{"sync", "async-100"} }

// lettuce measures INCR with Lettuce, the common Redis client for Java: one
// process alternates between Firn and Redis.
func (r *run) lettuce(program string) {
	wanted := false
	for _, mode := range lettuceModes() {
		wanted = wanted || r.wants("lettuce/"+mode+"/firn:redis")
	}
	if !wanted {
		return
	}
	dir, remove := temporary("lettuce")
	defer remove()
	command, err := lettuceJars(r.ctx, dir)
	failed(err)
	r.withRedis(func(_ *process, redisAddress string) {
		r.withFirn(program, func(s *firnServer) {
			const rounds = 15
			_, firnPort, _ := net.SplitHostPort(s.address)
			_, redisPort, _ := net.SplitHostPort(redisAddress)
			ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, command[0], append(command[1:], firnPort, redisPort, fmt.Sprint(rounds))...)
			var log bytes.Buffer
			cmd.Stderr = &log
			out, err := cmd.Output()
			if err != nil {
				failed(fmt.Errorf("the client of Lettuce ended: %w: %.300s", err, log.Bytes()))
			}
			rates, err := lettuceRates(string(out))
			failed(err)
			for _, mode := range lettuceModes() {
				name, all := "lettuce/"+mode, rates[mode]
				note := Figure{Note: "one connection of Lettuce " + lettuceVersion}
				r.add(name+"/firn", spreadOf(all.a), "k/s", note)
				r.add(name+"/redis", spreadOf(all.b), "k/s", note)
				r.add(name+"/firn:redis", spreadOf(ratios(all.a, all.b)), "x", Figure{})
			}
		})
	})
}

// lettuceJars puts Lettuce and its dependencies into a directory and returns
// the beginning of the client's command.
func lettuceJars(ctx context.Context, dir string) ([]string, error) {
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(lettucePOM), 0o600); err != nil {
		return nil, err
	}
	return javaPeer(ctx, dir, "LettucePeer.java", lettucePeer, "dependency:copy-dependencies")
}

// lettuceRates parses the output of LettucePeer.java, in thousands per second:
// a for the first server, b for the second.
func lettuceRates(out string) (map[string]*samples, error) {
	all := make(map[string]*samples)
	for _, mode := range lettuceModes() {
		all[mode] = new(samples)
	}
	for line := range strings.Lines(out) {
		var mode string
		var a, b float64
		if _, err := fmt.Sscan(line, &mode, &a, &b); err != nil || all[mode] == nil || !(a > 0 && b > 0) {
			return nil, fmt.Errorf("the client of Lettuce printed %q", line)
		}
		all[mode].a = append(all[mode].a, a/1e3)
		all[mode].b = append(all[mode].b, b/1e3)
	}
	return all, nil
}
