package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	schedulePut     = "/ui/schedule/put"
	schedulePreview = "/ui/schedule/preview"
	startBackfill   = "/ui/schedule/backfill/start"
	nightlyEdit     = "/ui/schedule/edit?topic=mail&name=nightly"
)

func (r *rig) schedules() ddqv1.ScheduleServiceClient {
	return ddqv1.NewScheduleServiceClient(r.client.Conn())
}

// put puts a schedule that is written as JSON.
func (r *rig) put(text string) {
	r.Helper()
	s := new(ddqv1.Schedule)
	if err := protojson.Unmarshal([]byte(text), s); err != nil {
		r.Fatal(err)
	}
	if _, err := r.schedules().PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: s}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) schedule(topic, name string) *ddqv1.Schedule {
	r.Helper()
	got, err := r.schedules().GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Topic: topic, Name: name})
	if err != nil {
		r.Fatal(err)
	}
	return got.Schedule
}

// with is a form with some fields filled in.
func with(form url.Values, pairs ...string) url.Values {
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

// has fails unless a text has others.
func (r *rig) has(text string, wants ...string) {
	r.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			r.Errorf("there is no %q:\n%s", want, text)
		}
	}
}

func TestAScheduleIsMadeWithAPreview(t *testing.T) {
	r := start(t)
	// Ten runs are five days, and one of them is excluded on whatever day this is played.
	off := &ddqv1.Calendar{Name: "weekend", Weekdays: []string{"WED", "SAT", "SUN"}}
	if _, err := r.schedules().PutCalendar(t.Context(), &ddqv1.PutCalendarRequest{Calendar: off}); err != nil {
		t.Fatal(err)
	}
	form := with(r.form("/ui/schedule/new?topic=mail", schedulePut), "name", "nightly", "cron", "30 2 * * *\r\n\r\n0 14 * * *", "zone", "Europe/Berlin", "calendars", "weekend",
		"jitter", "5m", "overlap", "buffer one", "catch_up", "none", "grace", "90s", "max_runs", "700", "failures", "3", "payload", "line one\r\nline <two>")
	text := r.want(http.StatusOK, http.MethodPost, schedulePreview, form, nil)
	r.has(text, "There are: weekend", "skipped: excluded", "T02:30:00+0", "The clocks of Europe/Berlin change within a year", "\nline one\nline &lt;two&gt;</textarea>")
	if n := strings.Count(text, ":00+0"); n < 10 {
		t.Errorf("%d runs are shown", n)
	}
	if _, err := r.schedules().GetSchedule(t.Context(), &ddqv1.GetScheduleRequest{Topic: "mail", Name: "nightly"}); err == nil {
		t.Error("a preview made it")
	}
	r.has(r.follow(schedulePut, form), "It was made.", "Schedule nightly")
	s := r.schedule("mail", "nightly")
	if got := s.Timetable; len(got.Entries) != 2 || got.Entries[1].GetCron() != "0 14 * * *" || got.Zone != "Europe/Berlin" || got.JitterMs != 300_000 || got.Calendars[0] != "weekend" {
		t.Errorf("timetable %v", got)
	}
	if s.Overlap != ddqv1.Overlap_OVERLAP_BUFFER_ONE || s.CatchUp.Policy != ddqv1.CatchUpPolicy_CATCH_UP_POLICY_NONE || s.CatchUp.GraceMs != 90_000 || s.MaxRuns != 700 || s.PauseAfterFailures != 3 || string(s.GetTask().Payload) != "line one\nline <two>" {
		t.Errorf("%v", s)
	}
	text = r.want(http.StatusConflict, http.MethodPost, schedulePut, form, nil) // sent twice
	r.has(text, "exists")
	r.has(r.follow(schedulePut, r.form(nightlyEdit, schedulePut)), "nothing was changed")
	if got := r.schedule("mail", "nightly").Version; got != 1 {
		t.Errorf("version %d", got)
	}
}

