package settings

import (
	"context"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// createToken answers with the secret itself: no address leads to it.
func (s *section) createToken(ctx context.Context, form url.Values) (frame.View, error) {
	create := &ddqv1.CreateTokenRequest{Name: form.Get("name")}
	for _, text := range strings.Fields(form.Get("grants")) {
		grant, err := auth.ParseGrant(text)
		if err != nil {
			return frame.View{}, status.Error(codes.InvalidArgument, err.Error())
		}
		if grant.Namespace != auth.All {
			grant.Namespace = "" // that of the visitor
		}
		create.Grants = append(create.Grants, &ddqv1.Grant{Verbs: grant.Verbs.Names(), Namespace: grant.Namespace, Topics: string(grant.Topics)})
	}
	days, err := frame.Number(form, "days")
	if err != nil {
		return frame.View{}, err
	}
	if days < 1 || days > 3650 {
		return frame.View{}, status.Error(codes.InvalidArgument, "a token lasts 1 to 3650 days")
	}
	create.Life = durationpb.New(time.Duration(days) * 24 * time.Hour)
	made, err := s.access.CreateToken(ctx, create)
	return secretView(made.GetToken(), made.GetSecret()), err
}

func (s *section) rotateToken(ctx context.Context, form url.Values) (frame.View, error) {
	made, err := s.access.RotateToken(ctx, &ddqv1.RotateTokenRequest{Id: form.Get("id"), Overlap: durationpb.New(24 * time.Hour)})
	return secretView(made.GetToken(), made.GetSecret()), err
}

func secretView(t *ddqv1.Token, secret string) frame.View {
	return frame.View{Title: "Token " + frame.Cut(t.GetName()), Page: "settings", Body: made(t, secret)}
}

// made has the secret of a token, which is shown once.
func made(t *ddqv1.Token, secret string) g.Node {
	text := "It may: " + grantsText(t.GetGrants()) + ". "
	if until := t.GetExpireTime(); until != nil {
		text += "It expires at " + frame.InstantText(until) + "."
	}
	return g.Group{
		h.P(h.Class("warning"), h.Role("alert"), g.Text("Copy it now: it is not shown again, and kept nowhere.")),
		h.Pre(g.Text(secret)),
		h.P(g.Text(text)),
		h.P(frame.Anchor("Back to the settings", "settings")),
	}
}

func (s *section) revokeToken(ctx context.Context, form url.Values) (string, string, error) {
	_, err := s.access.RevokeToken(ctx, &ddqv1.RevokeTokenRequest{Id: form.Get("id")})
	if status.Code(err) == codes.NotFound {
		return frame.Link("settings"), "gone", nil
	}
	return frame.Link("settings"), "revoked", err
}
