//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestPasswordOfTheStoreIsNoArgument: a server takes it from the environment or the file, as
// docs/operating.md says, and has no process that shows it to everybody on the machine.
func TestPasswordOfTheStoreIsNoArgument(t *testing.T) {
	const password = "canary-of-redis"
	url := "redis://ddq:" + password + "@" + redistest.StartTCP(t, "--user", "ddq", "on", ">"+password, "~*", "&*", "+@all").Addr()
	file := filepath.Join(t.TempDir(), "ddq.yaml")
	if err := os.WriteFile(file, []byte("store: "+url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, start := range map[string]func(t *testing.T) *process{
		"environment": func(t *testing.T) *process {
			t.Setenv("DDQ_STORE", url)
			return startProcess(t, "--grpc-addr", "127.0.0.1:0")
		},
		"file": func(t *testing.T) *process { return startProcess(t, "--grpc-addr", "127.0.0.1:0", "--config", file) },
	} {
		t.Run(what, func(t *testing.T) {
			p := start(t)
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
			if err != nil || !bytes.Contains(line, []byte("server\x00")) || bytes.Contains(line, []byte(password)) {
				t.Errorf("%q, %v", line, err)
			}
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
			if err != nil || len(threads) == 0 {
				t.Errorf("%q, %v", threads, err)
			}
			for _, thread := range threads {
				if children, _ := os.ReadFile(thread); len(children) > 0 { // a thread may have ended
					t.Errorf("it has the processes %s", children)
				}
			}
			if code, rest := p.terminate(t); code != 0 || strings.Contains(rest, password) {
				t.Errorf("exit code %d, stderr %s", code, rest)
			}
		})
	}
}
