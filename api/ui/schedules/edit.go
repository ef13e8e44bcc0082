package schedules

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// previewed is how many runs to come the preview of a form has.
const previewed = 10

// editPage is the form of a schedule, with what would become of it.
type editPage struct {
	*draft
	is        *ddqv1.Schedule // that is changed
	wrong     frame.Mistakes
	refused   string             // why it was not done; empty: nothing was tried
	met       []frame.Difference // with what others changed meanwhile
	calendars []string
	now       time.Time
	preview   *ddqv1.PreviewScheduleResponse // nil: there is none
	zone      string                         // of the preview
	text      string                         // of what is wrong with no field of the form
}

// editor refuses those who may put no schedule of a topic; with none, of any.
func editor(ctx context.Context, topic string) error {
	may := frame.Who(ctx).On(topic)
	if topic == "" && frame.Who(ctx).Topics() || may.Operate && may.Enqueue {
		return nil
	}
	return denied("schedules are made by who may operate the topic, and enqueue there")
}

func denied(why string) error { return status.Error(codes.PermissionDenied, why) }

func invalid(why string) error { return status.Error(codes.InvalidArgument, why) }

// newSchedule is an empty form.
func (s *section) newSchedule(ctx context.Context, query url.Values) (frame.View, error) {
	if err := editor(ctx, query.Get("topic")); err != nil {
		return frame.View{}, err
	}
	d := &draft{topic: query.Get("topic")}
	d.saw, d.wants = textsOf(d.base()), textsOf(d.base())
	p := &editPage{draft: d, is: d.base(), wrong: frame.Mistakes{}}
	if err := s.around(ctx, p); err != nil {
		return frame.View{}, err
	}
	return p.view(http.StatusOK), nil
}

// editSchedule is the form of a schedule as it is.
func (s *section) editSchedule(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	name, err := frame.Required(query, "name")
	if err != nil {
		return frame.View{}, err
	}
	if err := editor(ctx, topic); err != nil {
		return frame.View{}, err
	}
	is, err := s.get(ctx, topic, name)
	if err != nil {
		return frame.View{}, err
	}
	p := &editPage{draft: newDraft(is), is: is, wrong: frame.Mistakes{}}
	if err := s.around(ctx, p); err != nil {
		return frame.View{}, err
	}
	if err := s.look(ctx, p); err != nil {
		return frame.View{}, err
	}
	return p.view(http.StatusOK), nil
}

// get is a schedule that can be put again.
func (s *section) get(ctx context.Context, topic, name string) (*ddqv1.Schedule, error) {
	got, err := s.schedules.GetSchedule(ctx, &ddqv1.GetScheduleRequest{Topic: topic, Name: name})
	if err != nil {
		return nil, err
	}
	if got.GetSchedule() == nil {
		return new(ddqv1.Schedule), nil
	}
	if got.GetSchedule().GetMasked() {
		return nil, denied("what the runs of the schedule carry is hidden from you: who cannot see it cannot change the schedule")
	}
	return got.GetSchedule(), nil
}

// around finds what is on the page beside the schedule.
func (s *section) around(ctx context.Context, p *editPage) error {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return err
	}
	list, err := s.schedules.ListCalendars(ctx, &ddqv1.ListCalendarsRequest{PageSize: frame.PageSize})
	if err != nil {
		return err
	}
	p.now = now
	for _, c := range list.GetCalendars() {
		p.calendars = append(p.calendars, c.GetName())
	}
	return nil
}

// open reads a form, and finds the schedule that it is about.
func (s *section) open(ctx context.Context, form url.Values) (*editPage, error) {
	d, err := readDraft(form)
	if err != nil {
		return nil, err
	}
	p := &editPage{draft: d, is: d.base(), wrong: frame.Mistakes{}}
	if d.version > 0 {
		if p.is, err = s.get(ctx, d.topic, d.name); err != nil {
			return nil, err
		}
	}
	if d.topic == "" {
		p.wrong.Add("topic", "A schedule is of a topic.")
	}
	if d.name == "" {
		p.wrong.Add("name", "A schedule has a name.")
	}
	return p, s.around(ctx, p)
}

