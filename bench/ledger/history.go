package ledger

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// History is everything that the clients of a run wrote down.
type History struct {
	Events  int // in all files
	Clients []string
	Audited bool // the end of the run was looked at

	stories  map[string]*story   // by topic and id
	holds    map[string]int64    // how long a hold of a topic lasts, in ms
	topics   map[string]*Event   // how they were made
	changes  map[string]*story   // of topics
	backlogs []*Event            // see Ordered
	grants   []*op               // calls for tokens
	drops    []*op               // of topics
	groups   map[string]*group   // calls about many tasks, by their names
	logs     map[string][]*Event // of topics: what they had in the end
	watches  map[string][]*Event // by their names
	died     map[string]bool     // tasks, by topic and id, that are dead as the logs end
	faults   []span
	clock    clock
	from     int64 // mono of the first event
	to       int64 // of the last
	wall     int64 // the time of day at from
}

// span is a part of a run, on the monotonic clock.
type span struct {
	name     string
	from, to int64
	fault    bool
}

// Read reads every ledger in dir.
func Read(dir string) (*History, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Extension))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *%s file in %s", Extension, dir)
	}
	var files [][]Event
	for _, path := range paths {
		events, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, events)
	}
	return New(files), nil
}

// readFile reads the events of one client. A client that was killed, or a machine
// that stopped, may have left half a line at the end, which did not happen.
func readFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	client := strings.TrimSuffix(filepath.Base(path), Extension)
	var events []Event
	lines := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(events)+1, err)
		}
		e.Client = client
		events = append(events, e)
	}
}

// New makes a history of the events of each client, in the order in which it wrote
// them down. It keeps the events, and every one must name its client.
func New(files [][]Event) *History {
	h := &History{stories: map[string]*story{}, holds: map[string]int64{}, topics: map[string]*Event{}, changes: map[string]*story{}, groups: map[string]*group{}, logs: map[string][]*Event{}, watches: map[string][]*Event{}, died: map[string]bool{}}
	for _, events := range files {
		if len(events) > 0 {
			h.Clients = append(h.Clients, events[0].Client)
		}
		h.add(events)
	}
	for _, s := range h.stories {
		s.dropped(h.drops)
		s.sort()
		h.gather(s)
	}
	for _, w := range h.watches {
		slices.SortStableFunc(w, func(a, b *Event) int { return cmp.Compare(a.Mono, b.Mono) })
	}
	slices.SortFunc(h.faults, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	h.clock.ready()
	return h
}

// add takes the events of one client.
func (h *History) add(events []Event) {
	calls, changes := map[uint64]*op{}, map[uint64]*op{}
	for i := range events {
		e := &events[i]
		h.Events++
		if h.from == 0 || e.Mono < h.from {
			h.from, h.wall = e.Mono, e.Wall
		}
		h.to = max(h.to, e.Mono)
		h.clock.see(e)
		switch e.Kind {
		case Topic:
			h.holds[e.Topic], h.topics[e.Topic] = e.HoldMS, e
		case Fault:
			h.faults = append(h.faults, span{e.Fault, e.Mono, never, true})
		case Healed:
			h.heal(e)
		case Audited:
			h.Audited = true
		case Call, Answer, Delivered, Found:
			if e.Op == Acquire {
				h.acquire(e, calls)
				continue
			}
			if e.Op == Drop {
				h.drop(e, calls)
				continue
			}
			if e.Task == "" {
				h.change(e, changes)
				continue
			}
			h.story(e).add(e, calls)
		case Watching, Told, Expired, Failed:
			h.watches[e.Watch] = append(h.watches[e.Watch], e)
		case Ordered:
			h.backlogs = append(h.backlogs, e)
		case Logged:
			h.logs[e.Topic] = append(h.logs[e.Topic], e)
			h.died[e.Topic+"/"+e.Task] = e.Change.What == "dead"
		case Opened, Clock:
		}
	}
}

// heal ends the last fault of a name.
func (h *History) heal(e *Event) {
	for i := len(h.faults) - 1; i >= 0; i-- {
		if f := &h.faults[i]; f.name == e.Fault && f.to == never {
			f.to = e.Mono
			return
		}
	}
}

func (h *History) story(e *Event) *story {
	key := e.Topic + "/" + e.Task
	s := h.stories[key]
	if s == nil {
		s = &story{topic: e.Topic, id: e.Task}
		h.stories[key] = s
	}
	return s
}
