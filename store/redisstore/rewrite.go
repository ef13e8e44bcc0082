package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // it tells values apart; nobody gains by two that are alike
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// rewriter is store.Rewriter: values of hashes are read, and written where they still are as they were read.
type rewriter struct{ *core }

// written are the hashes with something that users wrote, and how a value of each is written anew.
var written = [...]struct {
	key  int
	anew func(r store.Rewrite, f field) (value string, changed bool)
}{
	{dataKey, rewriteRecord}, {notesKey, rewriteNote}, {historyKey, rewriteHistory},
	{tellsKey, rewriteJournal}, {cellsKey, rewriteCell}, {partsKey, rewriteCell},
}

// rewriteTries bounds how often fields are read again that others change all the time.
const rewriteTries = 10

// Rewrite implements store.Rewriter. The cursor is the number of a hash in written and the cursor of Redis there.
func (s *rewriter) Rewrite(ctx context.Context, shard store.Shard, r store.Rewrite, cursor string, limit int) (next string, err error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	step, position, err := parseRewriteCursor(cursor)
	if err != nil {
		return "", err
	}
	key := s.keys(shard)[written[step].key]
	fields, next, err := s.scanBytes(ctx, key, position, limit, true)
	if err != nil {
		return "", err
	}
	for try := 0; len(fields) > 0; try++ {
		if try == rewriteTries {
			return "", fmt.Errorf("%w: rewrite: fields of %s change all the time", store.ErrUnavailable, key)
		}
		if fields, err = s.rewrite(ctx, key, step, r, fields); err != nil {
			return "", err
		}
	}
	if next == "" {
		if step++; step == len(written) {
			return "", nil
		}
	}
	return fmt.Sprintf("%d:%s", step, next), nil
}

func parseRewriteCursor(cursor string) (step int, position string, err error) {
	if cursor == "" {
		return 0, "", nil
	}
	first, position, found := strings.Cut(cursor, ":")
	step, err = strconv.Atoi(first)
	if !found || err != nil || step < 0 || step >= len(written) {
		return 0, "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	return step, position, nil
}

// rewrite writes fields anew, and returns those that somebody else had changed, as they are then.
func (s *rewriter) rewrite(ctx context.Context, key string, step int, r store.Rewrite, fields []field) ([]field, error) {
	argv, bytes := []any(nil), 0
	var again []string
	flush := func() error {
		if len(argv) == 0 {
			return nil
		}
		v, err := s.conn.Run(ctx, s.lua.rewrite, []string{key}, argv)
		if err != nil {
			return conn.WriteError("rewrite", err)
		}
		again = append(again, texts(v)...)
		argv, bytes = nil, 0
		return nil
	}
	for _, f := range fields {
		value, changed := written[step].anew(r, f)
		if !changed {
			continue
		}
		sum := sha1.Sum([]byte(f.value)) //nolint:gosec // as above
		argv = append(argv, f.name, hex.EncodeToString(sum[:]), value)
		if bytes += len(value); len(argv) >= 3*maxItems || bytes >= store.MaxBodies {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return s.fields(ctx, key, again)
}

// fields reads fields of a hash, without those that are gone.
func (s *rewriter) fields(ctx context.Context, key string, names []string) (fields []field, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	args := []any{"hmget", key}
	for _, name := range names {
		args = append(args, name)
	}
	cmd := redis.NewSliceCmd(ctx, args...)
	if err := s.conn.Send(ctx, key, cmd); err != nil {
		return nil, conn.ReadError("rewrite", err)
	}
	for i, v := range cmd.Val() {
		if value, there := v.(string); there {
			fields = append(fields, field{names[i], value})
		}
	}
	return fields, nil
}

// What cannot be read is for others to repair.

func rewriteRecord(r store.Rewrite, f field) (string, bool) {
	var t store.Task
	if decodeRecord(f.value, &t) != nil || !r.Task(&t) {
		return "", false
	}
	b, err := appendRecord(nil, &t)
	return string(b), err == nil
}

func rewriteNote(r store.Rewrite, f field) (string, bool) {
	if len(f.value) <= noteSize {
		return "", false
	}
	text, changed := r.Value([]byte(f.value[noteSize:]))
	return f.value[:noteSize] + string(text), changed
}

// rewriteHistory writes errors and the result anew of what remember.lua wrote.
func rewriteHistory(r store.Rewrite, f field) (value string, changed bool) {
	var out []byte
	for s := f.value; len(s) > 0; {
		n := lengthSize
		if len(s) >= lengthSize {
			n += int(binary.BigEndian.Uint32([]byte(s[:lengthSize])))
		}
		if n <= lengthSize || n > len(s) {
			return "", false
		}
		part := s[lengthSize:n]
		at := 1 // where the result begins
		if part[0] != 0 {
			if len(part) < attemptSize {
				return "", false
			}
			at = attemptSize + int(binary.BigEndian.Uint16([]byte(part[attemptSize-2:attemptSize])))
		}
		if at > len(part) {
			return "", false
		}
		if other, is := r.Value([]byte(part[at:])); is {
			part, changed = part[:at]+string(other), true
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(part))), part...)
		s = s[n:]
	}
	return string(out), changed
}

// rewriteJournal writes what a name returned anew. The other fields of the hash name tasks, cells and names.
func rewriteJournal(r store.Rewrite, f field) (string, bool) {
	if len(f.name) < 2 || f.name[0] != journalMark || len(f.name) <= 2+int(f.name[1]) {
		return "", false
	}
	var e store.JournalEntry
	record.DecodeKept([]byte(f.value), &e)
	if !r.Entry(&e) {
		return "", false
	}
	return string(record.AppendKept(nil, e.Kept, &e)), true
}

func rewriteCell(r store.Rewrite, f field) (string, bool) {
	body := len(f.value)
	if c := decodeCell(store.CellID(f.name), f.value); c.Version > 0 {
		body -= len(c.Body)
	}
	other, changed := r.Value([]byte(f.value[body:]))
	return f.value[:body] + string(other), changed
}
