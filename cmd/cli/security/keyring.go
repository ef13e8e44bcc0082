package security

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/client/envelope"
	"github.com/ddq-io/ddq/cmd/cli/session"
)

// keyringCommands are those of ddq keyring.
type keyringCommands struct{ *session.Session }

// keyView is what is printed of a key.
type keyView struct {
	ID       string `json:"id"`
	Encrypts bool   `json:"encrypts"`
}

// KeyringCommand is ddq keyring.
func KeyringCommand(parent *session.Session) *cobra.Command {
	c := keyringCommands{parent}
	return session.Group("keyring", "Make and rotate the keys that programs encrypt payloads with; no server has them",
		c.create(), c.add(), c.use(), c.remove(), c.list())
}

func (c keyringCommands) create() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "create <file>",
		Short:   "Make a keyring with one key, in a new file that only its owner can read",
		Example: "  ddq keyring create mail.keyring\n  ddq enqueue --topic mail --payload hello --keyring mail.keyring",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ring, err := envelope.NewRing(id)
			if err != nil {
				return session.Usagef("--id: %v", err)
			}
			if err := auth.NewSecret(ring.Text()).WriteNew(args[0]); errors.Is(err, fs.ErrExist) {
				return session.Usagef("%s is there already", args[0])
			} else if err != nil {
				return err
			}
			return c.print(ring)
		},
	}
	idFlag(cmd, &id)
	return cmd
}

func idFlag(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "id", time.Now().UTC().Format("2006-01-02"), "what the new key is called")
}

func (c keyringCommands) add() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "add <file>",
		Short: "Add a new key, which decrypts only",
		Long: `Add a new key to a keyring. It decrypts only, until ddq keyring use has it encrypt: give the
file to all programs in between, and restart them.`,
		Example: "  ddq keyring add mail.keyring --id 2027",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.change(args[0], func(r *envelope.Ring) (*envelope.Ring, error) { return r.Add(id) })
		},
	}
	idFlag(cmd, &id)
	return cmd
}

func (c keyringCommands) use() *cobra.Command {
	return &cobra.Command{
		Use:     "use <file> <id>",
		Short:   "Have a key encrypt; the others decrypt",
		Example: "  ddq keyring use mail.keyring 2027",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.change(args[0], func(r *envelope.Ring) (*envelope.Ring, error) { return r.Use(args[1]) })
		},
	}
}

func (c keyringCommands) remove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "remove <file> <id>",
		Short:   "Remove a key: what is encrypted under it cannot be read any more",
		Example: "  ddq keyring remove mail.keyring 2026",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.change(args[0], func(r *envelope.Ring) (*envelope.Ring, error) {
				next, err := r.Remove(args[1])
				if err != nil {
					return nil, err
				}
				return next, c.Confirm(yes, "make payloads under key "+args[1]+" unreadable for who has no other copy of it")
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (c keyringCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list <file>",
		Short: "List the keys by their ids",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ring, err := envelope.ReadRing(args[0])
			if err != nil {
				return err
			}
			return c.print(ring)
		},
	}
}

// change replaces a keyring at once: whoever reads the file meanwhile has the one or the other.
func (c keyringCommands) change(file string, to func(*envelope.Ring) (*envelope.Ring, error)) error {
	ring, err := envelope.ReadRing(file)
	if err != nil {
		return err
	}
	next, err := to(ring)
	var missing *envelope.KeyError
	switch {
	case errors.As(err, &missing):
		return session.Usagef("%s has no key %s", file, missing.ID)
	case errors.Is(err, session.ErrReported):
		return err
	case err != nil:
		return session.Usagef("%s: %v", file, err)
	}
	if err := replace(file, next.Text()); err != nil {
		return err
	}
	return c.print(next)
}

// replace writes a file that only its owner can read, in place of the one that is there.
func replace(file, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return os.Rename(f.Name(), file)
}

func (c keyringCommands) print(ring *envelope.Ring) error {
	out := c.Listing("key", "does")
	for i, id := range ring.IDs() {
		does := "decrypts"
		if i == 0 {
			does = "encrypts and decrypts"
		}
		if err := out.Add(keyView{id, i == 0}, id, does); err != nil {
			return err
		}
	}
	return out.End(nil, "")
}
