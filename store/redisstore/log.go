package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

var errLogEntry = errors.New("read log: malformed entry")

// Watch implements store.Log.
func (s *changeLog) Watch(ctx context.Context, shard store.Shard, w store.Watching) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	a := newArgs(2, 32)
	a.wait(w.Retention)
	a.int(int64(w.Max))
	if _, err := s.conn.Run(ctx, s.lua.watch, s.keys(shard).pick(ownerKey, logKey), a.values()); err != nil {
		return conn.WriteError("watch", err)
	}
	return nil
}

// Changes implements store.Log. Where changes are waited for to reach replicas, what is
// told of them is, too: a failover undoes what only the primary has, and gives its positions to
// other changes.
func (s *changeLog) Changes(ctx context.Context, reads []store.LogRead) ([]store.LogPage, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if len(reads) == 0 {
		return nil, nil
	}
	keys := make([][]string, len(reads))
	for i, r := range reads {
		keys[i] = s.keys(r.Shard).pick(ownerKey, logKey)
	}
	replies, err := s.conn.RunEachWith(ctx, s.lua.changes, keys, func(i int) []any { return logArgs(reads[i]) })
	if err != nil {
		return nil, conn.ReadError("changes", err)
	}
	pages := make([]store.LogPage, len(reads))
	for i, v := range replies {
		if pages[i], err = logPage(reads[i], list(v)); err != nil {
			return nil, conn.ReadError("changes", err)
		}
	}
	if s.conn.Replicas() > 0 {
		err = s.waitForPages(ctx, reads, keys, pages)
	}
	return pages, err
}

func logArgs(r store.LogRead) []any { return []any{r.After, max(r.Limit, 0)} }

// waitForPages reads the pages with something new once more, and returns when replicas have
// what is in them.
func (s *changeLog) waitForPages(ctx context.Context, reads []store.LogRead, keys [][]string, pages []store.LogPage) error {
	errs := make([]error, len(reads))
	var wg sync.WaitGroup
	for i, r := range reads {
		if pages[i].Last <= max(r.After, 0) {
			continue
		}
		wg.Go(func() {
			v, err := s.conn.Run(ctx, s.lua.changesWaited, keys[i], logArgs(r))
			if err == nil {
				pages[i], err = logPage(r, list(v))
			}
			errs[i] = err
		})
	}
	wg.Wait()
	switch err := errors.Join(errs...); {
	case errors.Is(err, store.ErrUnknown):
		return fmt.Errorf("changes: %w: not all replicas that are waited for have them", store.ErrUnavailable)
	case err != nil:
		return conn.ReadError("changes", err)
	}
	return nil
}

// logPage makes a page of what the script says.
func logPage(r store.LogRead, v []any) (store.LogPage, error) {
	if len(v) != 3 {
		return store.LogPage{}, fmt.Errorf("%w: %.200v", conn.ErrReply, v)
	}
	page := store.LogPage{Watched: number(v[0]) == 1, Last: number(v[1])}
	var all []store.Change
	for _, e := range list(v[2]) {
		var err error
		if all, err = appendEntry(all, list(e)); err != nil {
			return page, err
		}
	}
	after := r.After
	first := page.Last + 1 // the oldest that is kept behind after
	if len(all) > 0 {
		first = all[0].Position
	}
	if after == store.FromOldest {
		after = first - 1
	}
	if first > after+1 || after > page.Last {
		page.Gap, page.Next = true, page.Last
		return page, nil
	}
	all = all[min(int(after+1-first), len(all)):] // an entry may have begun before
	page.Changes = all[:min(max(r.Limit, 0), len(all))]
	page.Next = after + int64(len(page.Changes))
	return page, nil
}

// appendEntry reads an entry of the stream: its id, and fields and values.
func appendEntry(all []store.Change, e []any) ([]store.Change, error) {
	last, _, _ := strings.Cut(text(at(e, 0)), "-")
	position, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return all, errLogEntry
	}
	return record.DecodeLogEntry(all, []byte(text(at(list(at(e, 1)), 1))), position, func(id []byte) string { return parseID(string(id)) })
}

// TrimLog implements store.Retention.
func (s *retention) TrimLog(ctx context.Context, shard store.Shard, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	v, err := s.conn.Run(ctx, s.lua.trimLog, s.keys(shard).pick(ownerKey, logKey), []any{max(limit, 0)})
	if err != nil {
		return 0, conn.WriteError("trim log", err)
	}
	return int(number(v)), nil
}
