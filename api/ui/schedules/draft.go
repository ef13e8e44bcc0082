package schedules

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// draft is a schedule as a visitor wants it: texts, of which some may be wrong.
type draft struct {
	topic, name string
	version     int64      // of the schedule that they saw; 0: there is none yet
	saw, wants  url.Values // by the fields of the form
}

// newDraft is of a schedule as it is.
func newDraft(s *ddqv1.Schedule) *draft {
	return &draft{s.GetTopic(), s.GetName(), s.GetVersion(), textsOf(s), textsOf(s)}
}

func textsOf(s *ddqv1.Schedule) url.Values {
	texts := url.Values{}
	for _, f := range fieldsOf(s) {
		texts.Set(f.name, f.read(s))
	}
	return texts
}

// readDraft reads a form. A field that is not in it stays as it is.
func readDraft(form url.Values) (*draft, error) {
	version, err := frame.Number(form, "version")
	if err != nil {
		return nil, err
	}
	saw, err := url.ParseQuery(form.Get("saw"))
	if err != nil { // a form of somebody's own
		saw = url.Values{}
	}
	d := &draft{strings.TrimSpace(form.Get("topic")), strings.TrimSpace(form.Get("name")), version, saw, url.Values{}}
	for _, f := range slices.Concat(fields, taskFields, []field{payloadField}) {
		if form.Has(f.name) {
			d.wants.Set(f.name, strings.ReplaceAll(form.Get(f.name), "\r\n", "\n"))
		}
	}
	for _, name := range []string{"start", "end"} { // which browsers write in their own way
		if at, err := readLocal(d.wants.Get(name)); err == nil && at != nil {
			d.wants.Set(name, localText(at))
		}
	}
	return d, nil
}

// base is a schedule that does not exist yet, as its form begins.
func (d *draft) base() *ddqv1.Schedule {
	return &ddqv1.Schedule{Topic: d.topic, Name: d.name, Run: &ddqv1.Schedule_Task{Task: new(ddqv1.EnqueueRequest)}}
}

func (d *draft) changed(name string) bool {
	return d.wants.Has(name) && d.wants.Get(name) != d.saw.Get(name)
}

// apply makes of a schedule what is wanted, as far as that can be read. What the visitor did not change
// stays.
func (d *draft) apply(is *ddqv1.Schedule, wrong frame.Mistakes) *ddqv1.Schedule {
	s := proto.Clone(is).(*ddqv1.Schedule)
	if s.Timetable == nil {
		s.Timetable = new(ddqv1.Timetable)
	}
	for _, f := range fieldsOf(is) {
		if !d.changed(f.name) {
			continue
		}
		if err := f.write(s, d.wants.Get(f.name)); err != nil {
			wrong.Add(f.name, err.Error())
		}
	}
	return s
}

// onto brings a draft to a schedule that others have changed, and returns what differs: what they made of
// the fields that the visitor left alone stays.
func (d *draft) onto(is *ddqv1.Schedule) (all []frame.Difference) {
	now := textsOf(is)
	for _, f := range fieldsOf(is) {
		c := frame.Difference{Name: f.label, Was: d.saw.Get(f.name), Is: now.Get(f.name), Wants: d.wants.Get(f.name)}
		if !d.changed(f.name) {
			c.Wants = c.Is
		}
		if c.Was != c.Is || c.Wants != c.Is {
			all = append(all, c)
		}
		d.wants.Set(f.name, c.Wants)
	}
	d.version, d.saw = is.GetVersion(), now
	return all
}

// pairs are what its form sends unseen.
func (d *draft) pairs() []string {
	all := []string{"version", strconv.FormatInt(d.version, 10), "saw", d.saw.Encode()}
	if d.version > 0 {
		all = append(all, "topic", d.topic, "name", d.name)
	}
	return all
}

// usualHistory is how many runs a schedule remembers that does not say it.
const usualHistory = 10

// rest are the parts of a schedule that the form cannot say, by their names on the wire.
func rest(s *ddqv1.Schedule) (all []string) {
	usual := []string{"topic", "name", "timetable", "task", "workflow", "audience", "overlap", "catch_up", "pause_after_failures", "max_runs", "paused", "note", "version", "masked"}
	if s.GetHistory() == usualHistory {
		usual = append(usual, "history")
	}
	if s.GetTrack() {
		usual = append(usual, "track")
	}
	all = set(s, "", usual...)
	has := []string{"topic"}
	if isText(s.GetTask().GetPayload()) {
		has = append(has, "payload")
	}
	all = append(all, set(s.GetTask(), "task.", has...)...)
	all = append(all, set(s.GetAudience(), "audience.", "name", "kind", "window_ms")...)
	if s.GetWorkflow() != nil {
		all = append(all, "workflow")
	}
	return all
}

// set are the fields of a message that have a value, but for some.
func set(m proto.Message, under string, but ...string) (all []string) {
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(but, f.TextName()) {
			all = append(all, under+f.TextName())
		}
		return true
	})
	slices.Sort(all)
	return all
}
