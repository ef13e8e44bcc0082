package datadir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

const testDir = "data"

// TestFlippedBitIsNamedOrLosesNothing flips bits of each file that a killed process left behind.
func TestFlippedBitIsNamedOrLosesNothing(t *testing.T) {
	killed := killedDir(t)
	files := filesIn(t, killed)
	for name, content := range files {
		for i := range 20 {
			at := len(content) * (2*i + 1) / 40
			if at >= len(content) {
				continue // the file is empty
			}
			flipped := []byte(content)
			flipped[at] ^= 1 << (i % 8)
			checkDamage(t, killed.clone(), name, fmt.Sprintf("bit flipped at byte %d of %d", at, len(content)), flipped)
		}
	}
}

// TestLogCutOffIsNamed cuts off, and removes, each log that a killed process left behind.
func TestLogCutOffIsNamed(t *testing.T) {
	killed := killedDir(t)
	for name, content := range filesIn(t, killed) {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		for i := range 20 {
			at := len(content) * i / 20
			checkDamage(t, killed.clone(), name, fmt.Sprintf("cut off at byte %d of %d", at, len(content)), []byte(content[:at]))
		}
		checkDamage(t, killed.clone(), name, "removed", nil)
	}
}

// TestLogIsOpenedUpToItsDamage does by hand what docs/operating.md tells those who have no copy.
func TestLogIsOpenedUpToItsDamage(t *testing.T) {
	killed := killedDir(t)
	logs := logsIn(t, killed)
	if len(logs) < 2 {
		t.Fatalf("%d logs are in use, want two or more", len(logs))
	}
	damaged, last := logs[len(logs)-2], logs[len(logs)-1]
	flipped := []byte(filesIn(t, killed)[damaged.name])
	flipped[damaged.at/2] ^= 4
	writeFile(t, killed, damaged.name, flipped)
	_, err := Open(killed.config(), killed, quiet, noLoad)
	if err == nil {
		t.Fatal("a damaged log was read")
	}
	_, behind, _ := strings.Cut(err.Error(), damaged.name+" is damaged at byte ")
	at, _, _ := strings.Cut(behind, ",")
	n, _ := strconv.ParseInt(at, 10, 64)
	if n <= 0 || n > damaged.at/2 {
		t.Fatalf("the error does not say where the damage is: %v", err)
	}
	writeFile(t, killed, damaged.name, flipped[:n])
	gone := []string{last.name, syncedName}
	for name := range filesIn(t, killed) {
		if strings.HasPrefix(name, "OPTIONS-") {
			gone = append(gone, name)
		}
	}
	for _, gone := range gone {
		if err := killed.Remove(killed.PathJoin(testDir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if got := keysOf(t, killed); got == 0 || got >= killed.keys {
		t.Errorf("%d of %d keys are there", got, killed.keys)
	}
}

// TestTornEndsAreRead opens what a killed process and a power cut leave behind, in the midst of writes.
func TestTornEndsAreRead(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		fs := newKilled(t)
		d, err := Open(fs.config(), fs, quiet, noLoad)
		if err != nil {
			t.Fatal(err)
		}
		var acked atomic.Int64
		enough := 20 + random.Int64N(200)
		reached := make(chan struct{})
		var group sync.WaitGroup
		for writer := range uint32(4) {
			group.Go(func() {
				for i := writer; acked.Load() <= enough; i += 4 {
					key := binary.BigEndian.AppendUint32(nil, i)
					if err := d.Set(key, bytes.Repeat(key, int(1+i*97%9000))); err != nil {
						t.Error(err)
					}
					if acked.Add(1) == enough {
						close(reached)
					}
				}
			})
		}
		<-reached
		want := acked.Load()
		fs.MemFS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[seed%3], RNG: random})
		group.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if got := keysOf(t, fs); int64(got) < want {
			t.Errorf("seed %d: %d keys are there, want %d or more", seed, got, want)
		}
	}
}

// TestUnreadBytesAreLogged opens a log whose last record is not whole: once SYNCED says that it ends before that record, and
// once there is no SYNCED.
func TestUnreadBytesAreLogged(t *testing.T) {
	for _, known := range []bool{true, false} {
		killed := killedDir(t)
		logs := logsIn(t, killed)
		last := logs[len(logs)-1]
		whole := []byte(filesIn(t, killed)[last.name])[:last.at]
		writeFile(t, killed, last.name, append(whole, whole[:logHeader+5]...)) // a chunk that is cut off
		want := "level=INFO msg=\"log read\""
		if !known {
			want = "level=WARN"
			if err := killed.Remove(killed.PathJoin(testDir, syncedName)); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		d, err := Open(killed.config(), killed, slog.New(slog.NewTextHandler(&out, nil)), noLoad)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		figures := fmt.Sprintf("file=%s bytes=%d bytes_not_read=%d", last.name, last.at, logHeader+5)
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), figures) {
			t.Errorf("the log has no line with %q and %q:\n%s", want, figures, &out)
		}
	}
}

