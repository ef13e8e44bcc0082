//go:build linux

// Package ddqtest runs ddq servers for tests, as processes.
package ddqtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/binary"
)

// Build returns the path of a ddq of this source, made in dir unless the tests were given
// one. It runs in a directory of the module api/outbox that is up levels below the root.
func Build(dir, root string) (string, error) {
	if given := os.Getenv(binary.Env); given != "" {
		return given, nil
	}
	bin := filepath.Join(dir, "ddq")
	build := exec.Command("go", "build", "-o", bin, "./cmd/ddq")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ddq: %w\n%s", err, out)
	}
	return bin, nil
}

var serving = regexp.MustCompile(`msg=serving addr=(\S+) `)

// Start runs a server on the memory store until the test ends, and returns its address.
func Start(t testing.TB, bin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"server", "--store", "memory", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "DDQ_") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // nothing of it is kept
		<-drained
		_ = cmd.Wait()
	})
	var log strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				defer close(drained)
				_, _ = io.Copy(io.Discard, stderr) // ends with the process
			}()
			return m[1]
		}
	}
	close(drained)
	t.Fatalf("the server ended:\n%s", log.String())
	return ""
}

// Client is a client of a server, for as long as the test lasts.
func Client(t testing.TB, addr string, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
