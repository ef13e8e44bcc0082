package agenda

// GapDetector follows the seq of a shard through the calls that its owner hears of: its
// own, and those that other nodes tell it. A gap that stays is a call that nobody
// told. It has no clock: a gap is one that two looks in a row have found. A store
// that is behind what was known at the last look was set back, as by a failover to a
// replica that lagged: calls are undone, and nobody will tell. One that is on another server
// than before may have been: calls that did not raise seq leave no other trace.
type GapDetector struct {
	Known   int64              // all calls up to this one were heard of
	ahead   map[int64]struct{} // heard of, beyond known+1
	suspect int64              // seq of the last look, when it was beyond known; else 0
	floor   int64              // known at the last look
	latest  int64              // the highest that was heard of
	Server  uint64             // that told the last seq; 0: not known
}

// Restart records that everything up to seq of a server is about to be loaded.
func (q *GapDetector) Restart(seq int64, server uint64) {
	q.Known, q.suspect, q.floor, q.latest, q.Server = seq, 0, 0, seq, server
	for n := range q.ahead {
		if n <= seq {
			delete(q.ahead, n)
		}
	}
	q.advance()
}

// Overtaken records a call, and reports whether a later one was heard of before it: what it
// says of a task may have changed since.
func (q *GapDetector) Overtaken(seq int64) bool {
	if seq < q.latest {
		return true
	}
	q.latest = seq
	return false
}

// Heard records a call that was heard of.
func (q *GapDetector) Heard(seq int64) {
	switch {
	case seq <= q.Known:
		return
	case seq == q.Known+1 && len(q.ahead) == 0:
		q.Known = seq
		return
	}
	if q.ahead == nil {
		q.ahead = make(map[int64]struct{})
	}
	q.ahead[seq] = struct{}{}
	q.advance()
}

func (q *GapDetector) advance() {
	for {
		if _, ok := q.ahead[q.Known+1]; !ok {
			return
		}
		q.Known++
		delete(q.ahead, q.Known)
	}
}

// Agrees reports whether the calls up to a seq that the store had are all that was heard of. Behind a gap there may be
// later ones, which a look does not know that was long on its way.
func (q *GapDetector) Agrees(seq int64) bool { return q.Known == seq && len(q.ahead) == 0 }

// SetBack looks at the seq that the store has now, and which server says so, and reports
// whether calls were undone or may have been. What was heard of them counts no more. A look
// that was long on its way may report that wrongly, which costs a load.
func (q *GapDetector) SetBack(seq int64, server uint64) bool {
	if q.Server == 0 {
		q.Server = server
	}
	another := server != 0 && server != q.Server
	if !another && seq >= q.floor {
		return false
	}
	clear(q.ahead) // numbers that others will have
	return true
}

// Missed looks at the seq that the store has now, and reports whether a call is
// missing that was so at the last look.
func (q *GapDetector) Missed(seq int64) bool {
	q.floor = q.Known
	missing := q.suspect != 0 && q.Known < q.suspect
	q.suspect = 0
	if q.Known < seq {
		q.suspect = seq
	}
	return missing
}
