package tasks

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

const (
	// mostExamined is how many dead letters are put into groups, and examinedOnce how many are read at a time:
	// they come with their payloads.
	mostExamined = 2000
	examinedOnce = 200
	// examineFor is how long that takes at the most.
	examineFor = 2 * time.Second
	// mostReads is how often they are read: a filter may leave a page of them empty.
	mostReads = 100
	// groupsShown is how many groups a page has.
	groupsShown = 100
)

// grouping are the first dead letters that a filter matches, by reason and error.
type grouping struct {
	deadPage
	examined int
	all      []*deadGroup
	more     bool // there are dead letters that were not examined
}

// deadGroup are dead letters that died of the same.
type deadGroup struct {
	reason  ddqv1.DeadReason
	print   string
	count   int
	example *ddqv1.Task // the newest
}

func (s *section) deadGroups(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := &grouping{deadPage: deadPage{Topic: topic, Reason: query.Get("reason"), Error: query.Get("error"), Wrong: frame.Mistakes{}, Now: now, May: frame.Who(ctx).On(topic)}}
	if filter := readDead(query, p.Wrong); len(p.Wrong) == 0 {
		if err := s.examine(ctx, p, filter); err != nil && !p.Wrong.Take(err, deadFields) {
			return frame.View{}, err
		}
	}
	return frame.View{Title: "Dead letters of " + frame.Cut(topic) + " by error", Page: "overview", Code: p.Wrong.Code(), Body: p.body()}, nil
}

// examine reads dead letters, and puts them into groups. What cannot be read in time is left out.
func (s *section) examine(ctx context.Context, p *grouping, filter *ddqv1.DeadLetterFilter) error {
	short, cancel := context.WithTimeout(ctx, examineFor)
	defer cancel()
	r := &ddqv1.ListDeadLettersRequest{Topic: p.Topic, Filter: filter, PageSize: examinedOnce}
	by := make(map[string]*deadGroup)
	for range mostReads {
		list, err := s.admin.ListDeadLetters(short, r)
		switch {
		case err != nil && p.examined > 0 && short.Err() != nil:
			p.more = true
		case err != nil:
			return err
		}
		p.add(by, list.GetTasks())
		if r.PageToken = list.GetNextPageToken(); r.PageToken == "" || p.examined >= mostExamined {
			break
		}
	}
	p.more = p.more || r.PageToken != ""
	slices.SortStableFunc(p.all, func(a, b *deadGroup) int { return cmp.Compare(b.count, a.count) })
	return nil
}

// add puts dead letters into groups.
func (p *grouping) add(by map[string]*deadGroup, tasks []*ddqv1.Task) {
	for _, t := range tasks {
		print := fingerprint(t.GetLastError(), t.GetId())
		key := fmt.Sprint(t.GetDeadReason(), " ", print)
		one := by[key]
		if one == nil {
			one = &deadGroup{reason: t.GetDeadReason(), print: print, example: t}
			by[key], p.all = one, append(p.all, one)
		}
		if t.GetFinishedAt().AsTime().After(one.example.GetFinishedAt().AsTime()) {
			one.example = t
		}
		one.count++
		p.examined++
	}
}

func (p *grouping) body() g.Node {
	return g.Group{
		h.P(frame.OfTopic(p.Topic)),
		p.filter("dead/groups"),
		g.If(len(p.Wrong) == 0, p.list()),
	}
}

func (p *grouping) list() g.Node {
	if len(p.all) == 0 {
		return h.P(g.Text("There are none."))
	}
	said := frame.CountText(int64(p.examined)) + " dead letters were examined, which are all."
	if p.more {
		said = "Only the first " + frame.CountText(int64(p.examined)) + " dead letters were examined: there are more."
	}
	if n := len(p.all); n > groupsShown {
		said += fmt.Sprintf(" They are of %s kinds, of which the %d that have most are shown.", frame.CountText(int64(n)), groupsShown)
	}
	heads := g.Group{frame.Heads("error"), frame.NumberHeads("dead letters"), frame.Heads("reason", "the newest", "example"), g.If(p.May.Operate, frame.Heads("act"))}
	return g.Group{
		h.P(h.Class("quiet"), g.Text(said)),
		frame.Table("Dead letters by error", "Numbers, times and ids in errors are left out: "+sign, heads, g.Map(p.all[:min(len(p.all), groupsShown)], p.group)),
	}
}

func (p *grouping) group(one *deadGroup) g.Node {
	which := []string{"topic", p.Topic, "reason", frame.StateText(one.reason), "error", cmp.Or(common(one.print), p.Error)}
	name := cmp.Or(one.print, "no error")
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(name), "dead", which...)),
		frame.Digits(one.count),
		frame.Cells(frame.StateText(one.reason)),
		h.Td(frame.Time(one.example.GetFinishedAt(), p.Now)),
		h.Td(frame.Anchor(frame.Cut(one.example.GetId()), "task", "topic", p.Topic, "id", one.example.GetId())),
		g.If(p.May.Operate, h.Td(h.Class("acts"), frame.Post("dead/count", frame.Hidden(which...), frame.Hidden("group", fmt.Sprint(one.count)),
			frame.Button("Count and choose", h.Class("plain"), h.Aria("label", "Count and choose what to do with "+frame.Cut(name)))))),
	)
}
