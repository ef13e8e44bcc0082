package checker

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
)

func TestLedgerIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	for _, client := range []string{"p0", "w0"} {
		w, err := ledger.Create(dir, client)
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for range 100 {
					call := w.NextCall()
					w.Append(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: call, Topic: "t", Task: client})
					w.Append(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: call, Topic: "t", Task: client, Result: ledger.OK})
				}
			})
		}
		wait.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Create(dir, client); err == nil {
			t.Error("a ledger was written over")
		}
	}
	h, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if h.Events != 2*801 || strings.Join(h.Clients, " ") != "p0 w0" {
		t.Errorf("read %d events of %v", h.Events, h.Clients)
	}
	for key, s := range h.stories {
		for _, o := range s.enqueues {
			if o.result != ledger.OK || o.to < o.Mono {
				t.Errorf("%s: call %d ended %s", key, o.Call, o.result)
			}
		}
	}
}

func TestHalfALineAtTheEndDidNotHappen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p0"+ledger.Extension)
	whole := `{"kind":"opened","mono":1,"wall":1,"client":"p0"}` + "\n"
	for _, test := range []struct {
		text   string
		events int
		bad    bool
	}{{whole, 1, false}, {whole + `{"kind":"cal`, 1, false}, {whole + "{\n" + whole, 0, true}} {
		if err := os.WriteFile(path, []byte(test.text), 0o644); err != nil {
			t.Fatal(err)
		}
		h, err := Read(dir)
		if (err != nil) != test.bad {
			t.Fatalf("%q: %v", test.text, err)
		}
		if err == nil && h.Events != test.events {
			t.Errorf("%q: %d events, want %d", test.text, h.Events, test.events)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory without ledgers was taken for one")
	}
}
