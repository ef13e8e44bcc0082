// Package binary has the ddq that tests run as a process of its own.
package binary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Env names the variable with the path of a binary that is built already, for all
// packages: `make test` sets it.
const Env = "DDQ_TEST_BIN"

// Build returns the path of a binary of this source: the one that Env names, or one that
// it builds into dir.
func Build(dir string) (string, error) {
	if given := os.Getenv(Env); given != "" {
		_, err := os.Stat(given) // a result of a test is not kept for another binary
		return given, err
	}
	bin := filepath.Join(dir, "ddq")
	build := exec.Command("go", "build", "-o", bin, "github.com/ddq-io/ddq/cmd/ddq")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it, also from tests with the race detector
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ddq: %w\n%s", err, out)
	}
	return bin, nil
}