// TestOtherTimetables than cron go through the form unharmed.
func TestOtherTimetables(t *testing.T) {
	r := start(t)
	for name, fields := range map[string][]string{
		"fixed":  {"every", "10m", "from", "end"},
		"spring": {"every", "36h 7d", "start", "2035-03-01T09:00", "end", "2035-06-01T00:00:00"},
		"launch": {"at", "2035-01-31T09:00\r\n2035-02-28T10:00:00+01:00"},
	} {
		r.follow(schedulePut, with(r.form("/ui/schedule/new", schedulePut), append([]string{"topic", "mail", "name", name}, fields...)...))
		was := r.schedule("mail", name)
		r.has(r.follow(schedulePut, with(r.form("/ui/schedule/edit?topic=mail&name="+name, schedulePut), "max_runs", "9")), "It was changed.")
		if is := r.schedule("mail", name); protojson.Format(is.Timetable) != protojson.Format(was.Timetable) || is.MaxRuns != 9 {
			t.Errorf("%s\nbecame %s", was, is)
		}
	}
	if e := r.schedule("mail", "fixed").Timetable.Entries[0].GetEvery(); e.GetEveryMs() != 600_000 || e.GetFrom() != ddqv1.IntervalFrom_INTERVAL_FROM_END {
		t.Errorf("%v", e)
	}
	if e := r.schedule("mail", "launch").Timetable.Entries[0].GetAt().GetTimes(); len(e) != 2 || e[1].AsTime().Hour() != 9 {
		t.Errorf("%v", e)
	}
	if table := r.schedule("mail", "spring").Timetable; len(table.Entries) != 2 || table.Entries[1].GetEvery().GetEveryMs() != 7*86_400_000 || table.EndTime.AsTime().Month() != time.June {
		t.Errorf("%v", table)
	}
}

func TestMistakesOfAScheduleAreSaidAtTheirFields(t *testing.T) {
	r := start(t)
	for field, wrong := range map[string][]string{
		"cron": {"61 * * * *", "x", hostile[0], "0 0 30 2 *"}, "every": {"soon", "-1s", "1ms"}, "at": {"tomorrow", "2001-01-01T00:00\r\nnever"}, "zone": {"Europe/Berln", "Local", hostile[1]}, "start": {"soon"}, "end": {"soon"},
		"calendars": {"nowhere"}, "jitter": {"30h"}, "overlap": {"twice"}, "catch_up": {"some"}, "grace": {"1ms", "48h"}, "within": {"x"}, "max_runs": {"x", "-1"}, "failures": {"5000"}, "audience": {"nobody"}, "kind": {"news"}, "window": {"1h"},
		"name": {"", "with blank", hostile[2]}, "topic": {"", "a b"},
	} {
		for _, text := range wrong {
			form := with(r.form("/ui/schedule/new", schedulePut), "topic", "mail", "name", "nightly", "cron", "30 2 * * *", "payload", "kept", field, text)
			for _, path := range []string{schedulePut, schedulePreview} {
				if field == "audience" && path == schedulePreview { // which is made later, perhaps
					continue
				}
				got := r.want(http.StatusBadRequest, http.MethodPost, path, form, nil)
				page, err := html.Parse(strings.NewReader(got))
				if err != nil {
					t.Fatal(err)
				}
				r.check(path, page)
				said := false
				for _, n := range elements(page) {
					said = said || attr(n, "name") == field && attr(n, "aria-invalid") == "true"
				}
				if !said {
					t.Errorf("%s: of %s=%q nothing is said at the field:\n%s", path, field, text, got)
				}
				r.has(got, "\nkept</textarea>")
			}
		}
	}
	for _, form := range []url.Values{{"topic": {"mail"}, "name": {"x"}}, {"topic": {"mail"}, "name": {"x"}, "version": {"x"}}, {"topic": {"mail"}, "name": {"x"}, "saw": {"%zz"}}} {
		r.want(http.StatusBadRequest, http.MethodPost, schedulePut, form, nil) // they say no time
	}
	r.want(http.StatusNotFound, http.MethodPost, schedulePut, url.Values{"topic": {"mail"}, "name": {"none"}, "version": {"3"}, "cron": {"0 0 * * *"}}, nil)
	r.get(http.StatusNotFound, "/ui/schedule/edit?topic=mail&name=none")
	r.get(http.StatusBadRequest, "/ui/schedule/edit?topic=mail")
}

