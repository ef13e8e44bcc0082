package server

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/requestid"
	"github.com/ddq-io/ddq/api/server/status"
)

// Logins are those of browsers: a token is exchanged for a key once, and calls of the channel are
// made as who has the key. Errors are gRPC statuses.
type Logins struct{ s *Server }

// Logins of this server.
func (s *Server) Logins() *Logins { return &Logins{s} }

// On reports whether callers have to say who they are. Otherwise nobody logs in.
func (l *Logins) On() bool { return l.s.who.On() }

// Login returns the key that stands for a token, and when the token expires; zero: never.
func (l *Logins) Login(ctx context.Context, token string) (key string, expires time.Time, err error) {
	secret, s, err := l.s.config.Access.Logins.Begin(ctx, token)
	if err != nil {
		var e *problem.Error
		if l.s.config.Audit != nil && errors.As(err, &e) {
			l.s.config.Audit.Refused(ctx, &audit.Call{Method: "login", ID: requestid.Given(ctx)}, e.Reason)
		}
		return "", time.Time{}, status.Of(ctx, l.s.queue.log, "login", err)
	}
	l.s.queue.log.InfoContext(ctx, "logged in", "token", s.ID, "name", s.Name)
	return secret.Reveal(), s.Expires, nil
}

// Logout ends what a key stands for.
func (l *Logins) Logout(ctx context.Context, key string) error {
	if err := l.s.config.Access.Logins.End(ctx, key); err != nil {
		return status.Of(ctx, l.s.queue.log, "logout", err)
	}
	return nil
}

// As returns a context of calls by whom a key stands for.
func (l *Logins) As(ctx context.Context, key string) (context.Context, error) {
	s, e := l.s.config.Access.Logins.Who(ctx, key)
	if e != nil {
		return nil, status.Of(ctx, l.s.queue.log, "login", e)
	}
	return access.WithCaller(ctx, s), nil
}
