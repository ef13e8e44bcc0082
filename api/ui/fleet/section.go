package fleet

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	admin ddqv1.AdminServiceClient
}

// New returns the section, of the server at the other end of conn.
func New(conn grpc.ClientConnInterface) frame.Section {
	s := &section{admin: ddqv1.NewAdminServiceClient(conn)}
	return frame.Section{
		Pages: map[string]frame.Maker{
			"nodes":   s.nodes,
			"shards":  s.shards,
			"workers": s.workers,

			"shards/map": s.shardMap,
		},
		Actions: map[string]frame.Action{
			"node/drain":    s.drainNode,
			"node/undrain":  s.undrainNode,
			"shard/release": s.releaseShard,
			"topic/reshard": s.reshardTopic,
		},
	}
}
