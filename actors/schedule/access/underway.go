package access

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
)

const (
	page  = 1000 // parcels that are read at a time
	pages = 20   // of a box
)

// Store is the role of the store for what schedules are told.
type Store interface {
	Parcels(ctx context.Context, s store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error)
}

// UnderWay returns the parcels that are wanted of those in the boxes of a shard of before a reshard, and
// in the in-box of a shard that it sends them on to, behind a number. The boxes are read in the order in
// which a parcel goes through them, so that none slips by; one may be returned twice. They are returned in
// the order in which they came. Of a box 20,000 are looked at, at most.
func UnderWay(ctx context.Context, st Store, former, to store.Shard, after int64, want func(*store.Parcel) bool) ([]store.Parcel, error) {
	coming, err := read(ctx, st, former, store.InBox, 0, want)
	if err != nil {
		return nil, err
	}
	leaving, err := read(ctx, st, former, store.OutBox, 0, want)
	if err != nil {
		return nil, err
	}
	arrived, err := read(ctx, st, to, store.InBox, after, want)
	return slices.Concat(arrived, leaving, coming), err
}

func read(ctx context.Context, st Store, s store.Shard, box store.Box, after int64, want func(*store.Parcel) bool) (found []store.Parcel, err error) {
	for range pages {
		parcels, err := st.Parcels(ctx, s, box, after, page)
		if err != nil || len(parcels) == 0 {
			return found, err
		}
		for i := range parcels {
			if want(&parcels[i]) {
				found = append(found, parcels[i])
			}
		}
		after = parcels[len(parcels)-1].Number
	}
	return found, nil
}
