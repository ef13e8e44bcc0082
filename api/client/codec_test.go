package client

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// marking is a Codec that says where it was.
type marking struct{ fails error }

func (m marking) Encode(_ context.Context, topic string, payload []byte) (encoded, fingerprint []byte, err error) {
	return []byte(topic + ":" + string(payload)), append(make([]byte, 15), payload...), m.fails
}

func (m marking) Decode(_ context.Context, topic string, encoded []byte) ([]byte, error) {
	payload, ok := bytes.CutPrefix(encoded, []byte(topic+":"))
	if !ok {
		return nil, ErrUndecodable
	}
	return payload, m.fails
}

func TestPayloadsAreEncoded(t *testing.T) {
	for _, unary := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeServer{}
			c := start(t, f, Config{Codec: marking{}, Unary: unary})
			if _, err := c.Enqueue(t.Context(), Task{Topic: "mail", ID: "a", Payload: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			done, err := Task{Topic: "mail", ID: "c", Payload: []byte("z")}.Encoded(t.Context(), marking{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.EnqueueBatch(t.Context(), []Task{{Topic: "mail", ID: "b", Payload: []byte("y")}, done}); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for id, payload := range map[string]string{"a": "x", "b": "y", "c": "z"} {
				r := f.stored[id]
				if string(r.GetPayload()) != "mail:"+payload || !bytes.HasSuffix(r.GetPayloadFingerprint(), []byte(payload)) {
					t.Errorf("%s: sent %q, %q", id, r.GetPayload(), r.GetPayloadFingerprint())
				}
			}
		})
	}
}

func TestPayloadsThatCannotBeEncodedAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		away := errors.New("no keys")
		c := start(t, f, Config{Codec: marking{away}})
		if _, err := c.Enqueue(t.Context(), Task{Topic: "mail"}); !errors.Is(err, away) || !errors.Is(err, ErrInvalid) {
			t.Errorf("enqueue: %v", err)
		}
		results, err := c.EnqueueBatch(t.Context(), []Task{{Topic: "mail", ID: "a"}, {ID: "b"}})
		if !errors.Is(err, away) || !errors.Is(results[0].Err, away) || results[0].ID != "a" || !errors.Is(results[1].Err, ErrInvalid) {
			t.Errorf("batch: %v, %+v", err, results)
		}
		if _, err := c.UpdateTask(t.Context(), "mail", "a", Change{Payload: []byte("x")}); !errors.Is(err, away) {
			t.Errorf("edit: %v", err)
		}
		if _, err := c.UpdateTask(t.Context(), "", "a", Change{Payload: []byte("x")}); !errors.Is(err, ErrInvalid) {
			t.Errorf("edit in any topic: %v", err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.stored) != 0 || len(f.calls) != 0 || len(f.frames) != 0 {
			t.Errorf("sent %v, %v, %v", f.stored, f.calls, f.frames)
		}
	})
}

func TestPayloadOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, &fakeServer{}, Config{Codec: marking{}})
		if got, err := c.PayloadOf(t.Context(), Snapshot{Topic: "mail", Payload: []byte("mail:x")}); err != nil || string(got) != "x" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := c.PayloadOf(t.Context(), Snapshot{Topic: "sms", Payload: []byte("mail:x")}); !errors.Is(err, ErrUndecodable) {
			t.Errorf("of another topic: %v", err)
		}
		if got, err := start(t, &fakeServer{}, Config{}).PayloadOf(t.Context(), Snapshot{Payload: []byte("x")}); err != nil || string(got) != "x" {
			t.Errorf("without a codec: %q, %v", got, err)
		}
	})
}

// TestTemplatesAreNotSentByMistake: what schedules and workflows are made of is encoded when that is
// asked for, and refused when it is not.
func TestTemplatesAreNotSentByMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, &fakeServer{}, Config{Codec: marking{}})
		plain := Task{Payload: []byte("x")}
		schedules := map[string]Schedule{
			"a task":             {Topic: "t", Name: "s", Every: time.Hour, Task: plain},
			"a task of nothing":  {Topic: "t", Name: "s", Every: time.Hour},
			"a workflow":         {Topic: "t", Name: "s", Every: time.Hour, Workflow: &Workflow{Steps: []Step{{Name: "a", Task: plain}}}},
			"a child's step":     {Topic: "t", Name: "s", Every: time.Hour, Workflow: &Workflow{Steps: []Step{{Name: "a", Child: &Workflow{Steps: []Step{{Name: "b", Task: plain}}}}}}},
			"what undoes a step": {Topic: "t", Name: "s", Every: time.Hour, Workflow: &Workflow{Steps: []Step{{Name: "a", Wait: Wait{Delay: 1}, Undo: &plain}}}},
		}
		for name, s := range schedules {
			calls := map[string]func(Schedule) error{
				"put": func(s Schedule) error { _, err := c.PutSchedule(t.Context(), s); return err },
				"many": func(s Schedule) error {
					all, err := c.PutSchedules(t.Context(), []Schedule{s})
					return cmpErr(all, err)
				},
				"preview": func(s Schedule) error { _, err := c.PreviewSchedule(t.Context(), s, PreviewRange{}); return err },
			}
			if s.Workflow != nil {
				calls["submit"] = func(s Schedule) error {
					flow := *s.Workflow
					flow.Topic = "t"
					_, err := c.Submit(t.Context(), flow)
					return err
				}
			}
			sealed, err := s.Encoded(t.Context(), marking{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for call, f := range calls {
				if err := f(s); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Encoded") {
					t.Errorf("%s, %s: %v", call, name, err)
				}
				if err := f(sealed); errors.Is(err, ErrInvalid) { // the fake has no such calls
					t.Errorf("%s, %s, encoded: %v", call, name, err)
				}
			}
			w, e := sealed.wire()
			if e != nil {
				t.Fatal(e)
			}
			if again, e := scheduleOfWire(w); e != nil || !slices.Equal(again.GetTask().GetPayload(), w.GetTask().GetPayload()) {
				t.Errorf("%s, read and put: %v, %v", name, again, e)
			}
			if text := w.String(); strings.Contains(text, `"x"`) || w.GetTask().GetPayloadFingerprint() != nil || s.Workflow == nil && !bytes.HasPrefix(w.GetTask().GetPayload(), []byte("t:")) {
				t.Errorf("%s: sent %s", name, text)
			}
		}
		if string(schedules["a workflow"].Workflow.Steps[0].Task.Payload) != "x" {
			t.Error("Encoded changed what it was given")
		}
	})
}

// scheduleOfWire reads a schedule, and writes it again.
func scheduleOfWire(w *ddqv1.Schedule) (*ddqv1.Schedule, *Error) {
	s := scheduleFrom(w)
	return (&caller{cfg: Config{Codec: marking{}}}).scheduleWire(&s)
}

func cmpErr(all []SchedulePutResult, err error) error {
	if err != nil {
		return err
	}
	return all[0].Err
}
