package forecasts_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/forecasts"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

func scheduled(name string, entries ...timetable.Entry) schedules.Definition {
	return schedules.Definition{Topic: "report", Name: name, Spec: schedule.Spec{
		Timetable: timetable.Spec{Entries: entries}, History: schedules.DefaultHistory,
		Template: schedule.Template{Task: store.Task{Payload: []byte("go"), MaxRetries: -1}},
	}}
}

func cron(expression string) timetable.Entry { return timetable.Entry{Cron: expression} }

func put(t *testing.T, s *service.Service, n schedules.Definition) schedules.Put {
	t.Helper()
	done, err := s.Schedules.Put(t.Context(), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func now() store.Millis { return store.Millis(time.Now().UnixMilli()) }

// many are schedules of all policies.
func many(t *testing.T, s *service.Service) {
	t.Helper()
	if _, err := s.Calendars.Put(t.Context(), schedules.Calendar{Name: "early", Calendar: timetable.Calendar{
		Spans: []timetable.Span{{From: time.Now().UTC().Add(5 * time.Minute), To: time.Now().UTC().Add(10 * time.Minute)}},
	}}, nil); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*schedules.Definition){
		"minutely":  func(*schedules.Definition) {},
		"jittered":  func(n *schedules.Definition) { n.Jitter = 25 * time.Second },
		"excluded":  func(n *schedules.Definition) { n.Calendars = []string{"early"} },
		"paused":    func(n *schedules.Definition) { n.Paused = true },
		"few":       func(n *schedules.Definition) { n.MaxRuns = 4 },
		"buffered":  func(n *schedules.Definition) { n.Overlap = schedule.BufferAll },
		"replacing": func(n *schedules.Definition) { n.Overlap = schedule.CancelOther },
		"often": func(n *schedules.Definition) {
			n.Timetable.Entries = []timetable.Entry{{Every: 10 * time.Second}}
		},
		"free": func(n *schedules.Definition) {
			n.Timetable.Entries, n.Overlap, n.Untracked = []timetable.Entry{{Every: 3 * time.Second}}, schedule.Allow, true
		},
		"tracked": func(n *schedules.Definition) {
			n.Timetable.Entries, n.Overlap = []timetable.Entry{{Every: 4 * time.Second}, cron("*/7 * * * *")}, schedule.Allow
		},
		"instants": func(n *schedules.Definition) {
			n.Timetable.Entries = []timetable.Entry{{At: []time.Time{time.Now().Add(90 * time.Second), time.Now().Add(10 * time.Minute)}}}
		},
	} {
		n := scheduled(name, cron("* * * * *"))
		edit(&n)
		put(t, s, n)
	}
}

// dryRun gathers all pages.
func dryRun(t *testing.T, s *service.Service, d forecasts.DryRun, size int) (all []forecasts.PlannedRun) {
	t.Helper()
	for token, pages := "", 0; token != "" || pages == 0; pages++ {
		if pages > 10_000 {
			t.Fatal("pages without end")
		}
		page, next, err := s.Forecasts.DryRun(t.Context(), d, size, token)
		if err != nil {
			t.Fatal(err)
		}
		all, token = append(all, page...), next
	}
	return all
}

// What a dry run says is what is made, id for id.
func TestADryRunIsWhatIsMade(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		many(t, s)
		there := make(map[string]bool) // made ahead already
		tasks, _, err := s.Finder.Find(t.Context(), "report", service.TaskFilter{}, 1000, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tasks {
			there[f.ID] = true
		}
		from, to := now(), now().Add(20*time.Minute)
		want := make(map[string]store.Millis)
		for _, r := range dryRun(t, s, forecasts.DryRun{Topic: "report", To: to}, 7) {
			if want[r.ID] != 0 {
				t.Errorf("%s of %s is made twice", r.ID, r.Schedule)
			}
			want[r.ID] = r.Due
		}
		if whole := dryRun(t, s, forecasts.DryRun{Topic: "report", To: to}, 0); len(whole) != len(want) {
			t.Errorf("%d runs in small pages, %d in large ones", len(want), len(whole))
		}

		w := servicetest.Subscribe(t, s, "report", 5000)
		got := make(map[string]store.Millis)
		for now() < to.Add(10*time.Second) {
			servicetest.Idle(100 * time.Millisecond)
			w.Mu.Lock()
			list := w.Got
			w.Got = nil
			w.Mu.Unlock()
			for _, d := range list {
				if d.Task.Due >= from && d.Task.Due < to && !there[d.Task.ID] {
					got[d.Task.ID] = d.Task.Due
				}
				w.Settle(subscription.SettleAck, d)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d runs are made, %d were said", len(got), len(want))
			for id, due := range want {
				if got[id] != due {
					t.Errorf("%s was said to be due %v, and is %v", id, due.Time(), got[id].Time())
				}
			}
		}
		if len(want) < 900 {
			t.Errorf("%d runs: the test is of many", len(want))
		}
	})
}

func TestADryRunOfOneSchedule(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		many(t, s)
		for _, size := range []int{3, 5, 100} {
			runs := dryRun(t, s, forecasts.DryRun{Topic: "report", Name: "minutely", From: now().Add(2 * time.Minute), To: now().Add(7 * time.Minute)}, size)
			if len(runs) != 5 || runs[0].Schedule != "minutely" || runs[0].Origin != schedule.ByTimetable {
				t.Errorf("pages of %d: %+v", size, runs)
			}
		}
		if _, _, err := s.Forecasts.DryRun(t.Context(), forecasts.DryRun{Topic: "report", Name: "nobody", To: now().Add(time.Hour)}, 10, ""); servicetest.ReasonOf(err) != "NO_SCHEDULE" {
			t.Errorf("of nobody: %v", err)
		}
	})
}

