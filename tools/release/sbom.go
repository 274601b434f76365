package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// makeSBOMs writes a bill of materials in CycloneDX for each binary: the
// modules that the linker put into it, as recorded in the binary.
func (r *release) makeSBOMs() error {
	for _, t := range r.targets {
		binary, err := os.ReadFile(r.binary(t))
		if err != nil {
			return err
		}
		info, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			return err
		}
		bom := r.bom(t, info, sha256.Sum256(binary))
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
func (r *release) bom(t target, info *buildinfo.BuildInfo, sum [sha256.Size]byte) *cdx.BOM {
	purl := "pkg:golang/" + info.Main.Path + "@" + r.version + "?goos=" + t.os + "&goarch=" + t.arch + "#cmd/firn"
	main := cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeApplication, Name: "firn", Version: r.version, PackageURL: purl,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		ExternalReferences: &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS,
			URL: "git+https://github.com/firnid/firn@" + r.commit}},
	}
	var components []cdx.Component
	var refs []string
	add := func(name, version, purl string) {
		components = append(components,
			cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl})
		refs = append(refs, purl)
	}
	add("std", info.GoVersion, "pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go"))
	for _, dep := range info.Deps {
		add(dep.Path, dep.Version, "pkg:golang/"+dep.Path+"@"+dep.Version)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &main,
		Properties: &[]cdx.Property{ // how to build the same file
			{Name: "firn:build:commit", Value: r.commit},
			{Name: "firn:build:go", Value: info.GoVersion},
			{Name: "firn:build:command", Value: "TARGETS=" + t.String() + " make release VERSION=" + r.version},
		},
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom
}
