package operations

import (
	"context"
	"encoding/json"

	"github.com/ddq-io/ddq/store"
)

// State is how far an operation is.
type State uint8

// States. The last four are ends. They are stored by these numbers.
const (
	Waiting   State = iota + 1 // for others of its node to end
	Running                    //
	Done                       //
	Failed                     // see Failure; what was changed stays changed
	Stopped                    // a call asked for it
	BrokenOff                  // its node stopped, or died
)

// Ended reports whether nothing more happens.
func (s State) Ended() bool { return s >= Done }

// Progress is what an operation has done.
type Progress struct {
	Matched, Changed int64
	Skipped          int64 // matched, and not changed
	Capped           bool  // there may be more that match
	Examined         int64 `json:",omitempty"` // by a dry run of dead letters

	// Mark is where it is, for another one to go on from there; empty where they begin anew.
	Mark string `json:",omitempty"`
}

// Operation is one as its record has it.
type Operation struct {
	ID      string
	Topic   string // empty: it is about everything there is
	Request []byte // what was asked for, as the edge writes it
	By      string // who did; empty: nobody had to say
	Node    string // that runs it
	State   State
	Progress
	Failure  *Failure     `json:",omitempty"` // of one that failed
	Created  store.Millis // by the store's clock, as all of these
	Began    store.Millis `json:",omitempty"`
	Ended    store.Millis `json:",omitempty"`
	Seen     store.Millis // when its node last wrote it
	Stopping bool         `json:",omitempty"` // it was asked to
	version  int64
}

// Failure is why an operation failed.
type Failure struct{ Reason, Message string }

// Act does the work of an operation until ctx ends. It reports after each part, and ends with the first
// error of that, which holds it back to the rate that was asked for.
type Act func(ctx context.Context, report func(Progress) error) error

// read reads a record.
func read(r *store.Record) (*Operation, error) {
	o := &Operation{version: r.Version}
	return o, json.Unmarshal(r.Value, o)
}

// record is o as it is stored.
func (o *Operation) record() (store.Record, error) {
	value, err := json.Marshal(o)
	return store.Record{Kind: kind, Name: o.ID, Version: o.version, Value: value}, err
}

// lost reports whether nobody runs o any more at a time, although it has not ended.
func (o *Operation) lost(now store.Millis) bool {
	return !o.State.Ended() && now.Sub(o.Seen) > lostAfter
}