func forecastOf(t *testing.T, s *service.Service, r forecasts.Request) forecasts.Forecasted {
	t.Helper()
	f, err := s.Forecasts.Forecast(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func total(column []int64) (n int64) {
	for _, c := range column {
		n += c
	}
	return n
}

// The forecast of what a dry run lists is as much, bucket by bucket.
func TestAForecastIsAsMuchAsADryRun(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		many(t, s)
		servicetest.Idle(150 * time.Second) // nobody works: those that may not overlap wait
		for name, cfg := range map[string]forecasts.Request{"the topic": {Topic: "report"}, "all": {}} {
			cfg.Bucket, cfg.To = time.Minute, now().Add(30*time.Minute)
			f := forecastOf(t, s, cfg)
			if f.Inexact || len(f.Pending) != 31 || f.Overdue == 0 {
				t.Fatalf("%s: %d buckets, exact %t, %d overdue", name, len(f.Pending), !f.Inexact, f.Overdue)
			}
			want := make([]int64, len(f.Pending))
			for _, r := range dryRun(t, s, forecasts.DryRun{Topic: "report", To: f.To()}, 0) {
				want[(r.Due-f.From)/60_000]++
			}
			tasks, _, err := s.Finder.Find(t.Context(), "report", service.TaskFilter{}, 1000, "")
			if err != nil {
				t.Fatal(err)
			}
			pending := int64(0)
			for _, task := range tasks {
				if task.Due >= f.From {
					want[(task.Due-f.From)/60_000]++
					pending++
				}
			}
			if got := f.Due().Rounded(); !slices.Equal(got, want) {
				t.Errorf("%s:\n%v, and of the dry run\n%v", name, got, want)
			}
			if next := total(f.Next.Rounded()); next < 8 || next > 10 {
				t.Errorf("%s: %d schedules have a next run", name, next)
			}
			if got := total(f.Pending.Rounded()); got != pending {
				t.Errorf("%s: %d tasks are pending, not %d", name, got, pending)
			}
		}
	})
}

