package agenda

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// AckLog remembers the last acks of a shard, so that the same ack again is told
// from one that comes too late, also when the task is gone. An ack is kept until
// another one takes its place.
type AckLog struct{ places []ackPlace }

type ackPlace struct {
	id    uint64 // hash
	token store.Token
}

const ackLogSize = 4096

func (l *AckLog) place(id uint64) *ackPlace { return &l.places[id/ackSpread%ackLogSize] }

// ackSpread skips the bits of the hash that chose the shard.
const ackSpread = 256

// Add records an ack.
func (l *AckLog) Add(id string, token store.Token) {
	if l.places == nil {
		l.places = make([]ackPlace, ackLogSize)
	}
	hash := place.HashID(id)
	*l.place(hash) = ackPlace{hash, token}
}

// Has reports whether an ack of a task under a token is remembered.
func (l *AckLog) Has(id string, token store.Token) bool {
	hash := place.HashID(id)
	return l.places != nil && *l.place(hash) == ackPlace{hash, token}
}
