package redistest

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Client returns a client of the server, closed when the test ends.
func (s *Server) Client(tb TB) *redis.Client {
	tb.Helper()
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	client := redis.NewClient(opts)
	tb.Cleanup(func() { client.Close() })
	return client
}

// Do runs one command and returns its reply, nil for none.
func (s *Server) Do(tb TB, args ...any) any {
	tb.Helper()
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	client := redis.NewClient(opts)
	defer client.Close()
	reply, err := client.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		tb.Fatalf("%v: %v", args, err)
	}
	return reply
}
