package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
)

// TestReleaseCanBeVerified makes a release for this platform with a key of its own, and checks
// it as docs/verifying.md says; a byte that is changed in any of its files is found.
func TestReleaseCanBeVerified(t *testing.T) {
	work := t.TempDir()
	key, dir := filepath.Join(work, "key"), filepath.Join(work, "release")
	command(t, work, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	script, err := filepath.Abs("../release.sh")
	if err != nil {
		t.Fatal(err)
	}
	command(t, work, []string{"REHEARSAL=1", "PLATFORMS=" + runtime.GOOS + "/" + runtime.GOARCH}, script, "v0.0.1", key, dir)

	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := "release@ddq.example " + string(public)
	if err := os.WriteFile(filepath.Join(dir, "signers"), []byte(signers), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, check := range checks(t) {
		command(t, dir, nil, "sh", "-c", check)
	}
	checkStatement(t, dir)

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := slices.Clone(content)
		changed[len(changed)/2] ^= 1
		write(t, file, changed)
		if !slices.ContainsFunc(checks(t), func(check string) bool {
			cmd := exec.Command("sh", "-c", check)
			cmd.Dir = dir
			return cmd.Run() != nil
		}) {
			t.Errorf("%s was changed, and nothing said so", filepath.Base(file))
		}
		write(t, file, content)
	}
}

// checks are the commands of docs/verifying.md.
func checks(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/verifying.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "ssh-keygen") || strings.HasPrefix(line, "sha256sum") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	if len(all) != 2 {
		t.Fatalf("docs/verifying.md has the commands %q", all)
	}
	return all
}

// checkStatement holds what is said of the build against the files.
func checkStatement(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ddq_v0.0.1-rehearsal.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
	}
	if err := json.Unmarshal(text, &statement); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statement.Subject {
		if !bytes.Contains(sums, []byte(s.Digest.SHA256+"  "+s.Name+"\n")) {
			t.Errorf("%+v is not among\n%s", s, sums)
		}
	}
	if len(statement.Subject) != 2 { // the binary and the bill of materials
		t.Errorf("subjects %+v", statement.Subject)
	}
}

func TestModulesWithoutAKnownLicenceAreRefused(t *testing.T) {
	cache := t.TempDir()
	m := module.Version{Path: "example.com/X", Version: "v1.0.0"}
	dir := filepath.Join(cache, "example.com", "!x@v1.0.0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"all rights are ours":                            "is known",
		"http://creativecommons.org/licenses/by-nc/4.0/": "BY-NC",
		string(ours): "",
	} {
		write(t, filepath.Join(dir, "LICENSE"), []byte(text))
		ids, err := licensesOf(cache, m)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v", text, ids, err)
		}
	}
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}
