package ui

import (
	"log/slog"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ui/audits"
	"github.com/ddq-io/ddq/api/ui/changes"
	"github.com/ddq-io/ddq/api/ui/coming"
	"github.com/ddq-io/ddq/api/ui/fleet"
	"github.com/ddq-io/ddq/api/ui/frame"
	"github.com/ddq-io/ddq/api/ui/operations"
	"github.com/ddq-io/ddq/api/ui/schedules"
	"github.com/ddq-io/ddq/api/ui/settings"
	"github.com/ddq-io/ddq/api/ui/tasks"
	"github.com/ddq-io/ddq/api/ui/topics"
	"github.com/ddq-io/ddq/api/ui/workflows"
)

// Prefix is where all paths of the pages begin.
const Prefix = frame.Prefix

// CheckPrefix says what is wrong with a prefix that the pages are to be mounted under.
func CheckPrefix(prefix string) error { return frame.CheckPrefix(prefix) }

// TraceID is where the id of a trace goes in the address of traces.
const TraceID = tasks.TraceID

// New returns the pages of the server at the other end of conn, which is its channel. Traces are looked
// at under an address that has TraceID in it; empty: pages name them only.
func New(conn grpc.ClientConnInterface, logins frame.Logins, traces string, log *slog.Logger) *frame.Frame {
	forecasts, due := coming.New(conn)
	return frame.New(conn, logins, log,
		topics.New(conn, forecasts), due, tasks.New(conn, traces), changes.New(conn), operations.New(conn), schedules.New(conn, forecasts), workflows.New(conn), fleet.New(conn), settings.New(conn), audits.New(conn))
}
