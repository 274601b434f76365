package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// licenses has the licenses of everything that the program contains; make
// licenses writes the file.
//
//go:embed licenses.txt
var licenses string

// A build is what is known about the build of this program.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// buildOf uses the linker's flag first, and then the Go command's record.
func buildOf() build {
	b := build{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	b.Version = cmp.Or(b.Version, "devel")
	return b
}

func newVersion(a *app) *cobra.Command {
	var asJSON, asLicenses bool
	cmd := command("version", noArgs, func(*cobra.Command, []string) error {
		switch b := buildOf(); {
		case asLicenses:
			fmt.Fprint(a.stdout, licenses)
		case asJSON:
			a.printJSON(b)
		default:
			fmt.Fprintf(a.stdout, "firn %s (%s, %s/%s)\n", b.Version, b.Go, b.OS, b.Arch)
		}
		return nil
	})
	jsonVar(cmd, &asJSON)
	cmd.Flags().BoolVar(&asLicenses, "licenses", false, "print the licenses of everything that this program contains")
	cmd.MarkFlagsMutuallyExclusive("json", "licenses")
	return cmd
}
