package coming

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the page.
type section struct {
	admin     ddqv1.AdminServiceClient
	schedules ddqv1.ScheduleServiceClient
}

// New returns forecasts for the pages of other sections, and the section, which ends them, of the server at the
// other end of conn.
func New(conn grpc.ClientConnInterface) (*Forecasts, frame.Section) {
	s := &section{ddqv1.NewAdminServiceClient(conn), ddqv1.NewScheduleServiceClient(conn)}
	forecasts := newForecasts(s.schedules)
	return forecasts, frame.Section{Pages: map[string]frame.Maker{"due": s.whose}, Close: forecasts.close}
}
