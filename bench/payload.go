package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// stampSize is the part of a payload that the harness reads back.
const stampSize = 24

// stamp says which task a payload belongs to, in every system alike.
type stamp struct {
	run   uint32 // one round of one workload
	index uint32 // 0 to n-1 within the run
	due   int64  // Unix nanoseconds; for a task due at once, when it was made
	timed bool   // due was asked for, so a start before it is early
}

func (s stamp) put(b []byte) {
	binary.BigEndian.PutUint32(b, s.run)
	binary.BigEndian.PutUint32(b[4:], s.index)
	binary.BigEndian.PutUint64(b[8:], uint64(s.due))
	var timed uint64
	if s.timed {
		timed = 1
	}
	binary.BigEndian.PutUint64(b[16:], timed)
}

// readStamp reports false for a payload that is not the harness's.
func readStamp(b []byte) (stamp, bool) {
	if len(b) < stampSize {
		return stamp{}, false
	}
	return stamp{
		run:   binary.BigEndian.Uint32(b),
		index: binary.BigEndian.Uint32(b[4:]),
		due:   int64(binary.BigEndian.Uint64(b[8:])),
		timed: binary.BigEndian.Uint64(b[16:]) == 1,
	}, true
}

// maker makes the tasks of one run: the same seed, the same filler and ids.
type maker struct {
	prefix string
	run    uint32
	filler []byte
}

func newMaker(seed int64, run uint32, payload int) *maker {
	filler := make([]byte, payload)
	r := rand.New(rand.NewPCG(uint64(seed), uint64(run)))
	for i := range filler {
		filler[i] = byte('a' + r.IntN(26))
	}
	return &maker{prefix: fmt.Sprintf("b%d-%d-", seed, run), run: run, filler: filler}
}

// task makes number i, due at due, or at once when that is zero.
func (m *maker) task(i int, due time.Time) Task {
	s := stamp{run: m.run, index: uint32(i), timed: !due.IsZero()}
	if s.timed {
		s.due = due.UnixNano()
	} else {
		s.due = time.Now().UnixNano()
	}
	payload := append([]byte(nil), m.filler...)
	s.put(payload)
	return Task{ID: fmt.Sprintf("%s%d", m.prefix, i), Due: due, Payload: payload}
}
