package changes

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	admin ddqv1.AdminServiceClient
	feeds *feeds
}

// New returns the section, of the server at the other end of conn.
func New(conn grpc.ClientConnInterface) frame.Section {
	s := &section{admin: ddqv1.NewAdminServiceClient(conn), feeds: newFeeds(ddqv1.NewDelayQueueServiceClient(conn))}
	return frame.Section{
		Pages:   map[string]frame.Maker{"changes": s.changes},
		Actions: map[string]frame.Action{"changes/keep": s.keep},
		Close:   s.feeds.close,
	}
}