// TestWhatAFormCannotSayStays, and the form says so.
func TestWhatAFormCannotSayStays(t *testing.T) {
	r := start(t)
	r.put(`{"topic": "mail", "name": "nightly", "history": 7, "labels": [{"key": "team", "value": "x"}], "timetable": {"entries": [{"cron": "30 2 * * *"}], "startTime": "2030-01-01T00:00:00.250Z"},
		"task": {"payload": "AAH/", "maxRetries": 4, "attributes": [{"key": "k", "value": "v"}]}}`)
	r.put(`{"topic": "mail", "name": "flow", "timetable": {"entries": [{"every": {"everyMs": "3600000"}}]}, "workflow": {"steps": [{"name": "a", "task": {}}]}}`)
	_, text := r.get(http.StatusOK, nightlyEdit)
	r.has(text, "3 bytes, which are no text", "history, labels, task.attributes, task.max_retries, task.payload")
	_, text = r.get(http.StatusOK, "/ui/schedule/edit?topic=mail&name=flow")
	r.has(text, "A workflow.", "stays as it is: workflow.")
	for _, name := range []string{"nightly", "flow"} {
		was := r.schedule("mail", name)
		r.follow(schedulePut, with(r.form("/ui/schedule/edit?topic=mail&name="+name, schedulePut), "zone", "Europe/Paris"))
		is := r.schedule("mail", name)
		if is.Timetable.Zone != "Europe/Paris" {
			t.Errorf("%s: zone %q", name, is.Timetable.Zone)
		}
		is.Timetable.Zone, is.Version = was.Timetable.Zone, was.Version
		if protojson.Format(is) != protojson.Format(was) {
			t.Errorf("%s\nbecame %s", was, is)
		}
	}
}

// TestAScheduleThatOthersChanged: theirs and mine are shown, and what they made of the rest stays.
func TestAScheduleThatOthersChanged(t *testing.T) {
	r := start(t)
	r.put(`{"topic": "mail", "name": "nightly", "timetable": {"entries": [{"cron": "30 2 * * *"}]}, "task": {"payload": "b25l"}}`)
	mine := with(r.form(nightlyEdit, schedulePut), "cron", "0 5 * * *", "payload", "mine <b>")
	r.put(`{"topic": "mail", "name": "nightly", "timetable": {"entries": [{"cron": "15 4 * * *"}], "zone": "Asia/Tokyo"}, "task": {"payload": "b25l"}}`)
	text := r.want(http.StatusConflict, http.MethodPost, schedulePut, mine, nil)
	r.has(text, "somebody else changed the schedule", "<code>30 2 * * *</code>", "<code>15 4 * * *</code>", "<code>0 5 * * *</code>", "<code>mine &lt;b&gt;</code>", "T05:00:00+09:00")
	if got := r.schedule("mail", "nightly"); got.Timetable.Entries[0].GetCron() != "15 4 * * *" {
		t.Errorf("an edit of what is not there any more was made: %v", got)
	}
	r.follow(schedulePut, r.answer(http.StatusConflict, schedulePut, mine, schedulePut))
	if got := r.schedule("mail", "nightly"); got.Timetable.Entries[0].GetCron() != "0 5 * * *" || got.Timetable.Zone != "Asia/Tokyo" || string(got.GetTask().Payload) != "mine <b>" {
		t.Errorf("%v", got)
	}
}

