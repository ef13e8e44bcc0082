package forecasts

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/api/service/text"
	"github.com/ddq-io/ddq/store"
)

// DryRun says which runs are meant.
type DryRun struct {
	Topic    string
	Name     string       // of a schedule; empty: all of the topic
	From, To store.Millis // due from then on, 0: from now, and before then
}

// PlannedRun is a run that would be made.
type PlannedRun struct {
	Schedule string
	Audience bool // the run is of all recipients
	forecast.Rehearsed
}

// What a page of a dry run takes at most.
const (
	dryRunSteps = 20_000 // of schedules
	dryRunCells = 100    // that are read at a time
)

const dryRunPage = "dryrun:"

// DryRun pages through the runs that would be made: schedule by schedule, those of one in the
// order in which they are made. A page may have fewer than size, and still be followed by more.
func (f *Forecasts) DryRun(ctx context.Context, d DryRun, size int, token string) (all []PlannedRun, next string, err error) {
	if f.cells == nil {
		return nil, "", &problem.Error{Kind: problem.Precondition, Reason: "NO_CELLS", Message: "the store of this server keeps no schedules"}
	}
	if e := cmp.Or(f.node.Serving(), f.checkDryRun(&d)); e != nil {
		return nil, "", e
	}
	at, ok := dryRunAt(token)
	if !ok || size < 0 {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	topics, e := f.topics(ctx, d.Topic)
	if e != nil {
		return nil, "", e
	}
	done, e := f.turn(ctx)
	if e != nil {
		return nil, "", e
	}
	defer done()
	reader, e := f.reader(ctx)
	if e != nil {
		return nil, "", e
	}
	limit := f.node.Config().Limits.PageSize
	p := dryRunner{Forecasts: f, reader: reader, DryRun: d, size: min(cmp.Or(size, limit), limit), steps: dryRunSteps}
	for _, shard := range locate(topics[:1]) {
		if shard.N < at.shard {
			continue
		}
		if shard.N != at.shard {
			at = dryRunPosition{shard: shard.N}
		}
		more, err := p.inShard(ctx, shard, &at)
		if err != nil {
			return nil, "", problem.AsError(err)
		}
		if more {
			return p.found, at.token(), nil
		}
	}
	if d.Name != "" && token == "" && !p.seen {
		return nil, "", &problem.Error{Kind: problem.NotFound, Reason: "NO_SCHEDULE", Field: "name", Message: fmt.Sprintf("no schedule %q", d.Name)}
	}
	return p.found, "", nil
}

func (f *Forecasts) checkDryRun(d *DryRun) *problem.Error {
	if e := actors.CheckTopicName("topic", d.Topic); e != nil {
		return e
	}
	if len(d.Name) > store.MaxCellKey || !text.Visible(d.Name) {
		return problem.BadField("name", "BAD_NAME", "name must be visible ASCII without spaces")
	}
	now := f.node.Clock().Millis()
	d.From = max(d.From, now)
	switch {
	case d.To == 0:
		return problem.BadField("to", "BAD_TIME", "to is required")
	case d.To <= d.From:
		return problem.BadField("to", "BAD_TIME", "to is not after from, or over")
	}
	return nil
}

// dryRunner fills one page.
type dryRunner struct {
	*Forecasts
	*reader
	DryRun
	size, steps int
	found       []PlannedRun
	seen        bool // a schedule was there
}

// dryRunPosition is behind a schedule of a shard, or, with a state, within it.
type dryRunPosition struct {
	shard int
	name  string
	life  uint64
	now   store.Millis
	wake  store.Millis
	state []byte
}

func (p dryRunPosition) token() string {
	b := binary.AppendUvarint(nil, uint64(p.shard))
	b = binary.BigEndian.AppendUint64(b, p.life)
	b = binary.AppendVarint(b, int64(p.now))
	b = binary.AppendVarint(b, int64(p.wake))
	return pagetoken.Make(dryRunPage, string(b)+p.name+"\n"+string(p.state))
}

func dryRunAt(token string) (p dryRunPosition, ok bool) {
	text, ok := pagetoken.Position(dryRunPage, token)
	if !ok || token == "" {
		return p, ok
	}
	b := []byte(text)
	shard, n := binary.Uvarint(b)
	if n <= 0 || len(b) < n+8 || shard > actors.MaxShardNumber {
		return p, false
	}
	p.shard, p.life, b = int(shard), binary.BigEndian.Uint64(b[n:]), b[n+8:]
	for _, at := range []*store.Millis{&p.now, &p.wake} {
		v, n := binary.Varint(b)
		if n <= 0 {
			return p, false
		}
		*at, b = store.Millis(v), b[n:]
	}
	name, state, ok := strings.Cut(string(b), "\n")
	p.name, p.state = name, []byte(state)
	return p, ok
}

// inShard goes on behind a position, and reports whether the page is full before the end of
// the shard.
func (p *dryRunner) inShard(ctx context.Context, shard located, at *dryRunPosition) (more bool, err error) {
	for {
		cells, err := p.page(ctx, shard.Shard, at)
		if err != nil {
			return false, err
		}
		for _, c := range cells {
			if more, err = p.schedule(ctx, shard.Shard, c, at); more || err != nil {
				return more, err
			}
		}
		if len(cells) == 0 || p.Name != "" {
			return false, nil
		}
	}
}

// page reads schedules: the one that a position is in, and those behind it.
func (p *dryRunner) page(ctx context.Context, shard store.Shard, at *dryRunPosition) ([]store.Cell, error) {
	var cells []store.Cell
	if p.Name != "" && at.name == p.Name && len(at.state) == 0 {
		return nil, nil // the page before came to its end
	}
	if name := cmp.Or(p.Name, at.name); len(at.state) > 0 || p.Name != "" {
		found, err := p.cells.Cells(ctx, shard, []store.CellID{schedule.CellID(name)})
		if err != nil {
			return nil, err
		}
		cells = slices.DeleteFunc(found, func(c store.Cell) bool { return c.Version == 0 })
		if len(cells) > 0 || p.Name != "" {
			return cells, nil
		}
		at.state = nil // it is gone
	}
	return p.cells.Listed(ctx, shard, schedule.List, schedule.Listed(at.name), dryRunCells)
}

// schedule plays one, and reports whether the page is full.
func (p *dryRunner) schedule(ctx context.Context, shard store.Shard, c store.Cell, at *dryRunPosition) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	p.seen = true
	state := *at
	*at = dryRunPosition{shard: shard.N, name: c.ID.Key()}
	s, err := p.reader.read(c)
	if err != nil {
		return false, nil // it makes no run
	}
	r := forecast.Rehearsal{Schedule: s.Schedule, Table: s.table, Excluded: s.excluded, Now: p.node.Clocks().NowAt(shard)}
	if len(state.state) > 0 && state.life == s.Life {
		was, err := schedule.Decode(s.Name, state.state)
		if err != nil {
			return false, store.ErrBadCursor
		}
		r.Resume(was, state.now, state.wake)
	}
	isAudience := s.Audience != nil
	made, took, more := r.Play(p.From, p.To, p.size-len(p.found), p.steps)
	p.steps -= took
	for _, run := range made {
		p.found = append(p.found, PlannedRun{Schedule: s.Name, Audience: isAudience, Rehearsed: run})
	}
	if !more {
		return len(p.found) >= p.size || p.steps <= 0, nil
	}
	left, now, wake := r.State()
	at.life, at.now, at.wake = s.Life, now, wake
	at.state, err = schedule.Encode(left)
	return true, err
}
