package cli

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// idempotencyFlags are a task's idempotency key on the command line.
type idempotencyFlags struct {
	key        string
	window     time.Duration
	onConflict string
}

func (f *idempotencyFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.key, "idempotency-key", "", "key that one task of the topic has at a time")
	node.DurationVar(fs, &f.window, "idempotency-window", 0, "how long the key is taken, whatever becomes of its task (default while that is live)")
	fs.StringVar(&f.onConflict, "on-conflict", "return", "when the key is taken: return its task, reject, or replace its task while that waits")
}

// read gives a task the key that was asked for, if any.
func (f *idempotencyFlags) read(fs *pflag.FlagSet, t *client.Task) error {
	rules := []client.OnConflict{client.ConflictReturn, client.ConflictReject, client.ConflictReplace}
	i := slices.IndexFunc(rules, func(r client.OnConflict) bool { return r.String() == f.onConflict })
	switch {
	case i < 0:
		return session.Usagef("--on-conflict is return, reject or replace, not %q", f.onConflict)
	case !fs.Changed("idempotency-key") && (fs.Changed("idempotency-window") || fs.Changed("on-conflict")):
		return session.Usagef("--idempotency-window and --on-conflict go with --idempotency-key")
	case !fs.Changed("idempotency-key"):
		return nil
	case t.ID != "":
		return session.Usagef("--id and --idempotency-key exclude each other: the id is made for the key")
	}
	t.Idempotency = &client.Idempotency{Key: f.key, Window: f.window, OnConflict: rules[i]}
	return nil
}
