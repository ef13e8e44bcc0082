package pebblestore

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

var (
	crashFirst = flag.Uint64("crash.first", 0, "the first seed of TestCrashLosesNothingAcknowledged")
	crashSeeds = flag.Uint64("crash.seeds", 2, "how many seeds it plays")
)

var crashShards = []store.Shard{{Topic: "a", N: 0}, {Topic: "a", N: 1}, {Topic: "b", N: 0}}

// TestCrashLosesNothingAcknowledged crashes a file system that forgets what was not
// synced, all or some of it, in the midst of concurrent calls. `make long` plays more seeds.
func TestCrashLosesNothingAcknowledged(t *testing.T) {
	for seed := *crashFirst; seed < *crashFirst+*crashSeeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { crashOnce(t, seed) })
	}
}

func crashOnce(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashableMem()
	s := openMem(t, fs)
	l := newLedger()
	limit, enough := 1500+random.IntN(3000), make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for i, shard := range crashShards {
		fence := claim(t, s, shard)
		group.Go(func() {
			err := churn(s, shard, fence, 1+10*i, func(marks ...mark) {
				l.note(marks...)
				if len(l.copy()) > limit {
					once.Do(func() { close(enough) })
				}
			})
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("churn ended with %v", err)
			}
		})
	}
	<-enough
	marks := l.copy()
	clone := fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 50, 100}[random.IntN(3)],
		RNG:                 random,
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	verify(t, openMem(t, clone), crashShards, marks)
}

const crashDirEnv = "DDQ_PEBBLESTORE_CRASH_DIR"

// TestKillLosesNothingAcknowledged kills a process that writes, again and again, and
// reads what it said was acknowledged.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("what runs is killed as a process: make race-all plays it")
	}
	for range 3 {
		dir := filepath.Join(t.TempDir(), "data")
		marks := killChild(t, dir, 3000)
		verify(t, openStore(t, Config{Dir: dir}), crashShards, marks)
	}
}

// killChild runs a process on the directory until it has acknowledged lines, and
// kills it.
func killChild(t *testing.T, dir string, lines int) map[string]mark {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDirEnv+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	marks := make(map[string]mark)
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		m, ok := parseMark(in.Text())
		if !ok {
			continue // cut off by the kill
		}
		marks[m.id] = m
		if n == lines/2 {
			checkLocked(t, dir)
		}
		if n == lines {
			child.Process.Kill() //nolint:errcheck // Wait tells
		}
	}
	if err := child.Wait(); err == nil || len(marks) == 0 {
		t.Fatalf("the child was not killed: %v, %d marks", err, len(marks))
	}
	return marks
}

func checkLocked(t *testing.T, dir string) {
	t.Helper()
	_, err := Open(Config{Dir: dir}, quiet)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("a directory that another process uses was opened: %v", err)
	}
}

// crashChild is the process that is killed. It says what was acknowledged on stdout.
func crashChild(dir string) {
	s, err := Open(Config{Dir: dir, MemTable: 256 << 10}, quiet)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, shard := range crashShards {
		session := store.Session{Node: "n", Start: store.Token{1}, TTL: time.Hour, Begin: true}
		s.RenewSession(context.Background(), session) //nolint:errcheck // Claim tells
		_, fence, err := s.Claim(context.Background(), shard, session)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		group.Go(func() {
			churn(s, shard, fence, 1+10*i, func(marks ...mark) { //nolint:errcheck // it is killed
				mu.Lock()
				defer mu.Unlock()
				for _, m := range marks {
					fmt.Printf("%s %d %s %d %d %x .\n", m.shard.Topic, m.shard.N, m.id, m.progress, m.fate, m.token)
				}
			})
		})
	}
	group.Wait()
}

func parseMark(line string) (m mark, ok bool) {
	var token string
	_, err := fmt.Sscanf(line, "%s %d %s %d %d %s .", &m.shard.Topic, &m.shard.N, &m.id, &m.progress, &m.fate, &token)
	if err != nil || !strings.HasSuffix(line, ".") {
		return m, false
	}
	b, err := hex.DecodeString(token)
	if err != nil || len(b) != len(m.token) {
		return m, false
	}
	m.token = store.Token(b)
	return m, true
}
