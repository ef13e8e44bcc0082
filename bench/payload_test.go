package bench

import (
	"bytes"
	"testing"
	"time"
)

func TestPayloadCarriesItsStamp(t *testing.T) {
	due := time.UnixMilli(1_700_000_000_123)
	for _, size := range []int{stampSize, stampSize + 1, 200, 1001} {
		task := newMaker(9, 4, size).task(77, due)
		if len(task.Payload) != size {
			t.Errorf("size: got %d, want %d", len(task.Payload), size)
		}
		got, ok := readStamp(task.Payload)
		if want := (stamp{run: 4, index: 77, due: due.UnixNano(), timed: true}); !ok || got != want {
			t.Errorf("stamp: got %+v, %v; want %+v", got, ok, want)
		}
	}
	if s, _ := readStamp(newMaker(9, 4, 200).task(0, time.Time{}).Payload); s.timed || s.due == 0 {
		t.Errorf("a task due at once: got %+v, want the time it was made and not timed", s)
	}
	if _, ok := readStamp(make([]byte, stampSize-1)); ok {
		t.Error("a payload that is too short has a stamp")
	}
}

func TestSameSeedMakesSameTasks(t *testing.T) {
	due := time.UnixMilli(1_700_000_000_123)
	a, b := newMaker(9, 4, 200).task(5, due), newMaker(9, 4, 200).task(5, due)
	if a.ID != b.ID || !bytes.Equal(a.Payload, b.Payload) {
		t.Errorf("got %q %x and %q %x", a.ID, a.Payload, b.ID, b.Payload)
	}
	for name, other := range map[string]Task{
		"another seed":  newMaker(8, 4, 200).task(5, due),
		"another run":   newMaker(9, 3, 200).task(5, due),
		"another index": newMaker(9, 4, 200).task(6, due),
	} {
		if other.ID == a.ID || bytes.Equal(other.Payload[stampSize:], a.Payload[stampSize:]) {
			t.Errorf("%s makes the same task", name)
		}
	}
}

// What the harness costs is part of the client's CPU, so it has to stay small.

func BenchmarkMakeTask(b *testing.B) {
	m := newMaker(1, 1, 200)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.task(i, time.Time{})
	}
}

func BenchmarkRecord(b *testing.B) {
	const n = 1 << 20
	m, r, now := newMaker(1, 1, 200), NewRecorder(1, n), time.Now()
	d := Delivery{Payload: m.task(0, now).Payload, Attempt: 1}
	s, _ := readStamp(d.Payload)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.index = uint32(i % n)
		s.put(d.Payload)
		r.Start(d, now)
	}
}
