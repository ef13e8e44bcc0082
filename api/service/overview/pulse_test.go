package overview_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/overview"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

// sums are the events of a window.
func sums(w *pulse.Window) (t pulse.Tally) {
	for e, counts := range w.Counts {
		for _, n := range counts {
			t[e] += int(n)
		}
	}
	return t
}

// Tasks are enqueued at one node, and go to a worker of another one.
func TestWhatHappenedIsKnownOfAllNodes(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		if v := get(t, f.Nodes["a"]); len(v.Topics) != 0 {
			t.Errorf("topics before there are any: %v", v.Topics)
		}
		enqueue(t, f.Nodes["a"], "mail", 100, 0)
		enqueue(t, f.Nodes["a"], "sms", 1, time.Hour)
		time.Sleep(3 * time.Second)
		stream := servicetest.Subscribe(t, f.Nodes["b"].Sys, "mail", 100)
		time.Sleep(time.Second)
		for i, d := range stream.Take() {
			if i < 90 {
				stream.Settle(subscription.SettleAck, d)
			} else {
				stream.Settle(subscription.SettleNack, d)
			}
		}
		time.Sleep(6 * time.Second)
		want := pulse.Tally{pulse.Enqueued: 100, pulse.Delivered: 100, pulse.Acked: 90, pulse.Failed: 10}
		for name, at := range f.Nodes {
			v := get(t, at)
			mail, sms := v.Topics[0].Pulse, v.Topics[1].Pulse
			if got := sums(&mail.Minute); got != want || v.Missed {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			if p50, most := mail.Minute.LateAt(50), mail.Minute.Max; p50 < 2800 || p50 > most || most > 3500 {
				t.Errorf("%s: half is late by %d ms, all by %d at most", name, p50, most)
			}
			if got := sums(&sms.Minute); got != (pulse.Tally{pulse.Enqueued: 1}) {
				t.Errorf("%s: of the other topic %v", name, got)
			}
		}
		time.Sleep(time.Minute)
		mail := get(t, f.Nodes["b"]).Topics[0].Pulse
		if got := sums(&mail.Hour); got != want || !sums(&mail.Minute).Empty() {
			t.Errorf("a minute later: in the hour %v, in the minute %v", got, sums(&mail.Minute))
		}
		time.Sleep(time.Hour + 2*time.Minute)
		if p := get(t, f.Nodes["b"]).Topics[1].Pulse; p != nil {
			t.Errorf("an hour later: %v", sums(&p.Hour))
		}
	})
}

// Another topic of the same name begins with nothing, at every node that had the one before open.
func TestADeletedTopicHasNoPulse(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		enqueue(t, f.Nodes["a"], "mail", 5, time.Hour)
		enqueue(t, f.Nodes["b"], "mail", 5, time.Minute)
		time.Sleep(6 * time.Second)
		if err := f.Nodes["a"].Sys.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		enqueue(t, f.Nodes["b"], "mail", 1, time.Hour)
		time.Sleep(6 * time.Second)
		if got := sums(&get(t, f.Nodes["a"]).Topics[0].Pulse.Minute); got != (pulse.Tally{pulse.Enqueued: 1}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestOneTopicIsShownAlone(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		for _, topic := range []string{"mail", "sms"} {
			enqueue(t, f.Nodes["a"], topic, 1, time.Hour)
		}
		overviews := f.Nodes["a"].Sys.Overviews
		v, err := overviews.Get(t.Context(), overview.Query{Topic: "sms", Size: 1})
		if err != nil || len(v.Topics) != 1 || v.Topics[0].Name != "sms" || v.Next != "" {
			t.Errorf("got %+v, %v", v, err)
		}
		if _, err := overviews.Get(t.Context(), overview.Query{Topic: "push"}); servicetest.ReasonOf(err) != "NO_TOPIC" {
			t.Errorf("a topic that is not there: %v", err)
		}
	})
}

// Fifty watchers that come at different times get one each second, of which each is read once.
func TestWatchersShareWhatIsRead(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		enqueue(t, f.Nodes["a"], "mail", 1, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		seen, read := make([]int, 50), make(map[*overview.Overview]bool)
		passed, ended := make(chan *overview.Overview), make(chan error)
		for i := range seen {
			time.Sleep(7 * time.Millisecond)
			go func() {
				ended <- f.Nodes["a"].Sys.Overviews.Watch(ctx, overview.Query{}, func(v *overview.Overview) error {
					seen[i]++
					passed <- v
					return nil
				})
			}()
		}
		over := time.After(10 * time.Second)
		for done := false; !done; {
			select {
			case v := <-passed:
				read[v] = true
			case <-over:
				done = true
			}
		}
		cancel()
		go func() {
			for range passed { //nolint:revive // until all have ended
			}
		}()
		for range seen {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		close(passed)
		synctest.Wait()
		if len(read) > 12 {
			t.Errorf("%d were read in 10 s", len(read))
		}
		for i, n := range seen {
			if n < 9 || n > 12 {
				t.Errorf("watcher %d got %d", i, n)
			}
		}
	})
}
