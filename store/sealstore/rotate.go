package sealstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// KeyInfo is what is known of a data key without opening it.
type KeyInfo struct {
	ID     KeyID
	Master string // id of the key that wrapped it
	Made   store.Millis
	Node   string // that made it
	Opens  bool   // one of the master keys unwraps it

	Retired bool // nothing more is sealed with it
	Needed  bool // something may be sealed with it
}

// List returns the data keys of a store; masters may be nil.
func List(ctx context.Context, registry store.Registry, masters *Masters) ([]KeyInfo, error) {
	all, err := readRecords(ctx, registry)
	if err != nil {
		return nil, err
	}
	infos := make([]KeyInfo, len(all))
	for i := range all {
		infos[i] = KeyInfo{ID: all[i].id, Master: all[i].Master, Made: all[i].Made, Node: all[i].Node, Retired: all[i].Retired != 0, Needed: !all[i].unneeded()}
		if masters != nil {
			_, err := masters.unwrap(all[i].id, all[i].Master, all[i].Key)
			infos[i].Opens = err == nil
		}
	}
	return infos, nil
}

// rotatePasses bounds the passes over the data keys: nodes that start make more of them.
const rotatePasses = 10

// Rotate wraps with the first of the master keys every data key that another one wrapped, and returns how
// many there were. What is sealed stays as it is, and so is a key that it cannot unwrap and nobody needs. A
// KeyError says which others it cannot unwrap; none is changed then.
func Rotate(ctx context.Context, registry store.Registry, masters *Masters) (rotated int, err error) {
	for range rotatePasses {
		all, err := readRecords(ctx, registry)
		if err != nil {
			return rotated, err
		}
		keys, err := unwrapAll(masters, all)
		if err != nil {
			return rotated, err
		}
		n, left, err := rotateOnce(ctx, registry, masters, all, keys)
		if rotated += n; err != nil || left == 0 {
			return rotated, err
		}
	}
	return rotated, errors.New("data keys change all the time")
}

// unwrapAll returns the data keys, and a KeyError if there is one that it cannot unwrap.
func unwrapAll(masters *Masters, all []stored) ([][]byte, error) {
	keys := make([][]byte, len(all))
	var wrong []stored
	for i := range all {
		var err error
		if keys[i], err = masters.unwrap(all[i].id, all[i].Master, all[i].Key); err != nil && !all[i].unneeded() {
			wrong = append(wrong, all[i])
		}
	}
	if len(wrong) > 0 {
		return nil, otherKeys(masters, wrong)
	}
	return keys, nil
}

func otherKeys(masters *Masters, wrong []stored) error {
	return KeyError{fmt.Errorf("the key that is given, %v, is not that of the store: %s", masters, describe(wrong))}
}

// rotateOnce returns how many keys it wrapped anew, and how many somebody else changed meanwhile.
func rotateOnce(ctx context.Context, registry store.Registry, masters *Masters, all []stored, keys [][]byte) (n, left int, err error) {
	for i := range all {
		s := &all[i]
		if s.Master == masters.all[0].id || keys[i] == nil {
			continue
		}
		s.Master, s.Key = masters.wrap(s.id, keys[i])
		switch err := s.put(ctx, registry); {
		case errors.Is(err, store.ErrVersion):
			left++
		case err != nil:
			return n, left, fmt.Errorf("wrap data key %v: %w", s.id, err)
		default:
			n++
		}
	}
	return n, left, nil
}
