package party

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// RoleSDK is the role of a worker of another SDK.
const RoleSDK = "sdk"

// The languages of the other SDKs.
const (
	Python     = "python"
	TypeScript = "typescript"
)

// sdkConcurrency is how many tasks of a topic such a worker runs at a time.
const sdkConcurrency = 8

//go:embed sdks/worker.py
var pythonWorker string

//go:embed sdks/worker.mjs
var typeScriptWorker string

// sdk stands between a worker program, which it has started, and the nodes: a proxy that writes
// down what the program receives and settles, and now and then loses an answer. The program asks
// it what is planned for an attempt, and tells it what a handler does once.
type sdk struct {
	*hands

	mu     sync.Mutex
	rand   *rand.Rand        // of what is lost, and how; guarded by mu
	passes int               // answers until the next is lost; guarded by mu
	holds  map[string]*grasp // what is known of attempts, by the hold in hex; guarded by mu
	err    error             // the first that the program should not have said; guarded by mu
}

// grasp is an attempt, as it was delivered and as its handler was told to end it.
type grasp struct {
	sum string // of the payload
	*todo
}

// playSDK has a program in another language take tasks until its orders end.
func playSDK(ctx context.Context, c *Config, log *ledger.Writer, orders io.Reader) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sdk{
		hands: &hands{c: c, log: log}, holds: map[string]*grasp{},
		rand: rand.New(rand.NewPCG(c.Seed, plan.Draw(c.Seed, c.Name, "lost"))),
	}
	s.passes = s.rand.IntN(firstLost)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if why := <-served; !errors.Is(why, http.ErrServerClosed) {
			err = errors.Join(err, why)
		}
	}()
	program, err := s.program(ctx, "http://"+l.Addr().String())
	if err != nil {
		return err
	}
	in, err := program.StdinPipe()
	if err != nil {
		return err
	}
	if err := program.Start(); err != nil {
		return err
	}
	stop := func() { _, _ = fmt.Fprintln(in, "stop") } // a program that has ended is heard of below
	go obey(orders, stop, s.hang)                      // ends with the process at the latest
	if err := program.Wait(); err != nil {
		return fmt.Errorf("the worker in %s: %w", c.SDK, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// program is the worker, as it is started. It is in the process group of this one: both are killed
// and paused together.
func (s *sdk) program(ctx context.Context, url string) (*exec.Cmd, error) {
	dir := filepath.Join(s.c.SDKDir, s.c.SDK)
	args := append([]string{url, s.c.Name, strconv.Itoa(sdkConcurrency)}, plan.Topics()...)
	var cmd *exec.Cmd
	switch s.c.SDK {
	case Python:
		cmd = exec.CommandContext(ctx, "python3", append([]string{"-B", "-c", pythonWorker}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	case TypeScript:
		cmd = exec.CommandContext(ctx, "node", append([]string{"--input-type=module", "--eval", typeScriptWorker, "--", dir}, args...)...)
	default:
		return nil, fmt.Errorf("no SDK is called %q", s.c.SDK)
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd, nil
}

func (s *sdk) handler() http.Handler {
	way := &way{addrs: s.c.HTTP}
	nodes := &http.Transport{DialContext: way.dial, MaxIdleConnsPerHost: 2 * len(plan.Topics()) * sdkConcurrency, DisableCompression: true}
	mux := http.NewServeMux()
	mux.Handle("/", &httputil.ReverseProxy{
		Transport: tap.NewTransport(nodes, s, s.loses),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "nodes"
			r.Out.Header.Del("Accept-Encoding") // the tap reads answers
		},
		ErrorHandler: s.fails,
	})
	mux.HandleFunc("POST /plan", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, s.plan) })
	mux.HandleFunc("POST /ran", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, s.did) })
	return mux
}