func TestRunsOfThePastAreCountedBeforeTheyAreMade(t *testing.T) {
	r := start(t)
	r.put(`{"topic": "mail", "name": "nightly", "max_runs": 1, "timetable": {"entries": [{"cron": "30 2 * * *"}]}, "task": {}}`)
	const page = "/ui/schedule/backfill?topic=mail&name=nightly"
	r.has(r.act("/ui/schedule?topic=mail&name=nightly", "/ui/schedule/pause"), "schedule/backfill?")
	const range20 = page + "&from=2024-01-01T00:00&to=2024-01-20T12:00"
	_, text := r.get(http.StatusOK, range20)
	r.has(text, "The range has 20 runs.", "and 10 more", "Make 20 runs")
	form := r.form(range20, startBackfill)
	r.has(r.follow(startBackfill, form), "Runs of that range are made", "Runs of the past")
	r.follow(startBackfill, form) // sent twice
	got, err := r.schedules().GetSchedule(t.Context(), &ddqv1.GetScheduleRequest{Topic: "mail", Name: "nightly"})
	if err != nil || len(got.Status.Backfills) != 1 || got.Status.Backfills[0].Total != 20 {
		t.Fatal(got, err)
	}
	r.follow("/ui/schedule/backfill/cancel", r.form("/ui/schedule?topic=mail&name=nightly", "/ui/schedule/backfill/cancel"))
	for query, code := range map[string]int{
		"&from=": 400, "&from=x": 400, "&from=2024-01-02T00:00&to=2024-01-01T00:00": 400, "&from=1970-01-02T00:00": 400, "&from=2024-01-01T00:00&overlap=skip": 400,
		"&from=2024-01-01T01:00&to=2024-01-01T02:00": 200, "&from=2999-01-01T01:00": 400, "": 200,
	} {
		if _, text := r.get(code, page+query); strings.Contains(text, `aria-invalid="true"`) != (code == 400) {
			t.Errorf("%s: %s", query, text)
		}
	}
	for _, wrong := range []url.Values{{"from": {"x"}}, {"from": {""}, "to": {"2024-01-01T00:00"}}, {"from": {"2024-01-01T00:00"}, "to": {"2024-01-02T00:00"}, "overlap": {"skip"}}} {
		wrong.Set("topic", "mail")
		wrong.Set("name", "nightly")
		r.want(http.StatusBadRequest, http.MethodPost, startBackfill, wrong, nil)
	}
	r.get(http.StatusNotFound, "/ui/schedule/backfill?topic=mail&name=none")
}

func TestADryRunIsPaged(t *testing.T) {
	r := start(t)
	r.put(`{"topic": "mail", "name": "often", "overlap": "OVERLAP_ALLOW", "timetable": {"entries": [{"cron": "*/10 * * * *"}]}, "task": {}}`)
	r.put(`{"topic": "mail", "name": "nightly", "timetable": {"entries": [{"cron": "30 2 * * *"}]}, "task": {}}`)
	// A day of its own: the usual range begins with the second that runs, in which a run may have been due before its schedule was made.
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 2)
	seen, pages := map[string]bool{}, 0
	for path := "/ui/dryrun?topic=mail&from=" + day.Format("2006-01-02T15:04") + "&to=" + day.AddDate(0, 0, 1).Format("2006-01-02T15:04"); path != ""; pages++ {
		page, _ := r.get(http.StatusOK, path)
		next := ""
		for _, link := range r.check(path, page) {
			if strings.Contains(link, "page=") {
				next = link
			}
		}
		for _, n := range elements(page) {
			if n.Data == "code" {
				seen[n.FirstChild.Data] = true
			}
		}
		path = next
	}
	if len(seen) != 145 || pages < 2 {
		t.Errorf("%d runs on %d pages, want 145 on 2", len(seen), pages)
	}
	_, text := r.get(http.StatusOK, "/ui/dryrun?topic=mail&name=nightly")
	if strings.Contains(text, ">often<") || !strings.Contains(text, ">nightly<") {
		t.Error(text)
	}
	for query, code := range map[string]int{
		"&from=x": 400, "&to=x": 400, "&name=none": 400, "&from=2030-01-02T00:00&to=2030-01-01T00:00": 400, "&from=2030-01-01T00:00&to=2030-02-02T00:00": 400, "&to=2001-01-01T00:00": 400, "&name=" + url.QueryEscape(hostile[0]): 400,
	} {
		if _, text := r.get(code, "/ui/dryrun?topic=mail"+query); !strings.Contains(text, `aria-invalid="true"`) {
			t.Errorf("%s: %s", query, text)
		}
	}
	r.get(http.StatusNotFound, "/ui/dryrun?topic=none")
	r.get(http.StatusBadRequest, "/ui/dryrun")
}