// logsIn returns the logs that are in use, in order.
func logsIn(t *testing.T, fs vfs.FS) (logs []logEnd) {
	t.Helper()
	oldest, err := checkManifest(testDir, fs)
	if err != nil {
		t.Fatal(err)
	}
	for name := range filesIn(t, fs) {
		n, ok := logNumber(name)
		if !ok || n < oldest {
			continue
		}
		end, err := readLog(fs.PathJoin(testDir, name), n, fs)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, end)
	}
	slices.SortFunc(logs, func(a, b logEnd) int { return strings.Compare(a.name, b.name) })
	return logs
}

// keysOf opens a directory, and counts its keys.
func keysOf(t *testing.T, fs killed) int {
	t.Helper()
	d, err := Open(fs.config(), fs, quiet, noLoad)
	if err != nil {
		t.Fatal(err)
	}
	n, err := countKeys(d)
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// checkDamage opens a directory in which a file has other content, or is gone: that is refused by the
// name of the file, or nothing is lost.
func checkDamage(t *testing.T, fs killed, name, damage string, content []byte) {
	t.Helper()
	if content == nil {
		if err := fs.Remove(fs.PathJoin(testDir, name)); err != nil {
			t.Fatal(err)
		}
	} else {
		writeFile(t, fs, name, content)
	}
	d, err := Open(fs.config(), fs, quiet, noLoad)
	if err == nil {
		n, readErr := countKeys(d)
		err = readErr
		if closeErr := d.Close(); err == nil {
			err = closeErr
		}
		if err == nil && n != fs.keys {
			t.Errorf("%s, %s: %d of %d keys are there", name, damage, n, fs.keys)
		}
	}
	if err != nil && (!strings.Contains(err.Error(), strings.TrimSuffix(name, ".sst")) || !strings.Contains(err.Error(), testDir)) {
		t.Errorf("%s, %s: the error does not name the file: %v", name, damage, err)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func noLoad(*Dir) error { return nil }

// killed is the directory of a process that was killed when it had set a number of keys.
type killed struct {
	*vfs.MemFS
	keys int
}

func (k killed) config() Config { return Config{Dir: testDir, MemTable: 256 << 10} }

func (k killed) clone() killed { return killed{afterKill(k.MemFS), k.keys} }

// afterKill is a file system as a killed process leaves it: what it wrote is there, synced or not.
func afterKill(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

func newKilled(t *testing.T) killed {
	t.Helper()
	k := killed{MemFS: vfs.NewCrashableMem()}
	if err := k.MkdirAll(testDir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := k.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	return k
}

// killedDir returns a directory that was killed twice: with tables, with more than one log in use, and
// with records that are longer than a block.
func killedDir(t *testing.T) killed {
	t.Helper()
	k := newKilled(t)
	for round := range 2 {
		var full atomic.Bool // so that no table is made of the logs in use
		files := errorfs.Wrap(k.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && op.Kind == errorfs.OpCreate && isTable(op.Path) {
				return syscall.ENOSPC
			}
			return nil
		}))
		d, err := Open(k.config(), files, quiet, noLoad)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			full.Store(round == 1 && i >= 120)
			k.keys++
			key := binary.BigEndian.AppendUint32(nil, uint32(k.keys))
			value := bytes.Repeat(key, 25+200*(k.keys%10))
			if k.keys%50 == 0 {
				value = bytes.Repeat(key, 20000)
			}
			if err := d.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		k.MemFS = afterKill(k.MemFS)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// countKeys counts the keys that have their values.
func countKeys(d *Dir) (n int, err error) {
	if err := d.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer d.Leave()
	err = d.Scan(nil, nil, func(key, value []byte) (bool, error) {
		if !bytes.HasPrefix(value, key) || len(value)%len(key) != 0 {
			return false, fmt.Errorf("key %x has a value of %d bytes that is not its own", key, len(value))
		}
		n++
		return true, nil
	})
	return n, err
}

func filesIn(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	names, err := fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin(testDir, name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
		f.Close() //nolint:errcheck // it was read
	}
	return files
}

func writeFile(t *testing.T, fs vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin(testDir, name), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