// look finds what would become of the draft. What is wrong with it is on the page then.
func (s *section) look(ctx context.Context, p *editPage) error {
	would := p.apply(p.is, p.wrong)
	if len(p.wrong) > 0 {
		return nil
	}
	p.zone = would.GetTimetable().GetZone()
	r, err := s.schedules.PreviewSchedule(ctx, &ddqv1.PreviewScheduleRequest{Of: &ddqv1.PreviewScheduleRequest_Schedule{Schedule: would}, Count: previewed})
	if err != nil {
		return p.take(err)
	}
	p.preview = r
	return nil
}

// take keeps what the server says is wrong with the draft; other errors it returns.
func (p *editPage) take(err error) error {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.ResourceExhausted:
		if !p.wrong.TakeAs(err, p.shown) {
			p.text = status.Convert(err).Message()
		}
		return nil
	}
	return err
}

// shown is a field of the form by what the server calls it; none where the form does not have it.
func (p *editPage) shown(server string) string {
	name := formField(server)
	if name == "topic" || name == "name" {
		if p.version > 0 {
			return ""
		}
		return name
	}
	for _, when := range []string{"cron", "every", "at"} { // of the timetable as a whole it is said where there is one
		if name == "cron" && strings.TrimSpace(p.wants.Get(when)) != "" {
			return when
		}
	}
	if !textsOf(p.is).Has(name) {
		return ""
	}
	return name
}

// previewSchedule shows what would become of a form.
func (s *section) previewSchedule(ctx context.Context, form url.Values) (string, string, error) {
	p, err := s.open(ctx, form)
	if err != nil {
		return "", "", err
	}
	if err := s.look(ctx, p); err != nil {
		return "", "", err
	}
	code := http.StatusOK
	if len(p.wrong) > 0 || p.text != "" {
		code = http.StatusBadRequest
	}
	return "", "", &frame.Question{View: p.view(code)}
}

var did = map[ddqv1.PutOutcome]string{
	ddqv1.PutOutcome_PUT_OUTCOME_CREATED: "created", ddqv1.PutOutcome_PUT_OUTCOME_CHANGED: "changed", ddqv1.PutOutcome_PUT_OUTCOME_UNCHANGED: "same",
}

// putSchedule makes a schedule, or changes it. When somebody was faster, it shows what they made of it.
func (s *section) putSchedule(ctx context.Context, form url.Values) (string, string, error) {
	p, err := s.open(ctx, form)
	if err != nil {
		return "", "", err
	}
	if p.version > 0 && p.is.GetVersion() != p.version {
		return "", "", s.meet(ctx, p)
	}
	wants := p.apply(p.is, p.wrong)
	if len(p.wrong) > 0 {
		return "", "", p.refuse(http.StatusBadRequest)
	}
	put, err := s.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: wants, IfVersion: &p.version})
	switch {
	case err == nil:
		return frame.Link("schedule", "topic", p.topic, "name", p.name), did[put.GetOutcome()], nil
	case status.Code(err) == codes.Aborted:
		if p.is, err = s.get(ctx, p.topic, p.name); err != nil {
			return "", "", err
		}
		return "", "", s.meet(ctx, p)
	}
	code := http.StatusBadRequest
	if status.Code(err) == codes.AlreadyExists {
		code = http.StatusConflict
	}
	if err := p.take(err); err != nil {
		return "", "", err
	}
	return "", "", p.refuse(code)
}

func (p *editPage) refuse(code int) error {
	p.refused = "Nothing was changed: something is wrong with what you want."
	return &frame.Question{View: p.view(code)}
}

// meet asks what is to become of a schedule that somebody else has changed.
func (s *section) meet(ctx context.Context, p *editPage) error {
	p.met = p.onto(p.is)
	p.refused = "Nothing was changed: somebody else changed the schedule since you looked."
	if err := s.look(ctx, p); err != nil {
		return err
	}
	return &frame.Question{View: p.view(http.StatusConflict)}
}

func (p *editPage) view(code int) frame.View {
	title := "A new schedule"
	if p.version > 0 {
		title = "Change schedule " + frame.Cut(p.name)
	}
	return frame.View{Title: title, Page: "schedules", Code: code, Body: p.body()}
}
