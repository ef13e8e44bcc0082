package schedules

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Users looks through all schedules for those that have an audience, or name a calendar. Claims of it are taken
// away: see claim.
type Users struct {
	Cells  store.Cells
	Topics Topics
}

// usePage is how many schedules, or parcels, are read at a time.
const usePage = 500

// user is a schedule, and where it is.
type user struct {
	*schedule.Schedule
	topic string
}

// Find returns a schedule that has an audience, with its topic; nothing when none does.
func (u *Users) Find(ctx context.Context, name string) (string, error) {
	found, err := u.first(ctx, func(s *schedule.Schedule) bool { return s.Audience != nil && s.Audience.Name == name })
	if found == nil || err != nil {
		return "", err
	}
	return found.topic + "/" + found.Name, nil
}

// first returns a schedule that is as asked, or nil. One that moves from shard to shard meanwhile is
// found: see firstIn.
func (u *Users) first(ctx context.Context, is func(*schedule.Schedule) bool) (*user, error) {
	topics, e := u.Topics(ctx, "")
	for e == nil {
		found, err := u.firstAmong(ctx, topics, is)
		if found != nil || err != nil {
			return found, err
		}
		was := topics
		if topics, e = u.Topics(ctx, ""); e == nil && !resharded(was, topics) {
			return nil, nil
		}
	}
	return nil, e
}

func (u *Users) firstAmong(ctx context.Context, topics []store.Topic, is func(*schedule.Schedule) bool) (*user, error) {
	for i := range topics {
		for _, shard := range place.Shards(&topics[i]) {
			if err := u.takeClaims(ctx, shard.For(topics[i].Life), is); err != nil {
				return nil, err
			}
			found, err := u.firstIn(ctx, shard, is)
			if err != nil {
				return nil, err
			}
			if found != nil {
				return &user{found, shard.Topic}, nil
			}
		}
	}
	return nil, nil
}

// resharded reports whether a topic has shards that it did not have: schedules move there.
func resharded(was, now []store.Topic) bool {
	ends := make(map[string]int, len(was))
	for i := range was {
		ends[was[i].Name] = was[i].End()
	}
	return slices.ContainsFunc(now, func(t store.Topic) bool {
		end, there := ends[t.Name]
		return there && t.End() > end
	})
}

// firstIn looks through a shard in the order in which a schedule comes and goes: it arrives in the in-box,
// becomes a cell, and leaves by the out-box. It goes to later shards only, which are looked through after this one.
func (u *Users) firstIn(ctx context.Context, shard store.Shard, is func(*schedule.Schedule) bool) (*schedule.Schedule, error) {
	if found, err := u.moving(ctx, shard, store.InBox, is); found != nil || err != nil {
		return found, err
	}
	if found, err := u.there(ctx, shard, is); found != nil || err != nil {
		return found, err
	}
	return u.moving(ctx, shard, store.OutBox, is)
}

func (u *Users) there(ctx context.Context, shard store.Shard, is func(*schedule.Schedule) bool) (*schedule.Schedule, error) {
	for cursor := ""; ; {
		cells, next, err := u.Cells.CellPage(ctx, shard, store.CellSchedule, cursor, usePage)
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			if s, err := schedule.FromCell(c); err == nil && is(s) {
				return s, nil
			}
		}
		if cursor = next; cursor == "" {
			return nil, nil
		}
	}
}

// takeClaims takes claims away before the schedules are looked through: one that was used by then is among those.
func (u *Users) takeClaims(ctx context.Context, shard store.Shard, is func(*schedule.Schedule) bool) error {
	for cursor := ""; ; {
		claims, next, err := u.Cells.CellPage(ctx, shard, store.CellClaim, cursor, usePage)
		if err != nil {
			return err
		}
		for _, c := range claims {
			if s, err := schedule.FromCell(c); err != nil || !is(s) {
				continue
			}
			if err := takeClaim(ctx, u.Cells, shard, c.ID); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// Arrives reports whether a parcel brings a schedule from another shard.
func Arrives(p *store.Parcel) bool {
	return p.To != "" && p.To.Kind() == store.CellSchedule && schedule.Moving(p, p.To.Key()) != nil
}

// moving looks for a schedule among the parcels of a box.
func (u *Users) moving(ctx context.Context, shard store.Shard, box store.Box, is func(*schedule.Schedule) bool) (*schedule.Schedule, error) {
	for after := int64(0); ; {
		parcels, err := u.Cells.Parcels(ctx, shard, box, after, usePage)
		if err != nil || len(parcels) == 0 {
			return nil, err
		}
		for i := range parcels {
			p := &parcels[i]
			if after = p.Number; p.To == "" || p.To.Kind() != store.CellSchedule {
				continue
			}
			if s := schedule.Moving(p, p.To.Key()); s != nil && is(s) {
				return s, nil
			}
		}
	}
}