// Of very many schedules a sample is expanded, which says about as much.
func TestAForecastOfVeryManySchedulesIsEstimated(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		const n = 24_000
		fill(t, s, n)
		f := forecastOf(t, s, forecasts.Request{Topic: "report", Bucket: time.Hour})
		if !f.Inexact || len(f.Pending) != 24 {
			t.Fatalf("%d buckets, exact %t", len(f.Pending), !f.Inexact)
		}
		if next := total(f.Next.Rounded()); next != n {
			t.Errorf("%d next runs, of %d schedules", next, n)
		}
		// Each comes each six hours.
		if later := total(f.Later.Rounded()); later < 3*n*95/100 || later > 3*n*105/100 {
			t.Errorf("%d later runs, of %d", later, 3*n)
		}
		for i, due := range f.Due().Rounded() {
			if due < n/6*8/10 || due > n/6*12/10 {
				t.Errorf("hour %d: %d, of about %d", i, due, n/6)
			}
		}
	})
}

// fill puts schedules into the store without much ado: each six hours, at any second.
func fill(t *testing.T, s *service.Service, n int) {
	t.Helper()
	put(t, s, scheduled("first", timetable.Entry{Every: time.Hour}))
	if _, err := s.Schedules.Delete(t.Context(), "report", "first", schedules.Deletion{}); err != nil {
		t.Fatal(err)
	}
	topic, err := s.Topics.Describe(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	commits := make(map[store.Shard][]store.Commit)
	for i := range n {
		start := time.Now().Add(10*time.Second + time.Duration(i)*6*time.Hour/time.Duration(n)).Truncate(time.Second)
		one := &schedule.Schedule{
			Name: fmt.Sprintf("s%06d", i), Life: uint64(i), Phase: schedule.Active, Anchor: now(), Decided: now(),
			Spec: schedule.Spec{Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: 6 * time.Hour}}, Start: start}, Overlap: schedule.Skip, CatchUp: schedule.Last, Grace: time.Minute},
		}
		table, err := one.Table()
		if err != nil {
			t.Fatal(err)
		}
		after, out := schedule.Step(one, nil, schedule.Env{Now: now(), Lead: schedule.Lead, Table: table})
		c, err := schedule.Commit(after, &out, 0, &topic.Topic, now())
		if err != nil {
			t.Fatal(err)
		}
		shard := schedule.Shards(&topic.Topic, one.Name)[0]
		commits[shard] = append(commits[shard], c)
	}
	for shard, list := range commits {
		for some := range slices.Chunk(list, 1000) {
			if _, _, err := s.Node().Cells().Commit(context.Background(), shard, nil, some); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestForecastOfAnAudience(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		users(t, s, 600)
		n := scheduled("digest", cron("0 * * * *"))
		n.Audience = &schedule.Target{Name: "users", Window: 30 * time.Minute, Grain: 10 * time.Second, SpreadFrom: 100, Quiet: uint8(audience.Defer)}
		put(t, s, n)
		f := forecastOf(t, s, forecasts.Request{Topic: "report", Bucket: 10 * time.Minute, To: now().Add(2 * time.Hour)})
		if got := fmt.Sprint(f.Recipients.Rounded()); got != "[0 0 0 0 0 0 200 200 200 0 0 0]" || total(f.Next.Rounded()) != 0 {
			t.Errorf("recipients %s, next %v", got, f.Next)
		}
		servicetest.Idle(time.Hour + 15*time.Minute) // halfway through a run
		f = forecastOf(t, s, forecasts.Request{Topic: "report", Bucket: 15 * time.Minute, From: now(), To: now().Add(45 * time.Minute)})
		if got := total(f.Recipients.Rounded()); got < 250 || got > 300 {
			t.Errorf("%d recipients are to come: %v", got, f.Recipients)
		}
	})
}

