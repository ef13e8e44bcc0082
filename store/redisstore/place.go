package redisstore

import "github.com/ddq-io/ddq/store"

// place is where a task lies, as scripts tell it.
type place struct {
	kind   store.Kind // 0: nowhere
	detail string     // pending: due; running: the hold; dead, done: finished
	note   note
}

// Places as scripts number them.
const (
	placeNone = iota
	placePending
	placeRunning
	placeDead
	placeDone
)

var placeKinds = [...]store.Kind{
	placePending: store.KindPending, placeRunning: store.KindRunning, placeDead: store.KindDead, placeDone: store.KindDone,
}

func parsePlace(v []any) (p place) {
	if kind := number(at(v, 0)); kind > 0 && int(kind) < len(placeKinds) {
		p.kind = placeKinds[kind]
	}
	p.detail = text(at(v, 1))
	p.note = decodeNote(text(at(v, 2)))
	return p
}

// time is the due or finishing time of a task that is not running.
func (p place) time() store.Millis {
	ms, _ := parseMillis(p.detail)
	return ms
}

func (p place) state(now store.Millis) store.State {
	switch p.kind {
	case store.KindPending:
		return store.PendingState(p.time(), now, p.note.attempt)
	case store.KindRunning:
		return store.StateRunning
	case store.KindDone:
		return store.StateDone
	case store.KindDead:
		if p.note.reason == store.ReasonExpired {
			return store.StateExpired
		}
		return store.StateDead
	}
	return store.StateUnknown
}
