package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/token"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
)

// program enqueues tasks and works on them, over one connection.
type program struct {
	*testing.T
	client *client.Client
	came   chan string
	stop   context.CancelFunc
	over   sync.WaitGroup
	err    error        // of the worker, once it is over
	warned bytes.Buffer // by the worker
}

func startProgram(t *testing.T, conn *grpc.ClientConn) *program {
	ctx, stop := context.WithCancel(t.Context())
	p := &program{T: t, client: client.New(conn, client.Config{}), came: make(chan string, 10), stop: stop}
	log := slog.New(slog.NewTextHandler(&p.warned, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p.over.Go(func() {
		p.err = worker.New(conn, worker.Config{Topic: "mail", Logger: log}, worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
			p.came <- task.ID
			return nil
		})).Run(ctx)
	})
	return p
}

// passes enqueues a task, which has to come at once.
func (p *program) passes(id string) {
	p.Helper()
	if _, err := p.client.Enqueue(p.Context(), client.Task{Topic: "mail", ID: id}); err != nil {
		p.Errorf("%s: %v", id, err)
		return
	}
	select {
	case got := <-p.came:
		if got != id {
			p.Errorf("%s came, want %s", got, id)
		}
	case <-time.After(5 * time.Second):
		p.Errorf("%s did not come", id)
	}
}

// end stops the worker, and returns how it ended.
func (p *program) end() error {
	p.stop()
	p.over.Wait()
	_ = p.client.Close()
	return p.err
}

// A producer and a worker go on for hours with tokens of ten minutes.
func TestProgramsOutliveTheirTokens(t *testing.T) {
	knowingBubble(t, func(r *knowingRig) {
		r.bind(&ddqv1.Binding{Name: "ops", Subject: &ddqv1.Binding_Claim{Claim: &ddqv1.ClaimSubject{Issuer: r.issuer.URL, Name: "groups", Value: "ops"}}}, "producer,worker:mail")
		issued := 0
		tokens := token.Issued(func(context.Context) (token.Token, error) {
			issued++
			return token.Token{Text: r.issuer.Sign(r.issuer.Claims("mailer", "ops")), Expires: time.Now().Add(10 * time.Minute)}, nil
		})
		conn := r.dial(r.secure(r.T, ""), tokens.DialOptions(true)...)
		defer conn.Close()
		p := startProgram(r.T, conn)
		for i := range 120 {
			p.passes(fmt.Sprint(i))
			time.Sleep(time.Minute)
		}
		if issued < 120/10 || issued > 120/7+1 {
			t.Errorf("%d tokens in two hours", issued)
		}
		if err := p.end(); err != nil || p.warned.Len() > 0 {
			t.Errorf("the worker ended with %v, and warned of %s", err, p.warned.String())
		}
	})
}

// A file that has another token in time is enough for programs to go on. Without one they end.
func TestProgramsFollowTheFileOfTheirToken(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		name := filepath.Join(t.TempDir(), "token")
		write := func(secret string) {
			t.Helper()
			if err := os.WriteFile(name, []byte(secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		calls := ddqv1.NewAccessServiceClient(r.conn)
		secret, id := r.token(0, "producer,worker:mail")
		write(secret)
		conn := r.dial(insecure.NewCredentials(), token.File(name).DialOptions(false)...)
		defer conn.Close()
		p := startProgram(r.T, conn)
		p.passes("first")
		for i := range 3 {
			made, err := calls.RotateToken(r.as(r.root), &ddqv1.RotateTokenRequest{Id: id, Overlap: durationWire(time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
			id = made.Token.Id
			write(made.Secret)
			time.Sleep(2 * time.Minute)
			p.passes(fmt.Sprint("rotated-", i))
		}
		if _, err := calls.RevokeToken(r.as(r.root), &ddqv1.RevokeTokenRequest{Id: id}); err != nil {
			t.Fatal(err)
		}
		p.over.Wait()
		if status.Code(p.err) != codes.Unauthenticated {
			t.Errorf("the worker of a token that was revoked ended with %v", p.err)
		}
		if _, err := p.client.Enqueue(r.Context(), client.Task{Topic: "mail"}); err == nil {
			t.Error("a token that was revoked enqueues")
		}
		_ = p.end()
	})
}

// always is a token that programs were started with.
type always string

func (a always) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(a)}, nil
}

func (a always) RequireTransportSecurity() bool { return false }

// A program with the token that was rotated goes on until the overlap is over, or the token is
// revoked.
func TestProgramsGoOnWhileTokensOverlap(t *testing.T) {
	for what, revoked := range map[string]bool{"to the end": false, "until it is revoked": true} {
		t.Run(what, func(t *testing.T) {
			guardedBubble(t, func(r *guardedRig) {
				calls := ddqv1.NewAccessServiceClient(r.conn)
				secret, id := r.token(0, "producer,worker:mail")
				conn := r.dial(insecure.NewCredentials(), grpc.WithPerRPCCredentials(always(secret)))
				defer conn.Close()
				p := startProgram(r.T, conn)
				p.passes("before")
				if _, err := calls.RotateToken(r.as(r.root), &ddqv1.RotateTokenRequest{Id: id, Overlap: durationWire(time.Hour)}); err != nil {
					t.Fatal(err)
				}
				for i := range 50 {
					time.Sleep(time.Minute)
					p.passes(fmt.Sprint("overlap-", i))
				}
				if revoked {
					if _, err := calls.RevokeToken(r.as(r.root), &ddqv1.RevokeTokenRequest{Id: id}); err != nil {
						t.Fatal(err)
					}
				}
				begun := time.Now()
				p.over.Wait()
				if status.Code(p.err) != codes.Unauthenticated {
					t.Errorf("the worker ended with %v", p.err)
				}
				if took := time.Since(begun); revoked && took > 5*time.Second || !revoked && (took < 9*time.Minute || took > 11*time.Minute) {
					t.Errorf("it ended after %v", took)
				}
				_ = p.end()
			})
		})
	}
}