func users(t *testing.T, s *service.Service, n int) {
	t.Helper()
	if _, err := s.Audiences.Create(t.Context(), audiences.Spec{Name: "users", Shards: 4}, now()); err != nil {
		t.Fatal(err)
	}
	var all []audiences.Recipient
	for i := range n {
		all = append(all, audiences.Recipient{ID: fmt.Sprint(i)})
	}
	if _, err := s.Audiences.Put(t.Context(), "users", 0, all); err != nil {
		t.Fatal(err)
	}
}

// A put is warned when more is due with its next runs than the topic lets through.
func TestAPutIsWarned(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Limits: actors.Limits{WarnDue: 5}}, func(t *testing.T, s *service.Service) {
		var warned []schedules.Put
		for i := range 7 {
			warned = append(warned, put(t, s, scheduled(fmt.Sprint(i), cron("30 2 * * *"))))
		}
		for i, p := range warned {
			if len(p.Warnings) != max(0, i-4) && i < 6 {
				t.Errorf("put %d: %+v", i, p.Warnings)
			}
		}
		w := warned[6].Warnings
		if len(w) != 1 || w[0].Due != 7 || w[0].Limit != 5 || w[0].Rated || w[0].At.Time().UTC().Format("15:04:05") != "02:30:00" || w[0].Cron != "H 2 * * *" || w[0].Slack < time.Minute || w[0].EmptiestDue != 0 {
			t.Errorf("%+v", w)
		}
		quiet := scheduled("elsewhere", cron("H 2 * * *"))
		if p := put(t, s, quiet); len(p.Warnings) != 0 {
			t.Errorf("elsewhere: %+v", p.Warnings)
		}

		// A preview says the same, of a schedule that is there and of one that is not.
		preview, err := s.Schedules.PreviewExisting(t.Context(), "report", "6", schedules.PreviewRange{})
		if err != nil || len(preview.Warnings) != 1 || preview.Warnings[0].Due != 7 {
			t.Errorf("preview of a schedule: %+v, %v", preview.Warnings, err)
		}
		preview, err = s.Schedules.Preview(t.Context(), scheduled("new", cron("30 2 * * *")), schedules.PreviewRange{Count: 1})
		if err != nil || len(preview.Warnings) != 1 || preview.Warnings[0].Due != 8 {
			t.Errorf("preview of a new schedule: %+v, %v", preview.Warnings, err)
		}
		f := forecastOf(t, s, forecasts.Request{Topic: "report", Bucket: time.Second, From: w[0].At, To: w[0].At.Add(10 * time.Second)})
		if len(f.Warnings) != 1 || f.Warnings[0].Due != 7 || f.Warnings[0].At != w[0].At {
			t.Errorf("forecast: %+v", f.Warnings)
		}
	})
}

func TestAPutIsWarnedOfTheRate(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		rate := store.Rate{Count: 2, Period: time.Second, Burst: 1}
		if _, err := s.Topics.Create(t.Context(), "report", service.TopicChange{Rate: &rate}); err != nil {
			t.Fatal(err)
		}
		var last schedules.Put
		for i := range 3 {
			last = put(t, s, scheduled(fmt.Sprint(i), cron("30 2 * * *")))
		}
		if w := last.Warnings; len(w) != 1 || !w[0].Rated || w[0].Limit != 2 || w[0].Due != 3 {
			t.Errorf("%+v", w)
		}
	})
}

func TestAnAudienceAtOnceIsWarnedOf(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Limits: actors.Limits{WarnDue: 100}}, func(t *testing.T, s *service.Service) {
		users(t, s, 300)
		n := scheduled("digest", cron("0 9 * * *"))
		n.Audience = &schedule.Target{Name: "users", Quiet: uint8(audience.Defer)}
		if w := put(t, s, n).Warnings; len(w) != 1 || w[0].Due < 300 || w[0].Slack != 0 {
			t.Errorf("all at once: %+v", w)
		}
		n.Audience = &schedule.Target{Name: "users", Quiet: uint8(audience.Defer), Window: time.Minute}
		if w := put(t, s, n).Warnings; len(w) != 0 {
			t.Errorf("over a minute: %+v", w)
		}
	})
}
