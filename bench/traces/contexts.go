package traces

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// Contexts returns what client.Config.Trace wants, nil when tasks have no context.
func (o Options) Contexts() func(context.Context) (traceparent, tracestate string) {
	share, err := o.share()
	if o.Traced == "" || err != nil {
		return nil
	}
	return func(context.Context) (traceparent, tracestate string) {
		return traceparentOf(rand.Float64() < share), ""
	}
}

// traceparentOf is the context of a span of its own.
func traceparentOf(recorded bool) string {
	var id [24]byte
	for at := 0; at < len(id); at += 8 {
		binary.BigEndian.PutUint64(id[at:], rand.Uint64()|1) // an id is not zero
	}
	text := [...]byte{0: '0', 1: '0', 2: '-', 35: '-', 52: '-', 53: '0', 54: '0'}
	hex.Encode(text[3:35], id[:16])
	hex.Encode(text[36:52], id[16:])
	if recorded {
		text[54] = '1'
	}
	return string(text[:])
}
