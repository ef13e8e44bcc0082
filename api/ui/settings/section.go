package settings

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	admin  ddqv1.AdminServiceClient
	access ddqv1.AccessServiceClient
}

// New returns the section, of the server at the other end of conn.
func New(conn grpc.ClientConnInterface) frame.Section {
	s := &section{admin: ddqv1.NewAdminServiceClient(conn), access: ddqv1.NewAccessServiceClient(conn)}
	return frame.Section{
		Pages: map[string]frame.Maker{
			"settings":  s.settings,
			"namespace": s.namespace,
			"loglevel":  s.logLevel,
		},
		Actions: map[string]frame.Action{
			"tokens/revoke": s.revokeToken,
		},
		Answers: map[string]frame.Maker{
			"tokens/create": s.createToken,
			"tokens/rotate": s.rotateToken,
			"loglevel":      s.setLogLevel,
		},
	}
}
