//go:build linux

package sdk_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// language is an SDK that is installed from its package.
type language struct {
	name   string
	driver []string // the command that plays the driver
	env    []string // that the driver has

	speaksGRPC bool
}

var install struct {
	once      sync.Once
	languages []language
}

// languages builds the packages and installs them, as users would, into empty directories
// without a network: once, for all tests.
func languages(t *testing.T) []language {
	t.Helper()
	install.once.Do(func() {
		packages := shared(t)
		run(t, "", "../../tools/sdks.sh", packages)
		install.languages = []language{installedTypeScript(t, packages), installedPython(t, packages)}
	})
	if install.languages == nil {
		t.Fatal("the packages are not installed; the test that tried says why")
	}
	return install.languages
}

// installedTypeScript unpacks the tarball where Node looks for it, which is all that npm does
// for a package without dependencies.
func installedTypeScript(t *testing.T, packages string) language {
	t.Helper()
	dir := shared(t)
	module := filepath.Join(dir, "node_modules", "@ddq-io", "ddq")
	if err := os.MkdirAll(module, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, "", "tar", "--extract", "--strip-components=1", "--directory", module, "--file", one(t, packages, "*.tgz"))
	driver := filepath.Join(dir, "driver.mjs")
	copyFile(t, "typescript/driver.mjs", driver)
	copyFile(t, "typescript/values.mjs", filepath.Join(dir, "values.mjs"))
	return language{name: "typescript", driver: []string{"node", driver}}
}

// installedPython makes an empty venv, and has pip install the wheel, and build the sdist.
func installedPython(t *testing.T, packages string) language {
	t.Helper()
	dir := shared(t)
	run(t, "", "python3", "-m", "venv", dir)
	python := filepath.Join(dir, "bin", "python")
	pip := []string{"-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"}
	run(t, "", python, append(pip, one(t, packages, "*.whl"))...)
	run(t, "", python, append(pip, "--target", t.TempDir(), one(t, packages, "ddq-*.tar.gz"))...)
	driver := filepath.Join(dir, "driver.py")
	copyFile(t, "python/driver.py", driver)
	copyFile(t, "python/values.py", filepath.Join(dir, "values.py"))
	return language{name: "python", driver: []string{python, "-X", "dev", "-W", "error::SyntaxWarning", driver}}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v (tools/deps.sh tests installs what is missing)\n%s", name, args, err, out)
	}
	return string(out)
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatal(fmt.Errorf("%d files %s in %s, %w", len(found), pattern, dir, err))
	}
	return found[0]
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
