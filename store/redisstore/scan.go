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

// position is where a walk of a hash or set goes on: a cursor of HSCAN or ZSCAN, and the server that
// gave it. The order of these commands depends on a seed that each process of Redis draws, so a cursor
// says nothing to a server that was restarted or took over: there the walk begins anew, which repeats
// what it has seen and skips nothing.
type position struct {
	server string // the first digits of its run id; empty: it did not say
	at     string // digits
	had    string // of the step at the cursor, see scan.lua; empty: nothing
}

// serverDigits is how much of a run id a position has.
const serverDigits = 8

func (p position) String() string {
	if p.had != "" {
		return p.server + "@" + p.at + ":" + p.had
	}
	return p.server + "@" + p.at
}

// parsePosition reads a cursor; the empty one is the beginning. One that names no server, as those of
// former versions (digits, and perhaps a colon and a field), begins anew.
func parsePosition(cursor string) (position, error) {
	if cursor == "" {
		return position{at: "0"}, nil
	}
	server, rest, named := strings.Cut(cursor, "@")
	if named = named && len(server) <= serverDigits && !strings.Contains(server, ":"); !named {
		rest = cursor
	}
	at, had, _ := strings.Cut(rest, ":")
	if _, err := strconv.ParseUint(at, 10, 64); err != nil {
		return position{}, fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	if !named {
		return position{at: "0"}, nil
	}
	return position{server, at, had}, nil
}

// walk asks for a page of a key from a cursor on, of the server that gave the cursor, or else of the
// beginning. ask returns where the page after it begins; its server is not looked at.
func (s *core) walk(ctx context.Context, key, cursor string, ask func(from position) (after position, err error)) (next string, err error) {
	from, err := parsePosition(cursor)
	if err != nil {
		return "", err
	}
	for {
		number, server := s.whoHas(ctx, key)
		if from.server != server {
			from = position{server: server, at: "0"} // it has an order of its own
		}
		after, err := ask(from)
		if err != nil {
			return "", err
		}
		if now, server := s.whoHas(ctx, key); now != number && server != "" {
			from.server = "" // another one may have answered
			continue
		}
		if after.at == "0" && after.had == "" {
			return "", nil
		}
		after.server = server
		return after.String(), nil
	}
}

// whoHas returns the server that has a key: its number for clients, and its name in cursors.
func (s *core) whoHas(ctx context.Context, key string) (number uint64, server string) {
	number = s.conn.Server(ctx, key)
	id := s.conn.RunID(number)
	return number, id[:min(serverDigits, len(id))]
}

// scanBytes returns a page of a hash that ends once it has about store.MaxBodies of values,
// which are left out unless they are asked for. match are patterns of fields, none for all.
func (s *core) scanBytes(ctx context.Context, key, cursor string, limit int, values bool, match ...any) (fields []field, next string, err error) {
	next, err = s.walk(ctx, key, cursor, func(from position) (after position, err error) {
		v, err := s.conn.Run(ctx, s.lua.scan, []string{key}, append([]any{from.at, min(max(limit, 1), maxItems), bit(values), from.had}, match...))
		if err != nil {
			return after, conn.ReadError("scan", err)
		}
		all := texts(v)
		if len(all) < 2 {
			return after, conn.ReadError("scan", conn.ErrReply)
		}
		fields = fields[:0]
		step := 1 + bit(values)
		for i := 2; i+step <= len(all); i += step {
			if all[i] != guard {
				fields = append(fields, field{all[i], all[i+step-1]})
			}
		}
		return position{at: all[0], had: all[1]}, nil
	})
	return fields, next, err
}

// scan returns about limit fields of a hash, and more only when Redis has kept
// so many in one slot or in a list.
func (s *core) scan(ctx context.Context, key, cursor string, limit int) (fields []field, next string, err error) {
	limit = max(limit, 1)
	next, err = s.walk(ctx, key, cursor, func(from position) (after position, err error) {
		fields, after = fields[:0], from
		for {
			flat, next, err := s.scanOnce(ctx, "hscan", key, after.at, max(1, (limit-len(fields))/2))
			if err != nil {
				return after, err
			}
			page := make([]field, 0, len(flat)/2)
			for i := 0; i+1 < len(flat); i += 2 {
				if flat[i] != guard {
					page = append(page, field{flat[i], flat[i+1]})
				}
			}
			if len(fields) > 0 && len(fields)+len(page) > limit {
				return after, nil // this page is the next one's
			}
			fields = append(fields, page...)
			if after.at = next; next == "0" || len(fields) >= limit-limit/4 {
				return after, nil
			}
		}
	})
	return fields, next, err
}

// scanSet returns a page of the members of an ordered set.
func (s *core) scanSet(ctx context.Context, key, cursor string, limit int) (fields []field, next string, err error) {
	next, err = s.walk(ctx, key, cursor, func(from position) (after position, err error) {
		flat, next, err := s.scanOnce(ctx, "zscan", key, from.at, max(limit, 1))
		if err != nil {
			return after, err
		}
		fields = fields[:0]
		for i := 0; i+1 < len(flat); i += 2 {
			if flat[i] != guard {
				fields = append(fields, field{name: flat[i]})
			}
		}
		return position{at: next}, nil
	})
	return fields, next, err
}

// scanOnce sends one HSCAN or ZSCAN.
func (s *core) scanOnce(ctx context.Context, name, key, at string, count int) (flat []string, after string, err error) {
	from, _ := strconv.ParseUint(at, 10, 64) // a position has digits
	cmd := redis.NewScanCmd(ctx, nil, name, key, from, "count", count)
	if err := s.conn.Send(ctx, key, cmd); err != nil {
		return nil, "", conn.ReadError("scan", err)
	}
	flat, next := cmd.Val()
	return flat, strconv.FormatUint(next, 10), nil
}
