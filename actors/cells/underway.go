package cells

import (
	"context"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/schedule/access"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// underWay returns what is told to a schedule, is on its way from shards of before a reshard, and was
// not in the in-box when the look began. Each of those shards is read once in a look. One that cannot
// be read keeps no schedule of this one from being decided: it is by what is known here.
func (l *look) underWay(ctx context.Context, id store.CellID) []store.Parcel {
	if !place.Resharding(l.Topic) {
		return nil
	}
	if l.formers == nil {
		l.formers, l.told = make(map[store.Shard]bool), make(map[store.CellID][]store.Parcel)
	}
	for _, s := range schedule.Formers(l.Topic, id.Key(), l.ID.N) {
		if l.formers[s] {
			continue
		}
		l.formers[s] = true
		parcels, err := access.UnderWay(ctx, l.Store, s, l.ID, l.last(), func(p *store.Parcel) bool {
			return p.To.Kind() == store.CellSchedule && schedule.Told(p) != nil
		})
		if err != nil {
			l.Log.Debug("ends of runs of before a reshard are not known", "topic", l.ID.Topic, "shard", s.N, "err", err)
		}
		for i := range parcels {
			l.told[parcels[i].To] = append(l.told[parcels[i].To], parcels[i])
		}
	}
	return l.told[id]
}

// last is the number of the last parcel that the look has read.
func (l *look) last() int64 {
	switch {
	case len(l.behind) > 0:
		return l.behind[len(l.behind)-1].Number
	case len(l.parcels) > 0:
		return l.parcels[len(l.parcels)-1].Number
	}
	return l.Progress.Taken
}
