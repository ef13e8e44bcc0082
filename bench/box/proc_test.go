package box

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		name, line string
		want       procStat
		bad        bool
	}{
		{
			name: "plain",
			line: "42 (ddq) S 7 42 42 0 -1 4194560 100 200 0 0 150 50 30 20 20 0 9 0 1000 123456 321 18446744073709551615 1 1",
			want: procStat{pid: 42, parent: 7, ticks: 200, reaped: 50, pages: 321},
		},
		{
			name: "a name with spaces and parentheses",
			line: "42 (a) b (c) R 7 42 42 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 5 6 7 8",
			want: procStat{pid: 42, parent: 7, ticks: 3, reaped: 7, pages: 7},
		},
		{name: "cut off", line: "42 (ddq) S 7 42", bad: true},
		{name: "no name", line: "42 ddq S 7", bad: true},
		{name: "letters for a number", line: "42 (ddq) S 7 42 42 0 -1 0 0 0 0 0 x 2 3 4 20 0 1 0 5 6 7 8", bad: true},
		{name: "empty", line: "", bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseStat(test.line)
			if (err != nil) != test.bad || got != test.want {
				t.Errorf("got %+v, %v; want %+v, error %v", got, err, test.want, test.bad)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (a) b (c) R 7 42 42 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 5 6 7 8")
	f.Add(")(")
	f.Fuzz(func(t *testing.T, line string) { _, _ = parseStat(line) })
}

// TestProcessAccountsItsChildren burns a known amount of CPU in a grandchild,
// kills the process, and reads the account of both lives.
func TestProcessAccountsItsChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU and memory are read from /proc")
	}
	b := newTestBox(t)
	spin := exec.Command(os.Args[0], "-test.run=^TestSpin$")
	spin.Env = append(os.Environ(), "BENCH_SPIN=300ms")
	p, err := b.Start("spin", spin)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Usage().RSS; got <= 0 {
		t.Errorf("memory of a living process: got %d", got)
	}
	<-p.Done()
	first := p.Usage().CPU
	if first < 0.3 {
		t.Errorf("CPU after the first life: got %v s, want at least the 0.3 it burnt", first)
	}
	if err := p.Revive(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Usage().CPU; got < first+0.3 {
		t.Errorf("CPU after the second life: got %v s, want %v more than %v", got, 0.3, first)
	}
}

// TestSpin is no test but the process that TestProcessAccountsItsChildren starts.
func TestSpin(t *testing.T) {
	burn, err := time.ParseDuration(os.Getenv("BENCH_SPIN"))
	if err != nil {
		t.Skip("a helper of another test")
	}
	for OwnCPU() < burn.Seconds() {
	}
}

func newTestBox(t *testing.T) *Box {
	t.Helper()
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(b.Dir); !os.IsNotExist(err) {
			t.Errorf("directory %s is still there: %v", b.Dir, err)
		}
	})
	return b
}
