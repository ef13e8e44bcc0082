package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
)

// Origin is where a call comes from, by what its connection shows.
type Origin struct {
	Addr netip.Addr // zero: not over IP

	// Chain is the certificate of the client, which was verified, and those that signed it;
	// empty: it showed none.
	Chain []*x509.Certificate

	// Request is the id of the HTTP request that the call is part of; empty: of none.
	Request string
}

// OriginFrom is that of a connection. state may be nil: without TLS.
func OriginFrom(addr net.Addr, state *tls.ConnectionState) Origin {
	var o Origin
	if tcp, ok := addr.(*net.TCPAddr); ok {
		o.Addr = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	if state != nil && len(state.VerifiedChains) > 0 {
		o.Chain = state.VerifiedChains[0]
	}
	return o
}

type originKey struct{}

// WithOrigin returns a context of calls from there.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns where a call comes from.
func OriginOf(ctx context.Context) (o Origin, known bool) {
	o, known = ctx.Value(originKey{}).(Origin)
	return o, known
}
