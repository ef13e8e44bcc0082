//go:build linux

package testbed

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/ddq-io/ddq/bench/binary"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestPasswordOfTheStoreIsNoArgument: everybody on the machine sees those of a process.
func TestPasswordOfTheStoreIsNoArgument(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the server")
	}
	bin, err := binary.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	redis := redistest.StartTCP(t, "--user", "ddq", "on", ">canary", "~*", "&*", "+@all").Addr()
	b, err := box.New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var s Server
	store, err := s.OpenStore(t.Context(), "redis://ddq:canary@"+redis, b)
	if err != nil {
		t.Fatal(err)
	}
	shows := func() {
		t.Helper()
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Process.Pid()))
		if err != nil || !bytes.Contains(line, []byte("server\x00")) || bytes.Contains(line, []byte("canary")) {
			t.Errorf("%v, %q", err, line)
		}
	}
	if err := s.Start(t.Context(), bin, store, b); err != nil {
		t.Fatal(err)
	}
	shows()
	if _, err := s.Restart(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows()
}
