package ledger

import (
	"math/bits"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Spread is how the runs of a schedule go through an audience of so many shards, a power of two:
// each recipient has a place in the window, rounded down to the grain.
type Spread struct {
	Shards   int   `json:"shards"`
	WindowMS int64 `json:"window_ms"`
	GrainMS  int64 `json:"grain_ms"`
}

// Shard is the shard of the audience that a recipient is in.
func (s *Spread) Shard(recipient string) int {
	return int(xxhash.Sum64String(recipient) >> (64 - s.bits()))
}

// Place is how long after the begin of a run the task of a recipient is due: the hash of its id
// says the shard, and behind that the place.
func (s *Spread) Place(recipient string) time.Duration {
	at := xxhash.Sum64String(recipient) << s.bits()
	place, _ := bits.Mul64(at, uint64(s.WindowMS))
	return time.Duration(int64(place)/s.GrainMS*s.GrainMS) * time.Millisecond
}

// bits is how many bits of a hash say the shard.
func (s *Spread) bits() int { return bits.Len(uint(s.Shards - 1)) }

// Walk is how a run of an audience stands at the end.
type Walk struct {
	Begin int64 `json:"begin_ms"` // when the first place is, Unix ms: its occurrence, unless it was made late
	Made  int64 `json:"made"`     // tasks
	Ended int64 `json:"ended"`    // of them, as far as the run was told
	Over  bool  `json:"over"`
}
