package intake

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// byteRig takes bytes by a rate, and answers for the store.
type byteRig struct {
	*testing.T
	rate  ByteRate
	bytes Bytes
	now   time.Time
}

func (r *byteRig) take(what string, n int64, taken bool, most, least int, wait time.Duration) {
	r.Helper()
	gotTaken, gotMost, gotLeast, gotWait := r.bytes.Take(r.now, r.rate, n)
	if gotTaken != taken || gotMost != most || gotLeast != least || gotWait != wait {
		r.Fatalf("%s: %v, %d, %d, %v; want %v, %d, %d, %v", what, gotTaken, gotMost, gotLeast, gotWait, taken, most, least, wait)
	}
}

// refuse answers that the tokens that were asked for are there after a while.
func (r *byteRig) refuse(what string, asked, least int, after time.Duration, ask int) {
	r.Helper()
	if got := r.bytes.Add(r.now, r.rate, asked, least, store.Tokens{Now: r.now, First: r.now.Add(after)}); got != ask {
		r.Fatalf("%s: ask for %d, want %d", what, got, ask)
	}
}

func (r *byteRig) give(n int) {
	r.bytes.Add(r.now, r.rate, n, n, store.Tokens{N: n, Now: r.now, First: r.now})
}

func TestBytesAreTakenAheadForAMoment(t *testing.T) {
	r := &byteRig{T: t, rate: NewByteRate(1000), now: time.Unix(100, 0)}
	r.take("the first", 30, false, 50, 30, 0) // what comes in 50 ms
	r.give(50)
	r.take("the first, of what was taken", 30, true, 0, 0, 0)
	r.take("no bytes", 0, true, 0, 0, 0)
	r.take("a large one, with what is left", 970, false, 950, 950, 0)
	r.give(950)
	r.take("the large one, of what was taken", 970, true, 0, 0, 0)
	r.take("the next", 30, false, 50, 30, 0)
	r.refuse("there are 20 after 20 ms less", 50, 30, 40*time.Millisecond, 0)
	r.take("while there are not enough", 30, false, 0, 30, 20*time.Millisecond)
	r.take("a larger one meanwhile", 130, false, 0, 130, 120*time.Millisecond)
	r.take("a smaller one meanwhile", 10, false, 50, 10, 0)
	r.refuse("as many as it needs are there", 50, 10, 40*time.Millisecond, 10)
	r.give(10)
	r.take("the smaller one", 10, true, 0, 0, 0)
	r.now = r.now.Add(20 * time.Millisecond)
	r.take("when there are enough", 30, false, 50, 30, 0)
	r.refuse("none in a moment", 50, 50, time.Millisecond, 0)
	r.take("the store is left alone for a pause", 50, false, 0, 50, Pause)
	r.give(50)
	r.now = r.now.Add(ahead)
	r.take("when those of before are lost", 10, false, 50, 10, 0)
}

func TestARateOfManyBytesIsOneReservation(t *testing.T) {
	for perSecond, want := range map[int64]ByteRate{
		1:       {store.Rate{Count: 1, Burst: 1}, 1},
		4096:    {store.Rate{Count: 4096, Burst: 4096}, 1},
		4097:    {store.Rate{Count: 2048, Burst: 2049}, 2},
		1 << 30: {store.Rate{Count: 4096, Burst: 4096}, 1 << 18},
	} {
		want.Period = time.Second
		got := NewByteRate(perSecond)
		if got != want {
			t.Errorf("%d: %+v", perSecond, got)
		}
		if n := got.tokens(perSecond); n > got.Most() {
			t.Errorf("%d at once are %d tokens of %d", perSecond, n, got.Most())
		}
	}
}
