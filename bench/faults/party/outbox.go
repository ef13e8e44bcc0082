package party

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/postgres"
	"github.com/ddq-io/ddq/bench/tap"
)

// RoleOutbox is the role of a producer that commits its tasks to a PostgreSQL, from where ddq-outbox hands them on.
const RoleOutbox = "outbox"

const (
	// relayCount is how many relays run: one reads, the others stand by.
	relayCount = 2
	// commitEvery is how often a transaction ends, at most.
	commitEvery = 150 * time.Millisecond
	// handedOnWithin bounds how long rows may be in the outbox once nothing is broken any more.
	handedOnWithin = 40 * time.Second
	// poisonShare is how many of the rows are poisoned, one of so many, and one of the first firstPoison.
	poisonShare, firstPoison = 20, 8
)

// outbox is that producer, with its database and the relays: it owns their processes, and has no goroutine. A call of its ledger begins
// before its row is committed, and is answered once the row is out of the outbox.
type outbox struct {
	c        *Config
	log      *ledger.Writer
	rand     *rand.Rand
	server   *postgres.Server
	sql      *psql
	relays   []*exec.Cmd
	inside   map[string]ledger.Event // calls whose rows are in the outbox, by id
	poisoned map[string]bool         // those that are to be refused
	passes   int                     // good rows until the next poisoned one
}

// commitTasks returns when its plan is played and the outbox is empty.
func commitTasks(ctx context.Context, c *Config, log *ledger.Writer, _ io.Reader) (err error) {
	server, err := postgres.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	o := &outbox{
		c: c, log: log, server: server, rand: rand.New(rand.NewPCG(c.Seed, plan.Draw(c.Seed, c.Name, "outbox"))),
		inside: map[string]ledger.Event{}, poisoned: map[string]bool{},
	}
	o.passes = o.rand.IntN(firstPoison)
	if err := o.program(ctx, "install").Run(); err != nil {
		return fmt.Errorf("ddq-outbox install: %w", err)
	}
	if o.sql, err = openPsql(ctx, server.Bin(), o.dsn()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.sql.close()) }()
	defer func() { err = errors.Join(err, o.stopRelays()) }()
	for range relayCount {
		if err := o.startRelay(ctx); err != nil {
			return err
		}
	}
	return o.play(ctx)
}

func (o *outbox) dsn() string { return o.server.URL("postgres") }

// program is ddq-outbox with some arguments.
func (o *outbox) program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, o.c.Outbox, append(args, "--dsn", o.dsn())...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

func (o *outbox) startRelay(ctx context.Context) error {
	cmd := o.program(ctx, "relay", "--addr", o.c.Addr, "--poll", "200ms", "--window", keyWindow.String())
	if err := cmd.Start(); err != nil {
		return err
	}
	o.relays = append(o.relays, cmd)
	return nil
}

// killRelay kills one, and starts another.
func (o *outbox) killRelay(ctx context.Context) error {
	i := o.rand.IntN(len(o.relays))
	cmd := o.relays[i]
	o.relays = append(o.relays[:i], o.relays[i+1:]...)
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("a relay ended by itself: %w", errors.Join(err, cmd.Wait()))
	}
	if err := cmd.Wait(); cmd.ProcessState.Exited() { // it was not the signal
		return fmt.Errorf("a relay ended by itself: %w", err)
	}
	return o.startRelay(ctx)
}

// stopRelays asks them to end.
func (o *outbox) stopRelays() (err error) {
	for _, cmd := range o.relays {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, cmd := range o.relays {
		if why := cmd.Wait(); cmd.ProcessState.Exited() { // and not by the signal, before it was ready for one
			err = errors.Join(err, why)
		}
	}
	return err
}

// play commits tasks for as long as the plan lasts, and looks what became of them until all are handed on.
func (o *outbox) play(ctx context.Context) error {
	look := time.NewTicker(2 * frame)
	defer look.Stop()
	end := o.c.Start.Add(o.c.For)
	commit, kill := o.c.Start, o.c.Start.Add(2*time.Second)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
		if err := o.look(); err != nil {
			return err
		}
		switch now := time.Now(); {
		case now.After(end) && len(o.inside) == 0:
			return nil
		case now.After(end.Add(handedOnWithin)):
			return fmt.Errorf("%d rows are in the outbox for %v after the last commit", len(o.inside), handedOnWithin)
		case now.After(end):
		case now.After(kill):
			kill = now.Add(time.Second + time.Duration(o.rand.Int64N(int64(2*time.Second))))
			if err := o.killRelay(ctx); err != nil {
				return err
			}
		case now.After(commit):
			commit = now.Add(time.Duration(o.rand.Int64N(int64(commitEvery))))
			if err := o.transact(); err != nil {
				return err
			}
		}
	}
}

