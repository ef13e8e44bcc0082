package cli

import (
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/node"
)

// backoffFlag is --backoff of a request.
type backoffFlag struct{ node.Backoff }

// own is the backoff for a request, nil when none was given.
func (b *backoffFlag) own() *client.Backoff {
	if b.Kind == 0 {
		return nil
	}
	return &client.Backoff{Kind: client.BackoffKind(b.Kind), Base: b.Base, Max: b.Max, JitterPercent: b.Jitter}
}

// backoffText writes a backoff as --backoff takes it, "" when there is none.
func backoffText(b *client.Backoff) string {
	if b == nil {
		return ""
	}
	return node.BackoffText(b.Kind.String(), b.Base, b.Max, b.JitterPercent)
}
