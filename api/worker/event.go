package worker

import "sync/atomic"

// EventKind is what happened.
type EventKind uint8

// What a Worker reports.
const (
	Received     EventKind = iota + 1 // tasks were delivered
	Acked                             // acks were accepted by the server
	Nacked                            // nacks were accepted
	Released                          // releases were accepted
	Extended                          // holds were lengthened
	Lost                              // holds were lost, before or after the handler's end
	Connected                         // a stream was opened
	Disconnected                      // a stream broke or could not be opened; Err says why
)

var eventNames = [...]string{
	Received: "received", Acked: "acked", Nacked: "nacked", Released: "released",
	Extended: "extended", Lost: "lost", Connected: "connected", Disconnected: "disconnected",
}

// String returns the kind in lower case, such as "nacked".
func (k EventKind) String() string {
	if k == 0 || int(k) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[k]
}

// Event is one report, for tasks of one topic that came or went together.
type Event struct {
	Kind  EventKind
	Topic string
	Tasks int
	// Node is the one that a stream of Config.Direct is with; empty of an ordinary one.
	Node string
	Err  error
}

// Stats counts what happened since the worker was made.
type Stats struct {
	Received, Acked, Nacked, Released, Extended, Lost int64 // tasks
	Connected, Disconnected                           int64 // streams
}

// events counts what happens, and tells Config.Observe.
type events struct {
	counts  [Disconnected + 1]atomic.Int64 // by EventKind
	observe func(Event)
}

func (s *events) report(e Event) {
	if e.Tasks == 0 && e.Kind < Connected {
		return
	}
	s.counts[e.Kind].Add(int64(max(e.Tasks, 1)))
	s.observe(e)
}

func (s *events) stats() Stats {
	n := func(k EventKind) int64 { return s.counts[k].Load() }
	return Stats{
		Received: n(Received), Acked: n(Acked), Nacked: n(Nacked), Released: n(Released),
		Extended: n(Extended), Lost: n(Lost), Connected: n(Connected), Disconnected: n(Disconnected),
	}
}
