package schedules_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// ofBefore is a store in which schedules lie as a version of before fields were checked has put them.
type ofBefore struct {
	*memstore.Store
	on bool
}

func (o *ofBefore) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	for _, c := range commits {
		for i := range c.Puts {
			read, err := schedule.Decode("any", c.Puts[i].Body)
			if !o.on || err != nil {
				continue
			}
			e := &read.Timetable.Entries[0]
			e.Legacy, e.Cron = true, strings.Replace(e.Cron, "0 10 * * *", "0 10 * * ? *", 1)
			if c.Puts[i].Body, err = schedule.Encode(read); err != nil {
				return store.Stamp{}, nil, err
			}
		}
	}
	return o.Store.Commit(ctx, s, f, commits)
}

// TestStoredSchedulesKeepTheirTimes has expressions that are refused or read otherwise by now.
func TestStoredSchedulesKeepTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &ofBefore{Store: memstore.New(), on: true}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		const hashed, days, refused = "H H * * *", "0 0 */2 * 1", "0 10 * * ? *"
		put(t, s, scheduled("nightly", cron(hashed)))
		put(t, s, scheduled("days", cron(days)))
		put(t, s, scheduled("refused", cron("0 10 * * *")))
		st.on = false
		for _, name := range []string{"nightly", "days", "refused"} { // they were put with the times of the rules of now
			if _, err := s.Schedules.Pause(t.Context(), "report", name, "", ""); err != nil {
				t.Error(err)
			}
			if _, err := s.Schedules.Resume(t.Context(), "report", name, "", ""); err != nil {
				t.Error(err)
			}
		}

		start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of each bubble
		for name, want := range map[string]time.Time{"nightly": start.Add(2*time.Hour + 38*time.Minute), "days": start.AddDate(0, 0, 2), "refused": start.Add(10 * time.Minute)} {
			if next := get(t, s, name).Next; !next.Time().Equal(want) {
				t.Errorf("%s: next is %v, want %v", name, next.Time(), want)
			}
		}
		w := handsFor(t, s)
		for i := range 2 { // in each hour
			d, _ := w.next()
			if want := start.Add(time.Duration(i)*time.Hour + 10*time.Minute); d.Task.RunOf.Schedule != "refused" || !d.Task.RunOf.Occurrence.Time().Equal(want) {
				t.Errorf("a run of %s for %v, want one of refused for %v", d.Task.RunOf.Schedule, d.Task.RunOf.Occurrence.Time(), want)
			}
			w.ack(d)
		}

		for name, e := range map[string]string{"nightly": hashed, "days": days} {
			n, before := scheduled(name, cron(e)), get(t, s, name).Next
			if again := put(t, s, n); again.Outcome != schedules.Unchanged || again.Version != 1 {
				t.Errorf("%s put again: %+v", name, again)
			}
			n.Labels = []store.Attribute{{Key: "team", Value: "data"}}
			preview, err := s.Schedules.Preview(t.Context(), n, schedules.PreviewRange{Count: 1})
			if err != nil || preview.Occurrences[0].At != before {
				t.Errorf("%s with a label is previewed as %v, %v", name, preview.Occurrences, err)
			}
			if labeled := put(t, s, n); labeled.Outcome != schedules.Changed || labeled.Next != before {
				t.Errorf("%s with a label: %+v, want next %v", name, labeled, before.Time())
			}
		}
		_, err := s.Schedules.Put(t.Context(), scheduled("refused", cron(refused)), nil)
		if servicetest.ReasonOf(err) != "BAD_CRON" || !strings.Contains(err.Error(), "EventBridge") {
			t.Errorf("the stored one put again: %v", err)
		}
		if _, err = s.Schedules.Preview(t.Context(), scheduled("refused", cron(refused)), schedules.PreviewRange{Count: 1}); servicetest.ReasonOf(err) != "BAD_CRON" {
			t.Errorf("the stored one previewed: %v", err)
		}

		edited := scheduled("days", cron("0 0 */2 * MON")) // another text: by the rules of now
		preview, err := s.Schedules.Preview(t.Context(), edited, schedules.PreviewRange{Count: 1})
		if done := put(t, s, edited); err != nil || !done.Next.Time().Equal(start.AddDate(0, 0, 2)) || preview.Occurrences[0].At != done.Next {
			t.Errorf("edited: %+v, previewed as %v, %v", done, preview.Occurrences, err)
		}
		if again := get(t, s, "days"); again.Timetable.Entries[0].Legacy {
			t.Error("edited, and read by the rules of before")
		}
	})
}
