package zones

import (
	"sync"
	"time"
)

// most is how many zones are kept. The database has some 600 names; a file may be called by more.
const most = 1000

// table has the zones that were loaded.
type table struct {
	mu    sync.RWMutex
	known map[string]*time.Location // guarded by mu
}

var loaded = table{known: make(map[string]*time.Location)} // of the process: a zone is the same for all

// Load is time.LoadLocation, with each zone loaded once. It is safe for concurrent use.
func Load(name string) (*time.Location, error) { return loaded.load(name) }

func (t *table) load(name string) (*time.Location, error) {
	if zone := t.find(name); zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	return t.keep(name, zone), nil
}

func (t *table) find(name string) *time.Location {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.known[name]
}

// keep returns the zone that was loaded first.
func (t *table) keep(name string, zone *time.Location) *time.Location {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.known[name]; first != nil {
		return first
	}
	if len(t.known) < most {
		t.known[name] = zone
	}
	return zone
}
