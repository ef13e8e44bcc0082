package fleet

import (
	"context"
	"net/url"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// nodesPage is the fleet, and the node that answers.
type nodesPage struct {
	Server *ddqv1.DescribeServerResponse
	Nodes  []*ddqv1.Node
	Fleet  bool // the visitor may move what they own
}

func (s *section) nodes(ctx context.Context, _ url.Values) (frame.View, error) {
	server, _, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.admin.ListNodes(ctx, &ddqv1.ListNodesRequest{})
	if err != nil {
		return frame.View{}, err
	}
	return frame.View{Title: "Nodes", Page: "nodes", Live: true, Body: nodesPage{server, list.GetNodes(), frame.Who(ctx).Fleet()}}, nil
}
