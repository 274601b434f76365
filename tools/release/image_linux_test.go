package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// openImage unpacks the file of an image and returns its index.
func openImage(t *testing.T, file string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	untar(t, bytes.NewReader(read(t, file)), dir)
	path := must(layout.FromPath(dir))(t)
	outer := must(path.ImageIndex())(t)
	manifest := must(outer.IndexManifest())(t)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d images, want one for all systems", len(manifest.Manifests))
	}
	inner := must(outer.ImageIndex(manifest.Manifests[0].Digest))(t)
	mustDo(t, validate.Index(inner))
	return inner
}

// imageOf returns the image of one system.
func imageOf(t *testing.T, index v1.ImageIndex, want target) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	found, err := partial.FindImages(index, match.Platforms(v1.Platform{OS: want.os, Architecture: want.arch}))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d images for %s: %v", len(found), want, err)
	}
	config := must(found[0].ConfigFile())(t)
	return found[0], config
}

// TestImageSystems: the image of each system contains the binary of that
// system, and is labelled accordingly.
func TestImageSystems(t *testing.T) {
	dir := t.TempDir()
	r := &release{version: testVersion, time: time.Unix(1_800_000_000, 0).UTC(), out: dir,
		targets: []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}}
	for _, system := range r.targets {
		write(t, r.binary(system), []byte("firn for "+system.String()), 0o755)
	}
	mustDo(t, r.makeImage())
	archive := filepath.Join(dir, "firn_0.99.0_image.tar")
	index := openImage(t, archive)
	manifest := must(index.IndexManifest())(t)
	if len(manifest.Manifests) != 2 {
		t.Errorf("the image is for %d systems, want linux/amd64 and linux/arm64", len(manifest.Manifests))
	}
	for _, arch := range []string{"amd64", "arm64"} {
		want := target{"linux", arch}
		image, config := imageOf(t, index, want)
		if config.OS != "linux" || config.Architecture != arch {
			t.Errorf("the image for %s says that it is for %s/%s", want, config.OS, config.Architecture)
		}
		root := unpackImage(t, image)
		if got := string(read(t, filepath.Join(root, "usr", "bin", "firn"))); got != "firn for "+want.String() {
			t.Errorf("the image for %s has %q", want, got)
		}
	}

	// As docker load reads it, which takes the last of several images.
	saved, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil || len(saved) != 2 {
		t.Fatalf("the archive for Docker has %d images, %v, want 2", len(saved), err)
	}
	for i, arch := range []string{"arm64", "amd64"} {
		image, _ := imageOf(t, index, target{"linux", arch})
		manifest := must(image.Manifest())(t)
		if d := saved[i]; d.Config != blob(manifest.Config) || d.RepoTags[0] != imageName+":0.99.0" || len(d.Layers) != 1 || d.Layers[0] != blob(manifest.Layers[0]) {
			t.Errorf("image %d for Docker is %+v, want that of %s", i, d, arch)
		}
	}
}

// unpackImage creates the root of a container.
func unpackImage(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	flat := mutate.Extract(image)
	defer flat.Close()
	for _, h := range untar(t, flat, root) {
		if os.Geteuid() == 0 {
			mustDo(t, os.Lchown(filepath.Join(root, h.Name), h.Uid, h.Gid))
		}
		if h.Typeflag == tar.TypeDir {
			mustDo(t, os.Chmod(filepath.Join(root, h.Name), h.FileInfo().Mode()))
		}
	}
	return root
}

// chrooted returns a command that runs in a directory as if it were the
// system's root.
func chrooted(ctx context.Context, t *testing.T, root string, uid, gid uint32, command []string, env ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program in another root")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

// TestImage runs the command of the image, as its user, in the image's root:
// first without arguments, then with a store and a health check.
func TestImage(t *testing.T) {
	r := theRelease(t)
	index := openImage(t, filepath.Join(r.out, "firn_0.99.0_image.tar"))
	image, config := imageOf(t, index, host())
	root := unpackImage(t, image)
	if c := config.Config; c.User != "65532:65532" || c.ExposedPorts["3476/tcp"] != struct{}{} || config.Created.Time != r.time {
		t.Errorf("the configuration of the image is %+v of %v, want user 65532 and port 3476, of %v", c, config.Created, r.time)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(read(t, filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))) {
		t.Error("the image has no certificates of authorities")
	}

	// As in a pod; in a container, it would see that in /proc.
	container := []string{"PATH=/usr/bin", "KUBERNETES_SERVICE_HOST=127.0.0.1"}
	inImage := func(command []string, env ...string) *exec.Cmd {
		return chrooted(t.Context(), t, root, imageUser, imageUser, command, append(container, env...)...)
	}
	said, err := inImage(append(config.Config.Entrypoint, config.Config.Cmd...)).CombinedOutput()
	if err == nil {
		t.Error("the image starts without a store")
	}
	for _, want := range []string{"this is a pod", "--store", "--listen"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("the image without arguments says\n%s\nwant %q in it", said, want)
		}
	}

	address := freeAddress(t)
	env := []string{"FIRN_STORE=dir:/var/lib/firn?create=true&volatile=true", "FIRN_LISTEN=" + address}
	s := start(t, address, inImage(append(config.Config.Entrypoint, config.Config.Cmd...), env...))
	s.take("orders")
	check := config.Config.Healthcheck.Test
	if check[0] != "CMD" {
		t.Fatalf("the health check is %v, want a command", check)
	}
	if out, err := inImage(check[1:], env...).CombinedOutput(); err != nil {
		t.Errorf("the health check fails: %v\n%s", err, out)
	}
	s.stop()
	if inImage(check[1:], env...).Run() == nil {
		t.Error("the health check of a server that has ended succeeds")
	}
	t.Logf("report: the image was unpacked and run, %d bytes", len(read(t, filepath.Join(r.out, "firn_0.99.0_image.tar"))))
}
