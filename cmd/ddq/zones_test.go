//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// One of two machines has a database of time zones in which Berlin does not know its next summer.
func TestDoctorNamesNodesWhoseTimeZonesDiffer(t *testing.T) {
	severalServers(t)
	own := filepath.Join(t.TempDir(), "zones")
	fixed := append([]byte("TZif2"), make([]byte, 39)...) // the part of 32 bits is empty
	fixed = append(fixed, "TZif2"+strings.Repeat("\x00", 15)...)
	fixed = append(fixed, strings.Repeat("\x00", 16)+"\x00\x00\x00\x01\x00\x00\x00\x04"...) // one offset, and its name
	fixed = append(fixed, "\x00\x00\x0e\x10\x00\x00CET\x00\n\n"...)
	if err := os.MkdirAll(filepath.Join(own, "Europe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "Europe", "Berlin"), fixed, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServers(t, redistest.Start(t).URL(), 1)
	s.grpc, s.gossip, s.nodes = append(s.grpc, claimAddr(t)), append(s.gossip, claimAddr(t)), append(s.nodes, nil)
	s.behind = append(s.behind, []string{"env", "ZONEINFO=" + own})
	s.start(1)
	const want = "nodes have different time zones: those of n1 are not those of n0;"
	c, err := client.Dial(s.grpc[0], client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	await(t, "the warning", func() bool {
		status, err := c.Server(t.Context())
		return err == nil && strings.Contains(strings.Join(status.Warnings, "\n"), want)
	})
	await(t, "the line in the log", func() bool { return strings.Contains(s.nodes[0].said(), `msg="nodes have different time zones"`) })
	name, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), name, "doctor", "--addr", s.grpc[0], "--data", filepath.Join(t.TempDir(), "data")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("doctor says %s (%v)", out, err)
	}
}
