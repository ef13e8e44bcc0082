package peer_test

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/peer"
)

// Nodes trust an authority from the moment that it is in their files, without another dialer.
func TestConnectionsUseTheSettingsOfTheirMoment(t *testing.T) {
	dir := t.TempDir()
	open := func(ca, name string) *certs.Certs {
		file := func(name string) string { return filepath.Join(dir, name) }
		if err := certs.Issue(certs.Request{Name: ca, CA: true, For: time.Hour}, nil, file(ca+".crt"), file(ca+".key")); err != nil {
			t.Fatal(err)
		}
		by, err := certs.Authority(file(ca+".crt"), file(ca+".key"))
		if err != nil {
			t.Fatal(err)
		}
		r := certs.Request{Name: name, Hosts: []string{"127.0.0.1"}, For: time.Hour}
		if err := certs.Issue(r, by, file(name+".crt"), file(name+".key")); err != nil {
			t.Fatal(err)
		}
		c, err := certs.Open(certs.Files{
			Cert: file(name + ".crt"), Key: file(name + ".key"), CA: file(ca + ".crt"), ClientCA: file(ca + ".crt"),
			ClientAuth: tls.RequireAndVerifyClientCert, Min: tls.VersionTLS12,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	server, stranger := open("ca", "server"), open("other", "stranger")
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(server.Server("h2"))))
	healthpb.RegisterHealthServer(s, health.NewServer())
	go s.Serve(lis)
	t.Cleanup(s.Stop)

	now := stranger
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(peer.TLS(func() *tls.Config { return now.Client("") })))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	check := func() error {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		return err
	}
	if check() == nil {
		t.Fatal("a server of another authority was believed")
	}
	now = server
	conn.ResetConnectBackoff()
	for start := time.Now(); check() != nil; {
		if time.Since(start) > time.Minute {
			t.Fatal("the new settings are not used:", check())
		}
	}
}
