package intake

import (
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// ByteRate is a rate of bytes, by tokens of Unit bytes each.
type ByteRate struct {
	store.Rate
	Unit int64
}

// NewByteRate is so many bytes in a second, and as many at once after a rest. With more than 4,096 it is up to a
// thousandth slower than that, so that those of a second are one reservation.
func NewByteRate(perSecond int64) ByteRate {
	unit := max(1, (perSecond+mostAhead-1)/mostAhead)
	return ByteRate{store.Rate{
		Kind: store.TokenBucket, Count: int(perSecond / unit), Period: time.Second, Burst: int((perSecond + unit - 1) / unit),
	}, unit}
}

// tokens is how many there are for n bytes.
func (r ByteRate) tokens(n int64) int { return int((n + r.Unit - 1) / r.Unit) }

// Bytes are those of a rate over all nodes that this node has taken from the store. The zero value has none.
type Bytes struct {
	mu    sync.Mutex
	left  int64     // that may be used still; guarded by mu, as all
	until time.Time // they are lost then
	again time.Time // the store has not the least tokens before that
	least int
}

// Take uses n bytes, of which a second brings as many at least. Where there are not as many here, most is how many
// tokens to take from the store, all of them or none, and least how many do; where the store has not as many
// either, most is 0 and wait says when it has.
func (b *Bytes) Take(now time.Time, r ByteRate, n int64) (taken bool, most, least int, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !now.Before(b.until) {
		b.left = 0
	}
	if n <= b.left {
		b.left -= n
		return true, 0, 0, 0
	}
	least = r.tokens(n - b.left)
	if now.Before(b.again) && least >= b.least {
		return false, 0, least, b.again.Sub(now) + r.Span(least-b.least)
	}
	return false, min(max(least, int(ahead/max(1, r.Spacing()))), r.Most()), least, 0
}

// Add adds what asking for so many tokens got, of which least do. It returns how many to ask for at once: least
// when there are as many, though not all; 0 otherwise. While a rate is used up the store is asked once in a Pause.
func (b *Bytes) Add(now time.Time, r ByteRate, asked, least int, got store.Tokens) (ask int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !now.Before(b.until) {
		b.left = 0
	}
	if got.N > 0 {
		b.left, b.until = b.left+int64(got.N)*r.Unit, now.Add(ahead)
		return 0
	}
	wait := got.First.Sub(got.Now) - r.Span(asked-least)
	if wait <= 0 && least < asked {
		return least
	}
	b.again, b.least = now.Add(max(wait, Pause)), least
	return 0
}
