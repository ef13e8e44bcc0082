//go:build linux

package sdk_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// driver is a process that makes calls of an SDK, and tells what its worker does.
type driver struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr bytes.Buffer
	lines  chan map[string]any // closed at the end of its output
	told   []map[string]any    // events that no step has asked for yet
	all    []map[string]any    // all events
}

func startDriver(t *testing.T, l language, env ...string) *driver {
	t.Helper()
	d := &driver{cmd: exec.Command(l.driver[0], l.driver[1:]...), lines: make(chan map[string]any, 1024)}
	d.cmd.Stderr = &d.stderr
	d.cmd.Env = append(os.Environ(), env...)
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatalf("%v (tools/deps.sh tests installs what is missing)", err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		d.read(out)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it may have ended
		for range d.lines {      // so that read ends
		}
		<-read
		_ = d.cmd.Wait() // it was killed
		if d.stderr.Len() > 0 {
			t.Errorf("the driver says:\n%s", &d.stderr)
		}
	})
	return d
}

func (d *driver) read(out io.Reader) {
	defer close(d.lines)
	for r := bufio.NewReader(out); ; {
		text, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var line map[string]any
		if json.Unmarshal(text, &line) != nil {
			line = map[string]any{"event": "garbage", "text": string(text)}
		}
		d.lines <- line
	}
}

// call makes one call and returns its answer, {"ok": …} or {"error": …}.
func (d *driver) call(t *testing.T, name string, args map[string]any) map[string]any {
	t.Helper()
	d.send(t, name, args)
	return d.answer(t)
}

// send makes a call, whose answer has to be asked for before the next one.
func (d *driver) send(t *testing.T, name string, args map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"call": name, "args": args})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(text, '\n')); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func (d *driver) answer(t *testing.T) map[string]any {
	t.Helper()
	for {
		line := d.next(t, "the answer")
		if _, event := line["event"]; !event {
			return line
		}
		d.told = append(d.told, line)
	}
}

// event returns when the worker has told what is wanted.
func (d *driver) event(t *testing.T, want map[string]any) {
	t.Helper()
	for i, told := range d.told {
		if differs("", told, any(want)) == "" {
			d.told = append(d.told[:i:i], d.told[i+1:]...)
			return
		}
	}
	for {
		line := d.next(t, "the event "+shown(want))
		if differs("", line, any(want)) == "" {
			return
		}
		d.told = append(d.told, line)
	}
}

// never fails if the worker has told what it must not.
func (d *driver) never(t *testing.T, unwanted map[string]any) {
	t.Helper()
	for len(d.lines) > 0 {
		d.told = append(d.told, d.next(t, "what is there"))
	}
	for _, told := range d.all {
		if differs("", told, any(unwanted)) == "" {
			t.Fatalf("it told %s", shown(told))
		}
	}
}

func (d *driver) next(t *testing.T, what string) map[string]any {
	t.Helper()
	select {
	case line, ok := <-d.lines:
		if !ok {
			t.Fatalf("the driver ended before %s", what)
		}
		if _, event := line["event"]; event {
			d.all = append(d.all, line)
		}
		return line
	case <-time.After(patience):
		t.Fatalf("%s did not come; before that came %s", what, shown(d.all))
		return nil
	}
}

func (d *driver) signal(t *testing.T, name string) {
	t.Helper()
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	if err := d.cmd.Process.Signal(signals[name]); err != nil {
		t.Fatal(err)
	}
}
