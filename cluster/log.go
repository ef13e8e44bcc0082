package cluster

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"sync"
	"time"
)

// repeatAfter is the pause before the library may complain of the same thing again.
const repeatAfter = time.Minute

// libraryLog passes on what the library logs, at debug level: what matters of it to
// operators is logged by Members. Its errors are warnings, one of a kind a minute,
// for they come by the packet.
type libraryLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // kind of error -> when it was a warning; guarded by mu
}

func newLibraryLog(l *slog.Logger) *log.Logger {
	return log.New(&libraryLog{log: l, last: make(map[string]time.Time)}, "", 0)
}

// Write takes one line: "[ERR] memberlist: what went wrong: details".
func (w *libraryLog) Write(line []byte) (int, error) {
	level, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte("] "))
	text := bytes.TrimPrefix(rest, []byte("memberlist: "))
	switch {
	case !bytes.HasPrefix(level, []byte("[ERR")):
		w.log.Debug("gossip library", "said", string(line[:len(bytes.TrimSpace(line))]))
	case w.fresh(text):
		w.log.Warn("gossip library", "err", string(text))
	default:
		w.log.Log(context.Background(), slog.LevelDebug, "gossip library", "err", string(text))
	}
	return len(line), nil
}

// fresh reports whether an error of this kind has not been a warning of late. Its
// kind is what comes before the details, which may be a stranger's.
func (w *libraryLog) fresh(text []byte) bool {
	kind, _, _ := bytes.Cut(text, []byte(":"))
	key := string(kind[:min(len(kind), 24)])
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if at, ok := w.last[key]; ok && now.Sub(at) < repeatAfter {
		return false
	}
	w.last[key] = now
	return true
}
