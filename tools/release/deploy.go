package main

import (
	"io"
	"path"
	"path/filepath"
	"strings"
)

// makeDeploy writes the files in deploy/ for Kubernetes and Compose, with the
// version of the release: the Helm chart in the form of helm package, and the
// rest in one archive.
//
// In the tree the version is 0.0.0, which no release has.
func (r *release) makeDeploy() error {
	chart, err := r.deployEntries("deploy/helm/firn", "firn")
	if err != nil {
		return err
	}
	err = r.writeFile("firn-"+r.number()+".tgz", func(w io.Writer) error { return writeTarGz(w, chart, r.time) })
	if err != nil {
		return err
	}
	var rest []entry
	name := "firn_" + r.number() + "_deploy"
	for _, dir := range []string{"compose", "kubernetes", "prometheus"} {
		entries, err := r.deployEntries("deploy/"+dir, path.Join(name, dir))
		if err != nil {
			return err
		}
		rest = append(rest, entries...)
	}
	return r.writeFile(name+".tar.gz", func(w io.Writer) error { return writeTarGz(w, rest, r.time) })
}

// deployEntries returns the files below a directory of the repository, with the
// version of the release, as entries below another one.
func (r *release) deployEntries(dir, as string) ([]entry, error) {
	all, err := entriesBelow(filepath.Join(r.src, filepath.FromSlash(dir)), as)
	text := strings.NewReplacer(
		imageName+":0.0.0", imageName+":"+r.number(),
		"version: 0.0.0", "version: "+r.number(), // Chart.yaml
		"appVersion: \"0.0.0\"", "appVersion: \""+r.number()+"\"",
	)
	for i, e := range all {
		all[i].data = []byte(text.Replace(string(e.data)))
	}
	return all, err
}
