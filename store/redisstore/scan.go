package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// field is one entry of a hash.
type field struct{ name, value string }

// scanBytes returns a page of a hash that ends once it has about store.MaxBodies of values,
// which are left out unless they are asked for. Its cursor is that of Redis and, of a page that ended
// within one step of it, the last field. match are patterns of fields, none for all.
func (s *core) scanBytes(ctx context.Context, key, cursor string, limit int, values bool, match ...any) (fields []field, next string, err error) {
	position, last, _ := strings.Cut(cursor, ":")
	at, err := parseScanCursor(position)
	if err != nil {
		return nil, "", err
	}
	v, err := s.conn.Run(ctx, s.lua.scan, []string{key}, append([]any{at, min(max(limit, 1), maxItems), bit(values), last}, match...))
	if err != nil {
		return nil, "", conn.ReadError("scan", err)
	}
	all := texts(v)
	step := 1 + bit(values)
	for i := 2; i+step <= len(all); i += step {
		if all[i] != guard {
			fields = append(fields, field{all[i], all[i+step-1]})
		}
	}
	switch next = all[0]; {
	case all[1] != "":
		next += ":" + all[1]
	case next == "0":
		next = ""
	}
	return fields, next, nil
}

// scan returns about limit fields of a hash, and more only when Redis has kept
// so many in one slot or in a list.
func (s *core) scan(ctx context.Context, key, cursor string, limit int) (fields []field, next string, err error) {
	at, err := parseScanCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = max(limit, 1)
	for {
		count := max(1, (limit-len(fields))/2)
		flat, after, err := s.scanOnce(ctx, "hscan", key, at, count)
		if err != nil {
			return nil, "", err
		}
		page := make([]field, 0, len(flat)/2)
		for i := 0; i+1 < len(flat); i += 2 {
			if flat[i] != guard {
				page = append(page, field{flat[i], flat[i+1]})
			}
		}
		if len(fields) > 0 && len(fields)+len(page) > limit {
			return fields, strconv.FormatUint(at, 10), nil // this page is the next one's
		}
		fields = append(fields, page...)
		if after == 0 {
			return fields, "", nil
		}
		if at = after; len(fields) >= limit-limit/4 {
			return fields, strconv.FormatUint(at, 10), nil
		}
	}
}

// scanOnce sends one HSCAN or ZSCAN.
func (s *core) scanOnce(ctx context.Context, name, key string, at uint64, count int) (flat []string, after uint64, err error) {
	cmd := redis.NewScanCmd(ctx, nil, name, key, at, "count", count)
	if err := s.conn.Send(ctx, key, cmd); err != nil {
		return nil, 0, conn.ReadError("scan", err)
	}
	flat, after = cmd.Val()
	return flat, after, nil
}

func parseScanCursor(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	at, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	return at, nil
}

// scanSet returns a page of the members of an ordered set.
func (s *core) scanSet(ctx context.Context, key, cursor string, limit int) (fields []field, next string, err error) {
	at, err := parseScanCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	flat, after, err := s.scanOnce(ctx, "zscan", key, at, max(limit, 1))
	if err != nil {
		return nil, "", err
	}
	for i := 0; i+1 < len(flat); i += 2 {
		if flat[i] != guard {
			fields = append(fields, field{name: flat[i]})
		}
	}
	if after != 0 {
		next = strconv.FormatUint(after, 10)
	}
	return fields, next, nil
}
