package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// What doctor thinks of one thing it looked at.
const (
	findingOK    = "ok"
	findingNote  = "note" // worth knowing, nothing to repair
	findingWrong = "wrong"
)

type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// doctor looks at one configuration and what lies behind it.
type doctor struct {
	c        *cli
	cfg      *node.Config
	findings []finding
}

func doctorCommand(c *cli) *cobra.Command {
	cfg := &node.Config{}
	var noServer bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a configuration, the store behind it, the clocks and the server",
		Long: `Check a server's configuration, the store behind it, the clocks and the server
at --addr, and say in plain words what is wrong. Takes the settings of ddq server.
Exits 1 when anything is wrong.`,
		Example: "  ddq doctor --config /etc/ddq/ddq.yaml --no-server",
		Args:    session.NoArgs,
		// A bad configuration is a finding here.
		PersistentPreRunE: func(*cobra.Command, []string) error { return c.CheckCommon() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{c: c, cfg: cfg}
			if d.configuration(cmd) {
				d.store(cmd.Context())
			}
			if !noServer {
				d.server(cmd.Context())
			}
			return d.report()
		},
	}
	cfg.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&noServer, "no-server", false, "do not look for a running server, for use before it starts")
	return cmd
}

func (d *doctor) add(check, status, format string, args ...any) {
	d.findings = append(d.findings, finding{check, status, fmt.Sprintf(format, args...)})
}

func (d *doctor) report() error {
	out := d.c.Listing("status", "check", "finding")
	wrong := false
	for _, f := range d.findings {
		wrong = wrong || f.Status == findingWrong
		if err := out.Add(f, f.Status, f.Check, f.Detail); err != nil {
			return err
		}
	}
	if err := out.End(nil, ""); err != nil {
		return err
	}
	if wrong {
		return session.ErrReported
	}
	return nil
}

// configuration reports whether there is one to go on with.
func (d *doctor) configuration(cmd *cobra.Command) bool {
	err := cmp.Or(d.c.resolve(cmd.Flags()), d.c.CheckCommon())
	if err == nil {
		err = d.cfg.Check()
	}
	if err != nil {
		d.add("configuration", findingWrong, "%s", oneLine(err))
		return false
	}
	d.add("configuration", findingOK, "%s", cmp.Or(d.c.config, "no file; flags, environment and defaults"))
	for _, name := range unknownVariables(d.c.Environ, knownSettings()) {
		d.add("configuration", findingNote, "environment variable %s is no setting of ddq", name)
	}
	for _, what := range d.cfg.Warnings() {
		d.add("configuration", findingNote, "%s", what)
	}
	return true
}

// store opens the store as a server would, and closes it again.
func (d *doctor) store(ctx context.Context) {
	if d.cfg.Store == node.Embedded && !d.dataDir() {
		return
	}
	look, err := d.cfg.LookAtStore(ctx)
	switch {
	case node.InUse(err):
		d.add("store", findingNote, "%s is in use by another process, a running server most likely", d.cfg.Data)
		return
	case err != nil:
		d.add("store", findingWrong, "%s", explain(err, d.c.Addr, nil))
		return
	}
	d.add("store", findingOK, "%s at %s answers; what it acknowledges is %s", look.Name, d.place(), durabilityText(look.Durability))
	for _, w := range look.Warnings {
		d.add("store", findingWrong, "%s", w)
	}
	for _, e := range look.Exposures {
		status := findingNote
		if e.Remote && !d.cfg.Insecure { // who says that knows that others reach what there is
			status = findingWrong
		}
		d.add("store", status, "%s", e.Text)
	}
	if look.Encryption != "" {
		d.add("encryption", findingNote, "%s", look.Encryption)
	}
	if look.NoClock != nil {
		d.add("clock", findingWrong, "%s", explain(look.NoClock, d.c.Addr, nil))
		return
	}
	d.offset("store", look.Clock, look.Asked, look.Took)
}

func (d *doctor) place() string {
	if d.cfg.Store == node.Embedded {
		return d.cfg.Data
	}
	return d.cfg.StoreName()
}

// durabilityText says what a durability level survives.
func durabilityText(level string) string {
	switch level {
	case "synced":
		return "on disk (synced)"
	case "replicated":
		return "on a replica (replicated)"
	case "fast":
		return "safe from the end of any process, not from the loss of a machine (fast)"
	}
	return "kept nowhere but in memory (" + level + ")"
}

// Offsets of clocks beyond which times given as --at mean something else.
const (
	clockNote  = 50 * time.Millisecond
	clockWrong = time.Second
)

