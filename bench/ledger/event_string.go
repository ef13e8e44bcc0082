package ledger

import (
	"fmt"
	"strings"
	"time"
)

// String is what happened in a few words.
func (e *Event) String() string {
	words := []string{string(e.Kind)}
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(e.Op != "", "%s", e.Op)
	add(e.Call != 0, "#%d", e.Call)
	add(e.Result != "", "%s", e.Result)
	add(e.Attempt != 0, "attempt %d", e.Attempt)
	add(e.Token != "", "hold %.8s", e.Token)
	add(e.Name != "", "%q", e.Name)
	add(e.Due != 0, "due %s", time.UnixMilli(e.Due).UTC().Format("15:04:05.000"))
	add(e.HoldMS != 0, "for %d ms", e.HoldMS)
	add(e.Conflict != "", "or %s", e.Conflict)
	add(e.ID != "", "task %s", e.ID)
	add(e.IfVersion != 0, "if version %d", e.IfVersion)
	add(e.Version != 0, "version %d", e.Version)
	add(e.Group != "", "of %s", e.Group)
	add(e.DelayMS != 0, "again in %d ms", e.DelayMS)
	add(e.State != "", "%s after %d of %d retries", e.State, e.Retries, e.MaxRetries)
	add(e.Outcome != "", "%s", e.Outcome)
	for _, a := range e.History {
		add(true, "[%d %s by %s from %d to %d]", a.Number, a.Outcome, a.Worker, a.Started, a.Ended)
	}
	if x := e.Change; x != nil {
		add(true, "%s at %d of shard %d", x.What, x.Position, x.Shard)
		add(x.Attempt != 0, "attempt %d", x.Attempt)
		add(x.Version != 0, "version %d", x.Version)
		add(x.Due != 0, "due %s", time.UnixMilli(x.Due).UTC().Format("15:04:05.000"))
		add(x.Reason != "" || x.Outcome != "", "%s %s", x.Reason, x.Outcome)
		add(x.Worker != "", "by %s", x.Worker)
		add(true, "made at %s", time.UnixMicro(x.At).UTC().Format("15:04:05.000000"))
	}
	add(e.Reason != "", "(%s)", e.Reason)
	add(true, "at %s", time.Unix(0, e.Wall).UTC().Format("15:04:05.000"))
	return strings.Join(words, " ")
}
