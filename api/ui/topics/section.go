package topics

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/coming"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	queue   ddqv1.DelayQueueServiceClient
	admin   ddqv1.AdminServiceClient
	crowded *crowded

	forecasts *coming.Forecasts
}

// New returns the section, of the server at the other end of conn, with forecasts of it.
func New(conn grpc.ClientConnInterface, forecasts *coming.Forecasts) frame.Section {
	s := &section{queue: ddqv1.NewDelayQueueServiceClient(conn), admin: ddqv1.NewAdminServiceClient(conn), crowded: newCrowded(), forecasts: forecasts}
	return frame.Section{
		Pages: map[string]frame.Maker{
			"{$}":   s.overview,
			"topic": s.topic,
		},
		Answers: map[string]frame.Maker{"topic/policy": s.reviewPolicy},
		Actions: map[string]frame.Action{
			"topic/create":    s.createTopic,
			"topic/configure": s.configureTopic,
			"topic/pause":     s.pauseTopic,
			"topic/resume":    s.resumeTopic,
			"topic/purge":     s.purgeTopic,
			"topic/delete":    s.deleteTopic,
		},
	}
}
