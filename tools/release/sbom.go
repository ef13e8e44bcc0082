package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes no time and no random id, so that a release made again has the same.
func writeSBOM(out io.Writer, version string, p *product) error {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: purl(p.path, version), Type: cyclonedx.ComponentTypeApplication, Name: p.path, Version: version, PackageURL: purl(p.path, version),
		Licenses: licenseChoices([]string{"MIT"}),
	}}
	components := []cyclonedx.Component{{
		BOMRef: purl("std", p.goVersion), Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: p.goVersion, PackageURL: purl("std", p.goVersion),
		Licenses: licenseChoices([]string{"BSD-3-Clause"}),
	}}
	for _, m := range p.parts {
		sum, err := digest(m.sum)
		if err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		components = append(components, cyclonedx.Component{
			BOMRef: purl(m.path, m.version), Type: cyclonedx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: purl(m.path, m.version),
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}, Licenses: licenseChoices(m.licenses),
		})
	}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// purl is the package URL of a module, https://github.com/package-url/purl-spec.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

func licenseChoices(ids []string) *cyclonedx.Licenses {
	var all cyclonedx.Licenses
	for _, id := range ids {
		all = append(all, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return &all
}

// digest turns a sum of go.sum, h1: and base64, into hexadecimal digits.
func digest(sum string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	return hex.EncodeToString(b), err
}
