//go:build linux

package outbox_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/ddqtest"
	"github.com/ddq-io/ddq/api/worker"
)

var kills = flag.Int("outbox.kills", 6, "how often relays are killed")

// relayEnv says, in an environment, that the process is a relay: of which database. The other
// one has the address of ddq.
const (
	relayEnv   = "OUTBOX_TEST_RELAY"
	relayToEnv = "OUTBOX_TEST_RELAY_TO"
)

// relayProcess is a relay until it is killed.
func relayProcess() int {
	dsn, cfg := os.Getenv(relayEnv), outbox.RelayConfig{Lease: 200 * time.Millisecond}
	var db outbox.Database
	if dsn[:5] == "file:" {
		base, err := sql.Open("sqlite", dsn)
		if err != nil {
			panic(err)
		}
		db = outbox.SQLite(base)
	} else {
		pool, err := pgxpool.New(context.Background(), dsn)
		if err != nil {
			panic(err)
		}
		db = outbox.Postgres(pool)
	}
	c, err := client.Dial(os.Getenv(relayToEnv), client.Config{})
	if err != nil {
		panic(err)
	}
	if err := outbox.NewRelay(db, c, cfg).Run(context.Background()); err != nil {
		panic(err)
	}
	return 0
}

// relayChild starts this binary as a relay.
func relayChild(t *testing.T, dsn, addr string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), relayEnv+"="+dsn, relayToEnv+"="+addr)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
}

// book is what was committed and what workers saw.
type book struct {
	mu        sync.Mutex
	committed map[string]bool
	seen      map[string]map[time.Time]bool // tasks by id, each known by when it was made
	undone    atomic.Int64
}

// produce runs transactions, of which a third is undone, until stop is closed.
func (k *book) produce(t *testing.T, b base, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		var fail error
		if rand.IntN(3) == 0 {
			fail = errUndo
		}
		ids, err := b.transact(context.Background(), fail, numbered("t", n, n+1+rand.IntN(4))...)
		switch {
		case fail != nil:
			k.undone.Add(1)
		case err != nil:
			t.Error(err)
			return
		default:
			k.mu.Lock()
			for _, id := range ids {
				k.committed[id] = true
			}
			k.mu.Unlock()
		}
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
	}
}

// handle sees a task, and lets it be done and gone at once: a second one of its id would be new.
func (k *book) handle(_ context.Context, task worker.Task) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen[task.ID] == nil {
		k.seen[task.ID] = map[time.Time]bool{}
	}
	k.seen[task.ID][task.CreatedAt] = true
	return nil
}

// missing is how many tasks were committed and not seen.
func (k *book) missing() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.committed {
		if k.seen[id] == nil {
			n++
		}
	}
	return n
}

// TestKilledRelaysMakeOneTaskOfARow: two relays of one outbox are killed over and over, while
// transactions commit and are undone, and tasks are done as soon as they are there.
func TestKilledRelaysMakeOneTaskOfARow(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		addr := ddqtest.Start(t, ddq)
		c := ddqtest.Client(t, addr, client.Config{})
		k := &book{committed: map[string]bool{}, seen: map[string]map[time.Time]bool{}}
		ctx, cancel := context.WithCancel(context.Background())
		worked := make(chan error, 1)
		go func() {
			worked <- worker.New(c.Conn(), worker.Config{Topic: "t"}, worker.HandlerFunc(k.handle)).Run(ctx)
		}()

		stop := make(chan struct{})
		var producers sync.WaitGroup
		for range 2 {
			producers.Go(func() { k.produce(t, b, stop) })
		}
		relays := []*exec.Cmd{relayChild(t, b.dsn, addr), relayChild(t, b.dsn, addr)}
		for n := range *kills {
			time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
			kill(t, relays[n%2])
			relays[n%2] = relayChild(t, b.dsn, addr)
		}
		close(stop)
		producers.Wait()
		for deadline := time.Now().Add(2 * time.Minute); k.missing() > 0 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		empty(t, b)
		for _, r := range relays {
			kill(t, r)
		}
		cancel()
		if err := <-worked; err != nil {
			t.Error(err)
		}
		if n := k.missing(); n > 0 {
			t.Errorf("%d tasks were committed and never made", n)
		}
		for id, made := range k.seen {
			if !k.committed[id] || len(made) != 1 {
				t.Errorf("task %s, committed %v, was made %d times", id, k.committed[id], len(made))
			}
		}
		t.Log(fmt.Sprint(len(k.committed), " tasks committed, ", k.undone.Load(), " transactions undone, ", *kills, " relays killed"))
	})
}
