// Command licenses collects the licenses of everything in a program into a
// file: of the modules that its packages come from, on each system that it is
// built for, and of Go itself.
//
//	make licenses
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// systems are those for which the program is built.
var systems = [...]string{"linux", "darwin", "windows"}

// license matches the names of files with a license, in a module's directory.
var license = regexp.MustCompile(`(?i)^(LICEN[CS]E|COPYING|NOTICE|PATENTS)([.-].*)?$`)

// The program, its module and the file, seen from tools/.
const (
	module = "../server"
	pkg    = "./cmd/firn"
	out    = "../server/cmd/firn/licenses.txt"
)

func main() {
	text, err := collect()
	if err == nil {
		err = os.WriteFile(out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// collect returns the text of the file: each license after the names of the
// modules that it applies to.
func collect() ([]byte, error) {
	dirs, err := modules()
	if err != nil {
		return nil, err
	}
	of := make(map[string][]string) // names of modules by the text of their license
	for name, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, f := range files {
			if !f.Type().IsRegular() || !license.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			key := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
			of[key] = append(of[key], name)
			found = true
		}
		if !found {
			return nil, fmt.Errorf("%s has no license in %s", name, dir)
		}
	}
	var all []string
	for text, names := range of {
		slices.Sort(names)
		all = append(all, strings.Join(slices.Compact(names), "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(all)
	line := "\n" + strings.Repeat("-", 80) + "\n"
	const head = "The licenses of what firn is made of. Each follows the names of what it is of.\n"
	return []byte(head + line + "\n" + strings.Join(all, line+"\n")), nil
}

// modules returns the directories of the modules that a program consists of, by
// path and version, and that of Go.
func modules() (map[string]string, error) {
	const format = "{{if .Standard}}Go, its runtime and standard library\t{{.Root}}{{else}}{{.Module.Path}} " +
		"{{.Module.Version}}\t{{.Module.Dir}}{{end}}"
	all := map[string]string{"Firn": filepath.Join(module, "..")}
	for _, system := range systems {
		cmd := exec.Command("go", "list", "-deps", "-f", format, pkg)
		cmd.Dir, cmd.Env, cmd.Stderr = module, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+system), os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		for line := range strings.Lines(string(text)) {
			if name, dir, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(name, "github.com/firnid/firn") {
				all[name] = dir
			}
		}
	}
	return all, nil
}
