package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// makeSBOMs writes a bill of materials in CycloneDX for each binary: the
// modules that the linker put into it, as recorded in the binary.
func (r *release) makeSBOMs() error {
	for _, t := range r.targets {
		info, err := buildinfo.ReadFile(r.binary(t))
		if err != nil {
			return err
		}
		bom, err := r.bom(t, info)
		if err != nil {
			return err
		}
		err = r.writeFile(r.name(t)+".cdx.json", func(w io.Writer) error {
			return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bom returns the bill of materials of a binary.
func (r *release) bom(t target, info *debug.BuildInfo) (*cdx.BOM, error) {
	data, err := os.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	purl := "pkg:golang/" + info.Main.Path + "@" + r.version + "?goos=" + t.os + "&goarch=" + t.arch + "#cmd/firn"
	main := cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeApplication, Name: "firn", Version: r.version, PackageURL: purl,
		Licenses:           &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:             &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}},
		ExternalReferences: &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: "git+https://github.com/firnid/firn@" + r.commit}},
	}
	toolchain := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{BOMRef: toolchain, Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: toolchain}}
	refs := []string{toolchain}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s in a binary of a release", dep.Path, dep.Replace.Path)
		}
		c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: dep.Path, Version: dep.Version, PackageURL: "pkg:golang/" + dep.Path + "@" + dep.Version}
		c.BOMRef = c.PackageURL
		components = append(components, c)
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &main, Properties: &[]cdx.Property{ // how to build the same file
		{Name: "firn:build:commit", Value: r.commit},
		{Name: "firn:build:go", Value: info.GoVersion},
		{Name: "firn:build:command", Value: "TARGETS=" + t.String() + " make release VERSION=" + r.version},
	}}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom, nil
}
