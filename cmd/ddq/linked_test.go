//go:build unix

package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestNothingLooksUpMethodsByName: a template may call any exported method, so the linker keeps all of
// them where one is executed. Functions are in the binary by their names, also when it is stripped.
func TestNothingLooksUpMethodsByName(t *testing.T) {
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	about, err := buildinfo.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(about.Settings, func(s debug.BuildSetting) bool { return s.Key == "-tags" && strings.Contains(s.Value, "grpcnotrace") }) {
		t.Skip("without the tag grpcnotrace the debug pages of gRPC are templates")
	}
	text, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("main.main")) {
		t.Fatal("functions are not found by their names")
	}
	if bytes.Contains(text, []byte("text/template.(*state).evalField")) {
		t.Error("templates are executed: the binary has every exported method of every type (docs/adr/058)")
	}
}
