package schedules

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/coming"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	admin     ddqv1.AdminServiceClient
	schedules ddqv1.ScheduleServiceClient

	forecasts *coming.Forecasts
}

// New returns the section, of the server at the other end of conn, with forecasts of it.
func New(conn grpc.ClientConnInterface, forecasts *coming.Forecasts) frame.Section {
	s := &section{admin: ddqv1.NewAdminServiceClient(conn), schedules: ddqv1.NewScheduleServiceClient(conn), forecasts: forecasts}
	return frame.Section{
		Pages: map[string]frame.Maker{
			"schedules": s.scheduleList,
			"schedule":  s.schedule,

			"schedule/new":      s.newSchedule,
			"schedule/edit":     s.editSchedule,
			"schedule/backfill": s.backfill,
			"dryrun":            s.dryRun,
		},
		Actions: map[string]frame.Action{
			"schedule/pause":   s.pauseSchedule,
			"schedule/resume":  s.resumeSchedule,
			"schedule/trigger": s.triggerSchedule,
			"schedule/delete":  s.deleteSchedule,

			"schedule/put":             s.putSchedule,
			"schedule/preview":         s.previewSchedule,
			"schedule/backfill/start":  s.startBackfill,
			"schedule/backfill/cancel": s.cancelBackfill,
		},
	}
}
