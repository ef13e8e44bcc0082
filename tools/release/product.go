package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"
)

// product is a binary and what it is made of.
type product struct {
	path      string
	goVersion string
	parts     []part // by path
}

// part is a module that is built into the binary.
type part struct {
	path, version string
	sum           string   // as go.sum has it
	licenses      []string // SPDX identifiers, sorted
}

// allowed are the licences that ddq may be built with: permissive ones, and the MPL, which asks
// for changes of its own files only. OFL-1.1 is of fonts.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-4.0", "CC0-1.0", "FTL", "ISC", "MIT", "MPL-2.0", "OFL-1.1", "Unlicense"}

// chosen are the licences of modules that leave a choice in words of their own.
var chosen = map[string]string{"github.com/golang/freetype": "FTL"} // or GPL-2.0-or-later

// readProduct reads what a binary says of itself. It fails where a module has no licence that is
// known and allowed.
func readProduct(binary string) (*product, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	return newProduct(info)
}

// planProduct tells the same of the program in a folder, which is not built for it.
func planProduct(folder string) (*product, error) {
	list := exec.Command("go", "list", "-deps", "-json=Module", ".")
	list.Dir, list.Stderr = folder, os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, err
	}
	info, known := &debug.BuildInfo{}, make(map[string]bool)
	for packages := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			Module *struct {
				debug.Module
				Main bool
			}
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return newProduct(info)
		} else if err != nil {
			return nil, err
		}
		if m := p.Module; m != nil && !m.Main && !known[m.Path] {
			known[m.Path] = true
			info.Deps = append(info.Deps, &m.Module)
		}
	}
}

func newProduct(info *debug.BuildInfo) (*product, error) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	p := &product{path: info.Main.Path, goVersion: info.GoVersion}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: what is built must be what go.mod names", m.Path)
		}
		licenses, err := licensesOf(strings.TrimSpace(string(cache)), module.Version{Path: m.Path, Version: m.Version})
		if err != nil {
			return nil, err
		}
		p.parts = append(p.parts, part{path: m.Path, version: m.Version, sum: m.Sum, licenses: licenses})
	}
	slices.SortFunc(p.parts, func(a, b part) int { return cmp.Compare(a.path, b.path) })
	return p, nil
}

// licensesOf reads the licences at the root of a module.
func licensesOf(cache string, m module.Version) ([]string, error) {
	if id := chosen[m.Path]; id != "" {
		return []string{id}, nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return nil, err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, path+"@"+version)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() || !isLicense(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		for _, match := range licensecheck.Scan(text).Match {
			found = append(found, match.ID)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no licence that is known", m)
	}
	for _, id := range found {
		if !slices.Contains(allowed, id) {
			return nil, fmt.Errorf("%s has the licence %s, which ddq may not be built with", m, id)
		}
	}
	return found, nil
}

func isLicense(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING")
}
