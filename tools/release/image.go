package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user as which the image runs. It is a number, so that
// Kubernetes can verify that it is not root.
const imageUser = 65532

// imageName is where the image is published.
const imageName = "ghcr.io/firnid/firn"

// makeImage writes an image for all Linux targets as an OCI layout in one file:
// the binary, the certificates of public authorities, and nothing else, not
// even a shell. The file is an archive of docker save too: without containerd's
// image store, the default before Docker 29, docker load reads only that.
func (r *release) makeImage() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	name := imageName + ":" + r.number()
	var saved tarball.Manifest
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		image, err := r.image(t)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}},
		})
		manifest, err := image.Manifest()
		if err != nil {
			return err
		}
		d := tarball.Descriptor{Config: blob(manifest.Config), RepoTags: []string{name}}
		for _, layer := range manifest.Layers {
			d.Layers = append(d.Layers, blob(layer))
		}
		// Of several images with one name, Docker takes the last: amd64.
		saved = append(tarball.Manifest{d}, saved...)
	}
	annotated, ok := mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	if !ok {
		return errors.New("the index of the image lost its kind")
	}
	dir := filepath.Join(r.work(), "image")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = path.AppendIndex(annotated, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.number(),
		"io.containerd.image.name":          name, // for docker load
	}))
	if err != nil {
		return err
	}
	entries, err := entriesBelow(dir, "")
	if err != nil {
		return err
	}
	text, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	entries = append(entries, file("manifest.json", text, 0o644))
	return r.writeFile("firn_"+r.number()+"_image.tar", func(w io.Writer) error { return writeTar(w, entries, r.time) })
}

// blob returns the name of a file in an OCI layout.
func blob(d v1.Descriptor) string { return "blobs/" + d.Digest.Algorithm + "/" + d.Digest.Hex }

// labels describes the image.
func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "firn",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.source":   "https://github.com/firnid/firn",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// image returns the image of one system.
func (r *release) image(t target) (v1.Image, error) {
	binary, err := os.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	err = writeTar(&files, []entry{
		directory("etc"), directory("etc/ssl"), directory("etc/ssl/certs"),
		file("etc/ssl/certs/ca-certificates.crt", authorities(), 0o644),
		file("etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\n"+
			"firn:x:%d:%[1]d:firn:/var/lib/firn:/sbin/nologin\n", imageUser), 0o644),
		file("etc/group", fmt.Appendf(nil, "root:x:0:\nfirn:x:%d:\n", imageUser), 0o644),
		directory("usr"), directory("usr/bin"), file("usr/bin/firn", binary, 0o755),
		directory("var"), directory("var/lib"),
		// A new volume that is mounted here gets its owner.
		{name: "var/lib/firn/", mode: 0o700, owner: imageUser},
	}, r.time)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: t.os, Architecture: t.arch, Created: v1.Time{Time: r.time},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:         fmt.Sprintf("%d:%[1]d", imageUser),
			Env:          []string{"PATH=/usr/bin"},
			Entrypoint:   []string{"/usr/bin/firn"},
			Cmd:          []string{"serve"},
			ExposedPorts: map[string]struct{}{"3476/tcp": {}},
			WorkingDir:   "/",
			Healthcheck: &v1.HealthConfig{
				Test:     []string{"CMD", "/usr/bin/firn", "health"},
				Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3,
			},
			Labels: r.labels(),
		},
	})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.AppendLayers(image, layer)
}

// directory returns an entry for a directory that all users may read.
func directory(name string) entry { return entry{name: name + "/", mode: 0o755} }

// authorities returns the certificates of the public authorities that Mozilla
// trusts, in PEM: without them the image could not connect to a store with a
// public certificate. Authorities that are trusted only under conditions are
// omitted, because PEM cannot express the conditions.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}
