package session

import (
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/node"
)

// BackoffFlag is --backoff of a request.
type BackoffFlag struct{ node.Backoff }

// Own is the backoff for a request, nil when none was given.
func (b *BackoffFlag) Own() *client.Backoff {
	if b.Kind == 0 {
		return nil
	}
	return &client.Backoff{Kind: client.BackoffKind(b.Kind), Base: b.Base, Max: b.Max, JitterPercent: b.Jitter}
}

// BackoffText writes a backoff as --backoff takes it, "" when there is none.
func BackoffText(b *client.Backoff) string {
	if b == nil {
		return ""
	}
	return node.BackoffText(b.Kind.String(), b.Base, b.Max, b.JitterPercent)
}
