package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestPictures checks that the committed pictures match the program.
func TestPictures(t *testing.T) {
	all, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "docs", "pictures")
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("docs/pictures/%s differs from what the program writes: go run ./internal/picture docs/pictures", name)
		}
		d := xml.NewDecoder(bytes.NewReader(want))
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s is not XML: %v", name, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(all) {
		t.Errorf("docs/pictures has %d files, %v, want %d", len(files), err, len(all))
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1024: "1,024", 1048576: "1,048,576"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}