// transact puts tasks into the outbox in one transaction, which is rolled back now and then.
func (o *outbox) transact() error {
	if err := o.sql.do("begin"); err != nil {
		return err
	}
	var calls []ledger.Event
	for range 1 + o.rand.IntN(4) {
		call, err := o.put()
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	if o.rand.IntN(8) == 0 {
		return o.sql.do("rollback") // nobody may ever see them
	}
	for i := range calls {
		calls[i].Call = o.log.NextCall()
		o.inside[calls[i].ID] = calls[i]
	}
	o.log.Append(calls...)
	return o.sql.do("commit")
}

// put puts one into the outbox.
func (o *outbox) put() (ledger.Event, error) {
	payload := make([]byte, o.rand.IntN(200))
	for i := range payload {
		payload[i] = byte(o.rand.Uint32())
	}
	due := time.Now().Add(time.Duration(o.rand.Int64N(int64(1500 * time.Millisecond)))).Truncate(time.Millisecond)
	options := hostileOptions[o.rand.IntN(len(hostileOptions))]
	o.passes--
	poisoned := o.passes <= 0
	if poisoned {
		o.passes = o.rand.IntN(2 * poisonShare)
		options = poisonedOptions[o.rand.IntN(len(poisonedOptions))]
	}
	id, err := o.sql.ask(fmt.Sprintf(`select ddq_outbox.enqueue('%s', '\x%x', '%s', '%s')`, plan.Plain, payload, due.UTC().Format(time.RFC3339Nano), options))
	if err != nil {
		return ledger.Event{}, err
	}
	o.poisoned[id] = poisoned
	key, err := o.sql.ask(fmt.Sprintf(`select key from ddq_outbox.task where id = '%s'`, id)) // the relay may ask twice under it
	return ledger.Event{
		Kind: ledger.Call, Op: ledger.Enqueue, Topic: plan.Plain, Task: ledger.KeyTask(key), ID: id, Due: due.UnixMilli(), Sum: tap.Sum(payload),
		Conflict: client.ConflictReturn.String(),
	}, err
}

// hostileOptions are options of good tasks, as literals of SQL: what could be taken for something else on the way. The poisoned ones the
// database takes, and ddq refuses.
var (
	hostileOptions = []string{
		`{}`, `{}`, `{"priority": 3}`, `{"attributes": {"a": "\"quoted\" \\\\ \\u0041 \n\t/ ''; --"}}`,
		`{"attributes": {"ä{}[]": "\u00e9\ud83d\ude00 NaN null"}, "max_retries": 4}`, `{"max_retries": 4, "priority": 1e0}`,
	}
	poisonedOptions = []string{
		`{"priority": 1e400}`, `{"max_retries": 1.5}`, `{"max_retries": 4.0}`, `{"handler_timeout_ms": -9223372036854775808}`, `{"attributes": {"": "v"}}`,
	}
)

// look answers calls whose rows are out of the outbox.
func (o *outbox) look() error {
	if len(o.inside) == 0 {
		return nil
	}
	// In one statement, so that a row is in one of them, or handed on.
	line, err := o.sql.ask("select coalesce((select string_agg(id::text, ' ') from ddq_outbox.task), '') || ';' || coalesce((select string_agg(id::text || ' ' || reason, ' ') from ddq_outbox.bad), '')")
	if err != nil {
		return err
	}
	waiting, bad, _ := strings.Cut(line, ";")
	left := make(map[string]bool)
	for _, id := range strings.Fields(waiting) {
		left[id] = true
	}
	reasons, named := make(map[string]string), strings.Fields(bad)
	for i := 0; i+1 < len(named); i += 2 {
		reasons[named[i]] = named[i+1]
	}
	for id, call := range o.inside {
		if left[id] {
			continue
		}
		answer := ledger.Event{Kind: ledger.Answer, Op: call.Op, Call: call.Call, Topic: call.Topic, Task: call.Task, ID: id, Result: ledger.OK, Due: call.Due, Reason: client.KeyEnqueued.String()}
		reason, refused := reasons[id]
		if refused {
			answer.Result, answer.Reason, answer.Due = ledger.Refused, reason, 0
		}
		if o.poisoned[id] != refused {
			return fmt.Errorf("row %s: poisoned is %v, and it was refused for %q", id, o.poisoned[id], reason)
		}
		o.log.Append(answer)
		delete(o.inside, id)
		delete(o.poisoned, id)
	}
	return nil
}

// psql is a session of PostgreSQL's own client: ddq has no driver.
type psql struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func openPsql(ctx context.Context, bin, dsn string) (*psql, error) {
	s := &psql{cmd: exec.CommandContext(ctx, bin+"/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", dsn)}
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewScanner(out)
	s.out.Buffer(nil, 16<<20)
	return s, s.cmd.Start()
}

// ask returns the one line that a statement of one line yields.
func (s *psql) ask(statement string) (string, error) {
	if _, err := io.WriteString(s.in, statement+";\n"); err != nil {
		return "", err
	}
	if !s.out.Scan() {
		return "", fmt.Errorf("psql ended at %q: %w", statement, cmp.Or(s.out.Err(), io.EOF))
	}
	return s.out.Text(), nil
}

// do returns once a statement that yields nothing is done.
func (s *psql) do(statement string) error {
	_, err := s.ask(statement + "; select 1")
	return err
}

func (s *psql) close() error {
	return errors.Join(s.in.Close(), s.cmd.Wait())
}