// offset judges a clock that showed there somewhere in the round trip that
// began at before.
func (d *doctor) offset(whose string, there, before time.Time, trip time.Duration) {
	ahead := there.Sub(before.Add(trip / 2)).Round(time.Millisecond)
	relation := "agrees with"
	if ahead > 0 {
		relation = fmt.Sprintf("is %v ahead of", ahead)
	} else if ahead < 0 {
		relation = fmt.Sprintf("is %v behind", -ahead)
	}
	text := fmt.Sprintf("the clock of the %s %s this machine's", whose, relation)
	switch {
	case ahead.Abs() > clockWrong:
		d.add("clock", findingWrong, "%s; times given as --at are judged by that clock: synchronise both", text)
	case ahead.Abs() > clockNote:
		d.add("clock", findingNote, "%s", text)
	default:
		d.add("clock", findingOK, "%s", text)
	}
}

// dataDir reports whether the data directory can be opened.
func (d *doctor) dataDir() bool {
	dir, err := filepath.Abs(d.cfg.Data)
	if err != nil {
		dir = d.cfg.Data
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.missingDir(dir)
	case err != nil:
		d.add("data directory", findingWrong, "%s", oneLine(err))
		return false
	case !info.IsDir():
		d.add("data directory", findingWrong, "%s is no directory", dir)
		return false
	case !writable(dir):
		d.add("data directory", findingWrong, "%s cannot be written by this user", dir)
		return false
	case info.Mode().Perm()&0o007 != 0:
		d.add("data directory", findingNote, "%s is open to every user of this machine (mode %v); payloads are in it", dir, info.Mode().Perm())
	default:
		d.add("data directory", findingOK, "%s can be written", dir)
	}
	d.space(dir)
	return true
}

// missingDir judges where the directory would be made. It is not made: looking
// must not leave anything behind.
func (d *doctor) missingDir(dir string) bool {
	parent := filepath.Dir(dir)
	for {
		if _, err := os.Stat(parent); err == nil || parent == filepath.Dir(parent) {
			break
		}
		parent = filepath.Dir(parent)
	}
	if !writable(parent) {
		d.add("data directory", findingWrong, "%s does not exist, and this user cannot make it in %s", dir, parent)
		return false
	}
	d.add("data directory", findingOK, "%s does not exist yet; the server will make it", dir)
	d.space(parent)
	return false
}

// Free space below which the embedded store is in danger of standing still.
const (
	spaceWrong = 256 << 20
	spaceNote  = 2 << 30
)

func (d *doctor) space(dir string) {
	free, known := freeSpace(dir)
	switch {
	case !known:
	case free < spaceWrong:
		d.add("data directory", findingWrong, "only %s free; a full disk makes the server refuse tasks", terminal.ByteCount(free))
	case free < spaceNote:
		d.add("data directory", findingNote, "%s free", terminal.ByteCount(free))
	default:
		d.add("data directory", findingOK, "%s free", terminal.ByteCount(free))
	}
}

func (d *doctor) server(ctx context.Context) {
	t := &d.cfg.TLS // its flags are those of the server
	d.c.TLS = session.TLS{On: d.c.TLS.On || t.Cert != "", CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName}
	s, err := d.c.Connect()
	if err != nil {
		d.add("server", findingWrong, "%s", oneLine(err))
		return
	}
	defer s.Close()
	before := time.Now()
	status, err := s.Server(ctx)
	trip := time.Since(before)
	if err != nil {
		d.add("server", findingWrong, "%s", explain(err, d.c.Addr, nil))
		return
	}
	d.describe(status)
	d.caller(ctx, s)
	d.offset("server's store", status.StoreNow, before, trip)
}

// caller advises who has the token that may do everything.
func (d *doctor) caller(ctx context.Context, s *client.Client) {
	if p, err := s.WhoAmI(ctx); err == nil && p.Kind == "root" {
		d.add("token", findingNote, "this is the root token, which may do everything: make one with a name and what it needs (ddq token create), and put this away")
	}
}

func (d *doctor) describe(s client.ServerStatus) {
	d.add("server", findingOK, "%s at %s answers: store %s, durability %s, up %v", s.Node, d.c.Addr, s.Store, s.Durability, s.Uptime.Round(time.Second))
	if own := node.ReadBuild().Version; s.Version == own {
		d.add("version", findingOK, "%s on both sides", own)
	} else {
		d.add("version", findingNote, "the server is %s, this binary %s", s.Version, own)
	}
	for _, w := range s.Warnings {
		status := findingWrong
		if slices.Contains(s.Accepted, w) { // somebody said that it is to be so
			status = findingNote
		}
		d.add("server", status, "%s", w)
	}
}
