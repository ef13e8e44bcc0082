package node

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Supervision is how systemd wants to hear from the process that it started; the zero
// value when it does not, or when somebody else did.
type Supervision struct {
	Socket   string        // where to say that the node serves
	Watchdog time.Duration // silence after which systemd kills it; 0: never
}

// SupervisionOf reads what systemd puts into the environment.
func SupervisionOf(environ []string) Supervision {
	vars := map[string]string{}
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok {
			vars[k] = v
		}
	}
	s := Supervision{Socket: vars["NOTIFY_SOCKET"]}
	us, err := strconv.ParseInt(vars["WATCHDOG_USEC"], 10, 64)
	if pid := vars["WATCHDOG_PID"]; err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.Watchdog = time.Duration(us) * time.Microsecond
	}
	return s
}

// tell sends one message to systemd.
func (s Supervision) tell(ctx context.Context, text string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unixgram", s.Socket) // "@" is an abstract socket
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return err
}

// pulse tells systemd that the node serves, and that it lives: until its end, or until
// only another start of the process helps. It owns one goroutine between start and stop.
type pulse struct {
	tell   func(ctx context.Context, text string) error
	every  time.Duration // 0: systemd does not ask
	failed func() error
	log    *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}
}

// newPulse returns nil when nobody listens.
func newPulse(s Supervision, failed func() error, log *slog.Logger) *pulse {
	if s.Socket == "" {
		return nil
	}
	return &pulse{tell: s.tell, every: s.Watchdog / 3, failed: failed, log: log}
}

func (p *pulse) start() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	p.say(ctx, "READY=1")
	go p.run(ctx)
}

func (p *pulse) run(ctx context.Context) {
	defer close(p.done)
	if p.every <= 0 {
		return
	}
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		if err := p.failed(); err != nil {
			p.log.Error("only another start helps: the watchdog is left to act", "err", err)
			p.say(ctx, "STATUS="+strings.Join(strings.Fields(err.Error()), " "))
			return
		}
		p.say(ctx, "WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *pulse) say(ctx context.Context, text string) {
	if err := p.tell(ctx, text); err != nil && ctx.Err() == nil {
		p.log.Warn("systemd is not told how the node is", "err", err)
	}
}

// stop is called when everything else has stopped: a drain may take longer than the
// watchdog waits.
func (p *pulse) stop() {
	if p == nil {
		return
	}
	p.cancel()
	<-p.done
}
