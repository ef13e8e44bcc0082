package audiences

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/store"
)

// Get returns a recipient.
func (s *Audiences) Get(ctx context.Context, name, id string) (Recipient, error) {
	a, err := s.find(ctx, name)
	if err != nil {
		return Recipient{}, err
	}
	if id == "" || len(id) > audience.MaxID {
		return Recipient{}, badRecipient("id", "has no recipient")
	}
	n, _ := audience.Locate(id, a.Shards)
	v, err := s.Leaves(ctx, a, n, func(d *audience.Directory) []store.CellID { return d.Covering([]string{id}) })
	if err != nil {
		return Recipient{}, asProblem(name, err)
	}
	if r := v.Find(id); r != nil {
		return shown(a, r), nil
	}
	return Recipient{}, noRecipient(id)
}

// List pages through the recipients of an audience, of one zone unless that is empty, in the
// order in which they lie. One that changes its zone meanwhile may be in two pages or in none.
func (s *Audiences) List(ctx context.Context, name, zone string, size int, token string) (page []Recipient, next string, err error) {
	a, err := s.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	size = min(cmp.Or(size, 100), s.limits.PageSize)
	at, ok := parsePosition(token)
	if !ok || at.shard >= a.Shards {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	for at.shard < a.Shards && len(page) < size {
		var some []Recipient
		if some, at, err = s.pageOf(ctx, a, zone, at, size-len(page)); err != nil {
			return nil, "", asProblem(name, err)
		}
		page = append(page, some...)
	}
	if at.shard < a.Shards {
		next = at.token()
	}
	return page, next, nil
}

// pageOf returns recipients of one shard from a position on, about as many as wanted, and the
// position behind them.
func (s *Audiences) pageOf(ctx context.Context, a *audience.Audience, zone string, at position, want int) ([]Recipient, position, error) {
	if zone != "" && at.Zone < zone {
		at.Cursor = audience.Cursor{Zone: zone}
	}
	var ids []store.CellID
	var behind audience.Cursor
	var more bool
	v, err := s.Leaves(ctx, a, at.shard, func(d *audience.Directory) []store.CellID {
		ids, behind, more = d.Page(at.Cursor, max(1, want/64))
		return ids
	})
	if err != nil {
		return nil, at, err
	}
	var page []Recipient
	for _, id := range ids {
		for e := range v.Leaves[id].From(at.Cursor) {
			switch {
			case zone != "" && e.Zone != zone:
				return page, position{shard: at.shard + 1}, nil
			case len(page) >= want && e.At != at.last:
				return page, position{shard: at.shard, Cursor: audience.Cursor{Zone: e.Zone, At: e.At}}, nil
			}
			at.last = e.At
			page = append(page, shown(a, &e.Recipient))
		}
	}
	if !more {
		return page, position{shard: at.shard + 1}, nil
	}
	return page, position{shard: at.shard, Cursor: behind}, nil
}

// position is one in the order of all recipients of an audience.
type position struct {
	shard int
	audience.Cursor
	last audience.Position // of the page so far
}

const recipientsPage = "recipients:"

func (p position) token() string {
	return pagetoken.Make(recipientsPage, fmt.Sprintf("%d:%x:%s", p.shard, uint64(p.At), p.Zone))
}

func parsePosition(token string) (p position, ok bool) {
	text, ok := pagetoken.Position(recipientsPage, token)
	if text == "" {
		return p, ok
	}
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return p, false
	}
	shard, err := strconv.ParseUint(parts[0], 10, 16)
	at, err2 := strconv.ParseUint(parts[1], 16, 64)
	p.shard, p.At, p.Zone = int(shard), audience.Position(at), parts[2]
	return p, err == nil && err2 == nil
}
