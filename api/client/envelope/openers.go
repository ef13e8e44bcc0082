package envelope

import (
	"context"
	"crypto/cipher"
	"sync"
)

// maxOpeners is how many data keys are kept: one for each hour of each producer.
const maxOpeners = 1024

// openers are the data keys that came with payloads. Beyond maxOpeners all are forgotten, and
// unwrapped again when they come again.
type openers struct {
	mu sync.RWMutex
	by map[opener]cipher.AEAD // guarded by mu
}

// opener names a data key.
type opener struct{ id, wrapped string }

func (o *openers) of(ctx context.Context, keys Keys, h header) (cipher.AEAD, error) {
	name := opener{h.id, string(h.wrapped)}
	o.mu.RLock()
	aead := o.by[name]
	o.mu.RUnlock()
	if aead != nil {
		return aead, nil
	}
	key, err := keys.Unwrap(ctx, h.id, h.wrapped)
	if err != nil {
		return nil, err
	}
	if aead, err = newAEAD(key); err != nil {
		return nil, ErrCorrupt
	}
	o.keep(name, aead)
	return aead, nil
}

func (o *openers) keep(name opener, aead cipher.AEAD) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil || len(o.by) >= maxOpeners {
		o.by = make(map[opener]cipher.AEAD)
	}
	o.by[name] = aead
}
