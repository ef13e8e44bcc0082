package shard

import (
	"sync/atomic"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

// Doze is until when a shard has no use for ticks, as its node sees it without a message.
// It is safe for concurrent use; the shard's actor alone sets it.
type Doze struct {
	until atomic.Int64 // on the shard's clock; 0: it is awake
	seq   atomic.Int64 // what the shard knew of by then
	in    atomic.Int64 // number of the last parcel of its in-box by then
	cells atomic.Bool  // and whether it had cells

	server atomic.Uint64 // of the store, see store.Stamp
}

// Until is when ticks are of use again: 0 for at once.
func (d *Doze) Until() store.Millis { return store.Millis(d.until.Load()) }

// Agrees reports whether a shard that dozes would learn nothing from what the store says of it.
func (d *Doze) Agrees(st *store.Stats) bool {
	return d.until.Load() != 0 && st.Seq == d.seq.Load() && st.Server == d.server.Load() &&
		st.Running == 0 && st.In <= d.in.Load() && (st.Cells == 0 || d.cells.Load()) && st.Parcels == 0
}

// knownCells is what a shard knows of its cells.
type knownCells struct {
	in    int64
	cells bool
}

// set reports whether the shard was dozing, and does not any more.
func (d *Doze) set(until store.Millis, heard *agenda.GapDetector, c knownCells) (woke bool) {
	was := d.until.Load()
	if d.seq.Load() != heard.Known {
		d.seq.Store(heard.Known)
	}
	if d.server.Load() != heard.Server {
		d.server.Store(heard.Server)
	}
	if d.in.Load() != c.in {
		d.in.Store(c.in)
	}
	if d.cells.Load() != c.cells {
		d.cells.Store(c.cells)
	}
	if was != int64(until) {
		d.until.Store(int64(until))
	}
	return was != 0 && until == 0
}
