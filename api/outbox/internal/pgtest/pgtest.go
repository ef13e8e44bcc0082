//go:build linux

// Package pgtest gives tests databases of a real PostgreSQL server.
package pgtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ddq-io/ddq/bench/postgres"
)

// Server is a PostgreSQL server of tests.
type Server struct {
	*postgres.Server
	bases atomic.Int64 // databases made so far
}

// Start makes a server and returns when it answers.
func Start() (*Server, error) {
	s, err := postgres.Start()
	return &Server{Server: s}, err
}

// Database makes an empty database for a test, and returns its address.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	name := fmt.Sprintf("base%d", s.bases.Add(1))
	if _, err := c.Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

// Pool is a pool of connections that ends with the test.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
