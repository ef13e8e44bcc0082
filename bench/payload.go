package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
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

// maker makes the tasks of one run: the same seed, the same ids and payloads.
// Payloads are random, so that no store looks smaller than it is by compressing
// what all tasks have in common.
type maker struct {
	prefix string
	seed   uint64
	run    uint32
	size   int
}

func newMaker(seed int64, run uint32, payload int) *maker {
	return &maker{prefix: fmt.Sprintf("b%d-%d-", seed, run), seed: uint64(seed), run: run, size: payload}
}

// task makes number i, due at due, or at once when that is zero.
func (m *maker) task(i int, due time.Time) Task {
	s := stamp{run: m.run, index: uint32(i), timed: !due.IsZero()}
	if s.timed {
		s.due = due.UnixNano()
	} else {
		s.due = time.Now().UnixNano()
	}
	payload := make([]byte, m.size, m.size+8)
	r := rand.NewPCG(m.seed, uint64(m.run)<<32|uint64(i))
	for at := stampSize; at < m.size; at += 8 {
		binary.BigEndian.PutUint64(payload[at:at+8], r.Uint64()) // the last one into the spare capacity
	}
	s.put(payload)
	return Task{ID: m.prefix + strconv.Itoa(i), Due: due, Payload: payload}
}
