package main

import (
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bench is a copy of a script in a tree of its own, where each command is what a test says.
type bench struct {
	*testing.T
	dir, script string
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{t, t.TempDir(), script}
	text, err := os.ReadFile(filepath.Join("..", script))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"tools", "bin", "path", "api/ui/browser"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(b.dir, "tools", script), text)
	b.borrow("dirname", "cmp", "cp")
	return b
}

// borrow has commands as they are here.
func (b *bench) borrow(names ...string) {
	b.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			b.Skip(err)
		}
		if err := os.Symlink(path, filepath.Join(b.dir, "path", name)); err != nil {
			b.Fatal(err)
		}
	}
}

// command is what happens when one is called.
func (b *bench) command(name, shell string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "path", name), []byte("#!/bin/sh\n"+shell+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		b.Fatal(err)
	}
}

// run returns how the script ends, and what it says.
func (b *bench) run(args ...string) (code int, said string) {
	b.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(shell, append([]string{filepath.Join(b.dir, "tools", b.script)}, args...)...)
	cmd.Env = []string{"PATH=" + filepath.Join(b.dir, "path"), "HOME=" + b.dir, "NPM_CONFIG_OFFLINE=true", "NPM_CONFIG_UPDATE_NOTIFIER=false"}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		b.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestVulncheckFailsUnlessItLooked: govulncheck exits with 3 for a finding, and with others when it
// could not look, such as without its database.
func TestVulncheckFailsUnlessItLooked(t *testing.T) {
	for _, tc := range []struct {
		source, binary int // as govulncheck exits
		code           int
		says           string
	}{
		{1, 0, 3, "not checked"},
		{2, 0, 3, "not checked"},
		{127, 0, 3, "not checked"},
		{3, 0, 1, "known vulnerability"},
		{0, 1, 3, "not checked"},
		{0, 3, 1, "known vulnerability"},
		{0, 0, 0, ""},
	} {
		b := newBench(t, "vulncheck.sh")
		b.command("go", fmt.Sprintf(`case " $* " in *" -mode binary "*) exit %d ;; esac; exit %d`, tc.binary, tc.source))
		write(t, filepath.Join(b.dir, "bin", "ddq"), nil)
		code, said := b.run()
		if code != tc.code || !strings.Contains(said, tc.says) || tc.code == 0 && said != "" {
			t.Errorf("%+v: exit code %d, %q", tc, code, said)
		}
	}
}

func TestDepsFailsWhereItCannotInstall(t *testing.T) {
	for what, tc := range map[string]struct {
		job      string
		commands map[string]string
		code     int
		says     string
	}{
		"a job that there is not": {"nonsense", nil, 2, "unknown job nonsense"},
		"no installer":            {"release", nil, 1, "please install: openssh-client"},
		"an installer that fails": {"release", map[string]string{
			"apt-get": "", "id": "echo 1000", "sudo": `case $1 in apt-get | env) echo "E: hash sum mismatch"; exit 100 ;; esac`,
		}, 100, "hash sum mismatch"},
		"nothing to do": {"release", map[string]string{"ssh-keygen": ""}, 0, ""},
	} {
		b := newBench(t, "deps.sh")
		for name, shell := range tc.commands {
			b.command(name, shell)
		}
		if code, said := b.run(tc.job); code != tc.code || !strings.Contains(said, tc.says) || tc.code == 0 && said != "" {
			t.Errorf("%s: exit code %d, %q", what, code, said)
		}
	}
}

// lockOf names a package with what its content has to be.
const lockOf = `{"name": "axe", "lockfileVersion": 3, "requires": true, "packages": {
	"": {"name": "axe", "dependencies": {"x": "file:x.tgz"}},
	"node_modules/x": {"version": "1.0.0", "resolved": "file:x.tgz", "integrity": "%s"}
}}`

// TestDepsRefusesWhatTheLockFileDoesNotName: a package with other content than when it was locked.
func TestDepsRefusesWhatTheLockFileDoesNotName(t *testing.T) {
	b := newBench(t, "deps.sh")
	b.borrow("npm", "node", "tar", "gzip", "sh")
	for _, name := range []string{"make", "gcc", "redis-server", "initdb", "tsc", "python3", "chromium", "promtool"} {
		b.command(name, "")
	}
	b.command("go", "echo gcc")
	in := func(name string) string { return filepath.Join(b.dir, "api/ui/browser", name) }
	write(t, in("package.json"), []byte(`{"name": "axe", "dependencies": {"x": "file:x.tgz"}}`))
	if err := os.Mkdir(in("package"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, in("package/package.json"), []byte(`{"name": "x", "version": "1.0.0"}`))
	command(t, in("."), nil, "tar", "-czf", "x.tgz", "package")
	write(t, in("package-lock.json"), fmt.Appendf(nil, lockOf, "sha512-"+strings.Repeat("A", 86)+"=="))
	if code, said := b.run("tests"); code == 0 || !strings.Contains(said, "EINTEGRITY") {
		t.Errorf("exit code %d, %s", code, said)
	}
	if _, err := os.Stat(in("node_modules/installed.json")); err == nil {
		t.Error("it counts as installed")
	}
	packed, err := os.ReadFile(in("x.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(packed)
	write(t, in("package-lock.json"), fmt.Appendf(nil, lockOf, "sha512-"+base64.StdEncoding.EncodeToString(sum[:])))
	if code, said := b.run("tests"); code != 0 {
		t.Errorf("exit code %d, %s", code, said)
	}
	if code, said := b.run("tests"); code != 0 || said != "" {
		t.Errorf("what is there is installed again: %d, %s", code, said)
	}
}
