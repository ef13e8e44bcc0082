package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// registry is store.Registry: a hash for each kind, of records with their version before
// their value, and a counter of changes.
type registry struct{ *core }

const (
	registryTag = "ddq:{registry}:"
	changesKey  = registryTag + "changes"
)

func recordsKey(kind string) string { return registryTag + "kind:" + kind }

// PutRecord implements store.Registry.
func (s *registry) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if err := errors.Join(s.enter(ctx), r.Check()); err != nil {
		return 0, err
	}
	v, err := s.conn.Run(ctx, s.lua.putRecord, []string{changesKey, recordsKey(r.Kind)}, []any{r.Name, r.Version, r.Value, store.MaxRecords})
	if err != nil {
		return 0, conn.WriteError("put record", err)
	}
	switch n := number(v); n {
	case 0:
		return 0, store.ErrVersion
	case -1:
		return 0, store.ErrRegistryFull
	default:
		return n, nil
	}
}

// DeleteRecord implements store.Registry.
func (s *registry) DeleteRecord(ctx context.Context, kind, name string, version int64) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	v, err := s.conn.Run(ctx, s.lua.deleteRecord, []string{changesKey, recordsKey(kind)}, []any{name, version})
	if err != nil {
		return conn.WriteError("delete record", err)
	}
	if number(v) == 0 {
		return store.ErrVersion
	}
	return nil
}

// Records implements store.Registry.
func (s *registry) Records(ctx context.Context, kind string) ([]store.Record, int64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	v, err := s.conn.Run(ctx, s.lua.readRecords, []string{changesKey, recordsKey(kind)}, nil)
	if err != nil {
		return nil, 0, conn.ReadError("read records", err)
	}
	reply, _ := v.([]any)
	if len(reply)%2 == 0 {
		return nil, 0, fmt.Errorf("read records: %d values in the answer", len(reply))
	}
	change, err := strconv.ParseInt(fmt.Sprint(reply[0]), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("read records: %w", err)
	}
	var all []store.Record
	for i := 1; i < len(reply); i += 2 {
		name, _ := reply[i].(string)
		stored, _ := reply[i+1].(string)
		version, value, _ := strings.Cut(stored, ":")
		n, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			return nil, 0, fmt.Errorf("record %q: %w", name, err)
		}
		all = append(all, store.Record{Kind: kind, Name: name, Version: n, Value: []byte(value)})
	}
	slices.SortFunc(all, func(a, b store.Record) int { return strings.Compare(a.Name, b.Name) })
	return all, change, nil
}

// RegistryChange implements store.Registry.
func (s *registry) RegistryChange(ctx context.Context) (int64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	get := redis.NewIntCmd(ctx, "get", changesKey)
	switch err := s.conn.Send(ctx, changesKey, get); {
	case errors.Is(err, redis.Nil):
		return 0, nil
	case err != nil:
		return 0, conn.ReadError("registry change", err)
	}
	return get.Val(), nil
}
