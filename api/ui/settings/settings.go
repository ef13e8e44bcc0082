package settings

import (
	"context"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// settingsPage is who looks, and the tokens that they may change.
type settingsPage struct {
	Server *ddqv1.DescribeServerResponse
	Me     *ddqv1.WhoAmIResponse
	Now    time.Time
	Tokens []*ddqv1.Token
	May    bool // make tokens
}

func (s *section) settings(ctx context.Context, _ url.Values) (frame.View, error) {
	server, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	me, err := s.access.WhoAmI(ctx, &ddqv1.WhoAmIRequest{})
	if err != nil {
		return frame.View{}, err
	}
	p := settingsPage{Server: server, Me: me, Now: now, May: frame.Who(ctx).Tokens()}
	if p.May {
		list, err := s.access.ListTokens(ctx, &ddqv1.ListTokensRequest{})
		if err != nil {
			return frame.View{}, err
		}
		p.Tokens = list.GetTokens()
	}
	return frame.View{Title: "Settings", Page: "settings", Body: p}, nil
}

// madePage has the secret of a token, which is shown once.
type madePage struct {
	Token  *ddqv1.Token
	Secret string
}

// createToken answers with the secret itself: no address leads to it.
func (s *section) createToken(ctx context.Context, form url.Values) (frame.View, error) {
	create := &ddqv1.CreateTokenRequest{Name: form.Get("name")}
	for _, text := range strings.Fields(form.Get("grants")) {
		g, err := auth.ParseGrant(text)
		if err != nil {
			return frame.View{}, status.Error(codes.InvalidArgument, err.Error())
		}
		create.Grants = append(create.Grants, &ddqv1.Grant{Verbs: g.Verbs.Names(), Namespace: g.Namespace, Topics: string(g.Topics)})
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
	return frame.View{Title: "Token " + frame.Cut(t.GetName()), Page: "settings", Body: madePage{t, secret}}
}

func (s *section) revokeToken(ctx context.Context, form url.Values) (string, string, error) {
	_, err := s.access.RevokeToken(ctx, &ddqv1.RevokeTokenRequest{Id: form.Get("id")})
	if status.Code(err) == codes.NotFound {
		return frame.Link("settings"), "gone", nil
	}
	return frame.Link("settings"), "revoked", err
}
