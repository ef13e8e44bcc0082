package audits

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the page.
type section struct {
	admin ddqv1.AdminServiceClient
	audit ddqv1.AuditServiceClient
}

// New returns the section, of the server at the other end of conn.
func New(conn grpc.ClientConnInterface) frame.Section {
	s := &section{admin: ddqv1.NewAdminServiceClient(conn), audit: ddqv1.NewAuditServiceClient(conn)}
	return frame.Section{Pages: map[string]frame.Maker{"audit": s.list}}
}
