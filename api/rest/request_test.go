package rest

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestHalfSentBodiesEnd: whoever sends a part of a body, to whatever is at the port, holds a connection for a
// bounded time. An answer to all of one may take as long as it likes.
func TestHalfSentBodiesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		request string
		within  time.Duration
	}{
		"to a page":               {"POST /ui/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\na=", time.Minute},
		"to a page, in chunks":    {"POST /ui/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na=\r\n", 4 * time.Minute},
		"where none is read":      {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", time.Minute},
		"where nothing is":        {"POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", time.Minute},
		"to a name of others":     {"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10\r\n\r\n", time.Minute},
		"all, with a slow answer": {"POST /ui/slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\nConnection: close\r\n\r\na=b", 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				port, err := NewPort(Config{}, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				if err := port.Route("/healthz", Rule{Public: true}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); err != nil {
					t.Fatal(err)
				}
				port.ServePages("/ui", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					err := r.ParseForm()
					if r.URL.Path != "/ui/slow" {
						return
					}
					time.Sleep(time.Hour)
					if err != nil || r.FormValue("a") != "b" || r.Context().Err() != nil {
						t.Errorf("%v, %v, %v", err, r.Form, r.Context().Err())
					}
				}))
				near, far := net.Pipe()
				l := oneConn{make(chan net.Conn, 1)}
				l.conn <- far
				server := &http.Server{Handler: port, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
				go server.Serve(l) //nolint:errcheck // ends with Close
				defer server.Close()
				defer close(l.conn)
				defer near.Close()
				_ = near.SetDeadline(time.Now().Add(c.within))
				if _, err := io.WriteString(near, c.request); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, near); err != nil {
					t.Errorf("it is not closed within %v: %v", c.within, err)
				}
			})
		})
	}
}
