package delivery

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// maxClient bounds what is kept of a user agent, in bytes.
const maxClient = 128

// ClientOf is the user agent of the program that makes a call; empty when it sent none.
func ClientOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	said := md.Get("user-agent")
	if len(said) == 0 {
		return ""
	}
	return said[0][:min(len(said[0]), maxClient)]
}
