package frame

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Logs is a cell with what a node logs now.
func Logs(l *ddqv1.NodeLogs) g.Node {
	if l == nil {
		return h.Td(Quiet("not known"))
	}
	until := func(ms int64) g.Node {
		return g.Group{g.Text(" until "), Exact(timestamppb.New(time.UnixMilli(ms)))}
	}
	all := g.Group{g.Text(cmp.Or(StateText(l.GetLevel()), "nothing"))}
	if ms := l.GetUntilUnixMs(); ms != 0 {
		all = append(all, until(ms))
	}
	for _, t := range l.GetTopics() {
		all = append(all, h.Div(g.Text("tasks of "), Anchor(Cut(t.GetTopic()), "topic", "name", t.GetTopic()), until(t.GetUntilUnixMs())))
	}
	return h.Td(all)
}
