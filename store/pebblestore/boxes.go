package pebblestore

import (
	"encoding/binary"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// boxes are what lies in the two boxes of a shard. The parcels of a box are numbered one
// after the other. Those of the in-box are taken in that order, so the ones that lie there
// are those behind the last that was taken.
type boxes struct{ *batch }

// push appends a parcel to the box that it is for.
func (x *boxes) push(p *store.Parcel) error {
	last, sent, box := x.sh.meta.boxes.in, &x.next.in, tableIn
	if p.Topic != "" {
		last, sent, box = x.sh.meta.boxes.out, &x.next.out, tableOut
	}
	*sent++
	x.next.newer = true
	stamped := *p
	stamped.At = x.ms
	x.key = appendParcelKey(x.key[:0], x.sh.number, box, last+*sent)
	x.value = appendParcel(x.value[:0], &stamped)
	return x.set(x.key, x.value)
}

// take forgets the parcels of the in-box up to a number, but none of this batch.
func (x *boxes) take(upTo int64) error {
	m := &x.sh.meta.boxes
	for n := m.taken + x.next.taken + 1; n <= min(upTo, m.in); n++ {
		x.next.taken++
		x.key = appendParcelKey(x.key[:0], x.sh.number, tableIn, n)
		if err := x.remove(x.key, false); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets parcels of the out-box, but none of this batch.
func (x *boxes) drop(numbers []int64) error {
	for _, n := range numbers {
		if slices.Contains(x.next.left, n) {
			continue
		}
		x.key = appendParcelKey(x.key[:0], x.sh.number, tableOut, n)
		there, err := x.has(x.key)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		x.next.left = append(x.next.left, n)
		if err := x.remove(x.key, false); err != nil {
			return err
		}
	}
	return nil
}

// page reads what is in a box behind a number. A parcel that cannot be read is left out: who
// waits for it finds out by itself.
func (x *boxes) page(box store.Box, after int64, limit int) (page []store.Parcel, err error) {
	if limit <= 0 {
		return nil, nil
	}
	t, passed := tableIn, x.sh.meta.boxes.taken
	if box == store.OutBox {
		t, passed = tableOut, x.sh.passedOut
	}
	var bodies store.Bodies
	lower, upper := appendParcelKey(nil, x.sh.number, t, max(after, passed)+1), appendPrefix(nil, x.sh.number, t+1)
	err = x.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
		n := int64(binary.BigEndian.Uint64(key[prefixLen:]))
		if len(page) == 0 && box == store.OutBox && after <= passed {
			x.sh.passedOut = n - 1
		}
		p, err := decodeParcel(value)
		if err != nil {
			x.dir.Log.Error("unreadable parcel is left out", "topic", x.sh.name.Topic, "shard", x.sh.name.N, "err", err)
			return true, nil
		}
		p.Number = n
		page = append(page, p)
		bodies += store.Bodies(p.Size())
		return len(page) < limit && !bodies.Full(), nil
	})
	return page, err
}
