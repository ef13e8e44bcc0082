package audiences

import (
	"context"
	"sync"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// exactUpTo is how many recipients a preview looks at one by one. Of more it takes a sample.
const exactUpTo = 100_000

// Preview says what a run would do that is ordered so, with the recipients as they are now.
func (s *Audiences) Preview(ctx context.Context, o audience.Order) (audience.Preview, error) {
	if err := s.CheckTarget(ctx, o.Audience, o.Kind); err != nil {
		return audience.Preview{}, err
	}
	a, err := s.find(ctx, o.Audience)
	if err != nil {
		return audience.Preview{}, err
	}
	dirs, recipients, err := s.directories(ctx, a)
	if err != nil {
		return audience.Preview{}, err
	}
	kind, _ := a.Kind(o.Kind)
	kind.None = o.Kind == ""
	var mu sync.Mutex // guards p
	p := audience.NewPreviewer(o, a, kind, dirs, timetable.FindZone)
	err = each(ctx, all(a), func(ctx context.Context, n int) error {
		v, err := s.Leaves(ctx, a, n, func(d *audience.Directory) []store.CellID { return d.Sample(n, recipients <= exactUpTo) })
		if err != nil {
			return asProblem(a.Name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, l := range v.Leaves {
			p.Add(l)
		}
		return nil
	})
	if err != nil {
		return audience.Preview{}, err
	}
	return p.Preview(), nil
}

// directories are those of all shards, and how many recipients they have.
func (s *Audiences) directories(ctx context.Context, a *audience.Audience) (dirs []*audience.Directory, recipients int64, err error) {
	dirs = make([]*audience.Directory, a.Shards)
	err = each(ctx, all(a), func(ctx context.Context, n int) (err error) {
		dirs[n], err = s.Directory(ctx, a, n)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	for _, d := range dirs {
		recipients += d.Recipients()
	}
	return dirs, recipients, nil
}
