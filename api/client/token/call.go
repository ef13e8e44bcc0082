package token

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// DialOptions make the calls of a connection show the token of their moment. client.Config.Tokens does so for
// the connections of a client; these are for others, such as those of worker.Config.Direct. With secure no call
// is made without TLS.
func (s *Source) DialOptions(secure bool) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithPerRPCCredentials(bearer{s, secure}),
		grpc.WithChainUnaryInterceptor(s.unary),
		grpc.WithChainStreamInterceptor(s.stream),
	}
}

// bearer shows the token that an interceptor chose.
type bearer struct {
	source *Source
	secure bool // over TLS only
}

// shownKey is under which the token of a call is found.
type shownKey struct{}

func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	text, chosen := ctx.Value(shownKey{}).(string)
	if !chosen { // such as that of a health check
		var err error
		if text, err = b.source.Token(ctx); err != nil {
			return nil, err
		}
	}
	return map[string]string{"authorization": "Bearer " + text}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// choose returns the token of a call, and the context of the call with it.
func (s *Source) choose(ctx context.Context) (with context.Context, text string, err error) {
	text, err = s.Token(ctx)
	return context.WithValue(ctx, shownKey{}, text), text, err
}

// unary makes a call, and once more if it was refused for a token that is replaced.
func (s *Source) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	with, text, err := s.choose(ctx)
	if err != nil {
		return err
	}
	err = invoke(with, method, request, reply, conn, opts...)
	if status.Code(err) != codes.Unauthenticated || !s.replaced(ctx, text) {
		return err
	}
	if with, _, err = s.choose(ctx); err != nil {
		return err
	}
	return invoke(with, method, request, reply, conn, opts...)
}

// stream begins a stream.
func (s *Source) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, begin grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	with, text, err := s.choose(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := begin(with, desc, conn, method, opts...)
	if err != nil {
		return nil, s.refused(ctx, text, err)
	}
	return &shown{ClientStream: stream, source: s, text: text}, nil
}

// shown is a stream that was begun with a token.
type shown struct {
	grpc.ClientStream
	source *Source
	text   string
	begun  bool // a message came: the token counted
}

// RecvMsg says of a stream that ends with its token that it broke: who begins another one hears whether what is to
// be shown by then counts.
func (r *shown) RecvMsg(m any) error {
	err := r.ClientStream.RecvMsg(m)
	switch {
	case err == nil:
		r.begun = true
		return nil
	case r.begun && status.Code(err) == codes.Unauthenticated:
		return ErrStreamEnded
	}
	return r.source.refused(r.Context(), r.text, err)
}

// refused is why a stream did not begin: it may with another token, if there is one.
func (s *Source) refused(ctx context.Context, text string, err error) error {
	if status.Code(err) != codes.Unauthenticated || !s.replaced(ctx, text) {
		return err
	}
	return ErrStreamEnded
}

// ErrStreamEnded is why a stream broke, or did not begin, whose token has ended: it may be begun anew with
// another one. Its code is Unavailable.
var ErrStreamEnded error = streamEnded{}

type streamEnded struct{}

func (streamEnded) Error() string { return "the token of the stream has ended" }

func (e streamEnded) GRPCStatus() *status.Status { return status.New(codes.Unavailable, e.Error()) }
