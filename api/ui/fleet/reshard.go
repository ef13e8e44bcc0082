package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// resharding is how many shards a topic has, and what is left in those of before.
type resharding struct {
	topic  *ddqv1.Topic
	former []*ddqv1.Shard // that are not empty, as far as the first thousand shards go
	admin  bool           // the visitor may give it another number
	wrong  frame.Mistakes
	shards string // as it was written
}

func (s *section) resharding(ctx context.Context, name string) (*resharding, error) {
	about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: name})
	if err != nil {
		return nil, err
	}
	r := &resharding{topic: about.GetTopic(), admin: frame.Who(ctx).On(name).Admin, wrong: frame.Mistakes{}}
	if r.topic.GetFormerShards() == 0 {
		return r, nil
	}
	list, err := s.admin.ListShards(ctx, &ddqv1.ListShardsRequest{Topic: name, PageSize: mapPage})
	if err != nil {
		return nil, err
	}
	for _, shard := range list.GetShards() {
		if shard.GetFormer() {
			r.former = append(r.former, shard)
		}
	}
	return r, nil
}

// state says how far a reshard is that is under way.
func (r *resharding) state() g.Node {
	n := r.topic.GetFormerShards()
	if n == 0 {
		return nil
	}
	var waiting, running int64
	for _, s := range r.former {
		waiting += s.GetDepth().GetScheduled() + s.GetDepth().GetReady()
		running += s.GetDepth().GetRunning()
	}
	return frame.Warning(fmt.Sprintf("A reshard is under way: %d former shards are not empty yet. %s tasks wait in them, and %s are running. They take no new task, and go when they are empty.",
		n, frame.CountText(waiting), frame.CountText(running)))
}

// act is where another number is given, for those who may.
func (r *resharding) act() g.Node {
	if !r.admin {
		return nil
	}
	return frame.Fold("Give it another number of shards", h.Class("act"), r.form())
}

func (r *resharding) form() g.Node {
	text := r.shards
	if text == "" {
		text = fmt.Sprint(r.topic.GetPolicy().GetShards())
	}
	return frame.Post("topic/reshard", h.Class("column"), frame.Hidden("topic", r.topic.GetName()),
		h.P(h.Class("quiet"), g.Text("New tasks go to the new shards at once. Those that are there stay in the former shards until they end; up to three generations of these may be left.")),
		r.wrong.Input("Shards", "shards", h.Type("number"), h.Min("1"), h.Max("256"), h.Required(), h.Value(text)),
		r.wrong.Input("To reshard the topic, type its name", "sure", h.Required(), frame.AsTyped()),
		frame.Danger("Reshard"))
}

// reshardTopic gives a topic another number of shards.
func (s *section) reshardTopic(ctx context.Context, form url.Values) (string, string, error) {
	name, err := frame.Required(form, "topic")
	if err != nil {
		return "", "", err
	}
	wrong := frame.Mistakes{}
	n, err := frame.Number(form, "shards")
	if err != nil || n < 1 || n > 256 {
		wrong.Add("shards", "A topic has 1 to 256 shards.")
	}
	if form.Get("sure") != name {
		wrong.Add("sure", "The name was not typed as it is.")
	}
	if len(wrong) > 0 {
		return "", "", s.askReshard(ctx, name, form.Get("shards"), wrong, http.StatusBadRequest)
	}
	_, err = s.admin.ReshardTopic(ctx, &ddqv1.ReshardTopicRequest{Name: name, Shards: int32(n)}) //nolint:gosec // it is small
	switch status.Code(err) {
	case codes.FailedPrecondition:
		wrong.Add("shards", status.Convert(err).Message())
		return "", "", s.askReshard(ctx, name, form.Get("shards"), wrong, http.StatusConflict)
	case codes.InvalidArgument:
		wrong.Add("shards", status.Convert(err).Message())
		return "", "", s.askReshard(ctx, name, form.Get("shards"), wrong, http.StatusBadRequest)
	}
	return frame.Link("shards", "topic", name), "resharded", err
}

// askReshard asks once more for what was wrong. Those who may not are told that, and nothing else.
func (s *section) askReshard(ctx context.Context, name, shards string, wrong frame.Mistakes, code int) error {
	r, err := s.resharding(ctx, name)
	if err != nil {
		return err
	}
	if !r.admin {
		return status.Error(codes.PermissionDenied, "topics are resharded by who may administer them")
	}
	r.wrong, r.shards = wrong, shards
	return &frame.Question{View: frame.View{Title: "Reshard " + frame.Cut(name), Page: "nodes", Code: code, Body: g.Group{
		h.P(frame.OfTopic(name), g.Text(" · "), frame.Anchor("its shards", "shards", "topic", name)), r.state(), frame.Alert("Nothing was changed."), r.form(),
	}}}
}
