package loglevel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

func TestALevelIsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		levels := Of(slog.New(slog.NewTextHandler(&out, nil)))
		log := levels.Logger().With("node", "a").WithGroup("g")
		said := func(level slog.Level) bool {
			out.Reset()
			log.Log(t.Context(), level, "said")
			return out.Len() > 0
		}
		levels.Set(slog.LevelError, time.Now().Add(time.Hour))
		if said(slog.LevelWarn) || !said(slog.LevelError) {
			t.Error("less is not logged for a while")
		}
		levels.Set(slog.LevelDebug, time.Now().Add(time.Minute))
		if !said(slog.LevelDebug) {
			t.Error("more is not logged for a while")
		}
		time.Sleep(time.Minute)
		if said(slog.LevelDebug) || !said(slog.LevelInfo) {
			t.Error("it goes on")
		}
		if levels.node.Load() != nil {
			t.Error("it is not forgotten")
		}
		if Of(levels.Logger()) != levels {
			t.Error("a logger has other levels than it was made with")
		}
	})
}

func TestTopicsAreForgottenWhenTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		levels := Of(slog.New(slog.DiscardHandler))
		for i := range MostTopics {
			if err := levels.SetTopic(fmt.Sprint(i), time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		if err := levels.SetTopic("0", time.Now().Add(time.Second)); err != nil {
			t.Errorf("of a topic that is on: %v", err)
		}
		if err := levels.SetTopic("more", time.Now().Add(time.Hour)); !errors.Is(err, ErrTooManyTopics) {
			t.Errorf("of one too many: %v", err)
		}
		time.Sleep(time.Second)
		if levels.ofTasks(t.Context(), "0") || !levels.ofTasks(t.Context(), "1") {
			t.Error("the first has not ended alone")
		}
		time.Sleep(time.Minute)
		if levels.ofTasks(t.Context(), "1") || levels.topics.Load() != nil {
			t.Error("they are not forgotten")
		}
	})
}

func TestEachThingThatHappensToATaskIsALine(t *testing.T) {
	var out bytes.Buffer
	levels := Of(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})))
	at := store.Shard{Topic: "mail", N: 2}
	tasks := levels.Tasks("n1", func() store.Millis { return 5000 })
	st := tasks.Store(memstore.New())
	session := store.Session{Node: "n1", Start: store.NewToken(), TTL: time.Minute, Begin: true}
	_, err := st.RenewSession(t.Context(), session)
	_, fence, claimed := st.Claim(t.Context(), at, session)
	if err := errors.Join(err, claimed, levels.SetTopic("mail", time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	hold := store.Hold{ID: "a", Token: store.NewToken(), Visibility: time.Minute, Worker: "w"}
	nack := store.Nack{ID: "a", Token: hold.Token, Outcome: store.OutcomeFailed, Reason: store.ReasonPermanent}
	_, _, added := st.Add(t.Context(), at, []*store.Task{{ID: "a", Due: 1000}})
	_, _, edited := st.Edit(t.Context(), at, []store.Edit{{ID: "a", Due: 2000}})
	_, _, held := st.Hold(t.Context(), at, fence, []store.Hold{hold})
	_, _, nacked := st.Nack(t.Context(), at, []store.Nack{nack, nack})
	if err := errors.Join(added, edited, held, nacked); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
msg="task enqueued" topic=mail shard=2 task=a node=n1 due=1970-01-01T00:00:01.000Z
msg="task moved" topic=mail shard=2 task=a node=n1 due=1970-01-01T00:00:02.000Z
msg="task held" topic=mail shard=2 task=a node=n1 attempt=1 worker=w due=1970-01-01T00:00:02.000Z late=3s
msg="task settled" topic=mail shard=2 task=a node=n1 attempt=1 outcome=failed`)
	if got := strings.TrimSpace(out.String()); got != want {
		t.Errorf("lines are\n%s\nwant\n%s", got, want)
	}
}

// BenchmarkOff is what a batch costs while nothing is asked for.
func BenchmarkOff(b *testing.B) {
	levels := Of(slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if levels.ofTasks(ctx, "mail") {
			b.Fatal("on")
		}
	}
}
