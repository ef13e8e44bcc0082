package ui_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// whatever is a server that answers every call with anything that the wire allows; the same to the
// same call.
type whatever struct {
	grpc.ClientConnInterface
	seed uint64
}

func (w whatever) Invoke(_ context.Context, method string, _, response any, _ ...grpc.CallOption) error {
	h := fnv.New64a()
	fmt.Fprint(h, method)
	r := rand.New(rand.NewPCG(w.seed, h.Sum64())) //nolint:gosec // it is to be repeated
	fill(r, response.(proto.Message).ProtoReflect(), 0)
	switch m := response.(type) {
	case *ddqv1.WhoAmIResponse:
		m.Grants = []*ddqv1.Grant{{Verbs: []string{"read", "enqueue", "operate", "admin"}[:r.IntN(5)], Namespace: "*", Topics: "*"}}
	case *ddqv1.GetOverviewResponse:
		for _, t := range m.Topics {
			t.Due = []int64{0, r.Int64N(1000), 1}
		}
	case *ddqv1.DueHistogramResponse:
		m.Counts = []int64{0, r.Int64N(1000), 1}
	}
	return nil
}

// NewStream answers with three messages, and no more.
func (w whatever) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &endless{ctx: ctx, seed: w.seed, left: 3}, nil
}

// endless is a stream of whatever.
type endless struct {
	grpc.ClientStream
	ctx  context.Context
	seed uint64
	left int
}

func (*endless) SendMsg(any) error { return nil }
func (*endless) CloseSend() error  { return nil }

func (e *endless) RecvMsg(m any) error {
	if e.left == 0 {
		<-e.ctx.Done()
		return e.ctx.Err()
	}
	e.left--
	fill(rand.New(rand.NewPCG(e.seed, uint64(e.left))), m.(proto.Message).ProtoReflect(), 0) //nolint:gosec // it is to be repeated
	return nil
}

// fill sets three of four fields of a message.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap() || depth > 5 || r.IntN(4) == 0:
		case f.IsList() && f.Message() != nil:
			for range r.IntN(4) {
				fill(r, m.Mutable(f).List().AppendMutable().Message(), depth+1)
			}
		case f.IsList():
			for range r.IntN(4) {
				m.Mutable(f).List().Append(value(r, f))
			}
		case f.Message() != nil:
			fill(r, m.Mutable(f).Message(), depth+1)
		default:
			m.Set(f, value(r, f))
		}
	}
}

// free are texts that no rule of names bounds.
var free = map[protoreflect.Name]bool{"error": true, "last_error": true, "message": true, "client": true, "note": true, "warnings": true, "worker": true}

// wide are the bytes in which there may be anything, of any length: others the server has made.
var wide = map[protoreflect.Name]bool{"payload": true, "result": true, "value": true, "input": true, "recipient_data": true}

func value(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := []int64{0, 1, 2, 999, 61_000, 1_234_567_890, -5}[r.IntN(7)]
	switch f.Kind() {
	case protoreflect.StringKind:
		if free[f.Name()] && r.IntN(8) == 0 {
			return protoreflect.ValueOfString(long)
		}
		return protoreflect.ValueOfString(someText(r))
	case protoreflect.BytesKind:
		if wide[f.Name()] && r.IntN(8) == 0 {
			return protoreflect.ValueOfBytes([]byte(long))
		}
		return protoreflect.ValueOfBytes([]byte(someText(r)))
	case protoreflect.EnumKind:
		all := f.Enum().Values()
		return protoreflect.ValueOfEnum(all.Get(r.IntN(all.Len())).Number())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n > 1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)) //nolint:gosec // they are small
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	}
	return f.Default()
}

func someText(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return []string{"", "mail", `{"a": [1]}`, "\xff", "\nx\r\n", "a\x00b", strings.Repeat("\x00", 300)}[r.IntN(7)]
	}
	return hostile[r.IntN(len(hostile))]
}

// nobody has to log in.
type nobody struct{ frame.Logins }

func (nobody) On() bool { return false }

// TestPagesStandAnyAnswer: every page keeps to what pages keep to, whatever the server has of what is
// on it, and whatever others wrote there.
func TestPagesStandAnyAnswer(t *testing.T) {
	for seed := range uint64(25) {
		pages := ui.New(whatever{seed: seed}, nobody{}, "", slog.New(slog.DiscardHandler))
		text := url.QueryEscape(hostile[int(seed)%len(hostile)]) //nolint:gosec // it is small
		for _, path := range []string{
			"", "?page=" + text, "topic?name=" + text, "tasks?topic=" + text + "&id=" + text, "task?topic=mail&id=" + text, "changes?topic=" + text, "changes?topic=mail", "operations?topic=" + text, "operation?topic=mail&id=" + text, "dead?topic=" + text + "&error=" + text, "dead/groups?topic=" + text,
			"schedules?topic=" + text, "schedule?topic=mail&name=" + text, "workflows?topic=" + text, "workflow?id=" + text, "due?topic=" + text, "due?from=2030-01-02T03:00&before=2030-01-02T04:00", "due?topic=mail", "nodes", "workers?topic=" + text + "&page=" + text, "shards?drain=" + text + "&topic=" + text, "settings",
			"shards/map", "loglevel", "namespace?name=" + text, "audit", "audit?outcome=done&resource=" + text, "audit?from=" + text, "shards?topic=" + text, "dryrun?topic=mail&name=" + text, "schedule/new?topic=" + text, "schedule/edit?topic=mail&name=" + text, "schedule/backfill?topic=mail&name=" + text + "&from=2026-01-01T00:00&to=2026-01-02T00:00",
		} {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ui.Prefix+path, nil))
			page, err := html.Parse(strings.NewReader(w.Body.String()))
			refused := (w.Code == http.StatusForbidden || w.Code == http.StatusBadRequest) && (strings.HasPrefix(path, "schedule/") || path == "loglevel" || strings.HasPrefix(path, "audit?")) // who may not, or a range that is yet to come
			if err != nil || w.Code != http.StatusOK && !refused {
				t.Fatalf("seed %d, %s: %d, %v\n%s", seed, path, w.Code, err, w.Body)
			}
			if w.Body.Len() > mostOfPage || strings.Contains(w.Body.String(), "\x00") {
				t.Errorf("seed %d, %s: %d bytes, or one that is no text", seed, path, w.Body.Len())
			}
			(&rig{T: t}).check(path, page)
			for _, n := range elements(page) {
				if n.Data == "img" || n.Data == "script" && attr(n, "src") != "/ui/static/ui.js" {
					t.Errorf("seed %d, %s: <%s> of a text", seed, path, n.Data)
				}
			}
		}
		pages.Close()
	}
}