// TestWhoMayNotPutASchedule has no form, and is refused.
func TestWhoMayNotPutASchedule(t *testing.T) {
	r, root := startAsking(t)
	r.put(`{"topic": "mail", "name": "nightly", "timetable": {"entries": [{"cron": "30 2 * * *"}]}, "task": {"payload": "c2VjcmV0"}}`)
	form := url.Values{"topic": {"mail"}, "name": {"other"}, "cron": {"0 0 * * *"}}
	past := url.Values{"topic": {"mail"}, "name": {"nightly"}, "from": {"2024-01-01T00:00"}, "to": {"2024-01-02T00:00"}, "id": {"x"}}
	for _, role := range []string{"viewer", "operator"} {
		_, secret := r.token(role, role)
		as := r.login(secret)
		text := r.want(http.StatusOK, http.MethodGet, "/ui/schedules?topic=mail", nil, as) + r.want(http.StatusOK, http.MethodGet, "/ui/schedule?topic=mail&name=nightly", nil, as)
		if strings.Contains(text, "schedule/new") || strings.Contains(text, "schedule/edit") || strings.Contains(text, "schedule/backfill") != (role == "operator") {
			t.Errorf("%s sees what they may not do: %s", role, text)
		}
		for _, path := range []string{"/ui/schedule/new?topic=mail", "/ui/schedule/edit?topic=mail&name=nightly"} {
			r.want(http.StatusForbidden, http.MethodGet, path, nil, as)
		}
		r.want(http.StatusForbidden, http.MethodPost, schedulePut, form, as)
		r.want(http.StatusForbidden, http.MethodPost, schedulePut, with(url.Values{"version": {"1"}, "zone": {"Europe/Paris"}, "topic": {"mail"}, "name": {"nightly"}}), as)
		backfills := http.StatusSeeOther
		if role == "viewer" {
			backfills = http.StatusForbidden
			r.want(http.StatusForbidden, http.MethodGet, "/ui/schedule/backfill?topic=mail&name=nightly", nil, as)
			r.want(http.StatusForbidden, http.MethodPost, "/ui/schedule/backfill/cancel", past, as)
		}
		r.want(backfills, http.MethodPost, startBackfill, past, as)
		r.want(http.StatusOK, http.MethodGet, "/ui/dryrun?topic=mail", nil, as)
	}
	_, secret := r.token("sms", "admin:sms")
	r.want(http.StatusForbidden, http.MethodPost, schedulePut, form, r.login(secret))
	r.want(http.StatusForbidden, http.MethodGet, "/ui/dryrun?topic=mail", nil, r.login(secret))
	as := r.login(root)
	text := r.want(http.StatusOK, http.MethodGet, "/ui/schedule?topic=mail&name=nightly", nil, as)
	r.has(text, "schedule/edit?")
	r.want(http.StatusSeeOther, http.MethodPost, schedulePut, form, as)
	if now := r.schedule("mail", "nightly"); now.Version != 1 || now.Timetable.StartTime != (*timestamppb.Timestamp)(nil) {
		t.Errorf("%v", now)
	}
}
