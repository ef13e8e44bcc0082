package security

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/cmd/cli/operation"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// encryptionCommands are those of ddq encryption. Those about keys open the store themselves: master keys go to no
// server.
type encryptionCommands struct{ *session.Session }

// dataKeyView is what is printed of a data key.
type dataKeyView struct {
	ID     string    `json:"id"`
	Master string    `json:"master"`
	Made   time.Time `json:"made_at"`
	Node   string    `json:"node"`
	Opens  bool      `json:"opens"`

	Retired bool `json:"retired"`
	Needed  bool `json:"needed"`
}

// rotatedView is what ddq encryption rotate prints.
type rotatedView struct {
	Rotated int    `json:"rotated"`
	Master  string `json:"master"`
}

// EncryptionCommand is ddq encryption.
func EncryptionCommand(parent *session.Session) *cobra.Command {
	c := encryptionCommands{parent}
	return session.Group("encryption", "Look at the keys that a store is encrypted with, and exchange them", c.status(), c.rotate(), c.reencrypt())
}

func (c encryptionCommands) status() *cobra.Command {
	cfg := &node.Config{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the data keys of a store, and which master key opens each",
		Long: `List the data keys of a store: the master key that wraps each, and whether it is among those of
--encryption-key. A key that is not needed is one under which nothing is left: 'ddq encryption reencrypt' sees to that.
Takes the settings of ddq server and opens the store itself; an embedded store must not be in use.`,
		Example: "  ddq encryption status --store redis://10.0.0.9:6379 --encryption-key file:/etc/ddq/master",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.Check(); err != nil {
				return err
			}
			keys, err := cfg.DataKeys(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(keys)
		},
	}
	cfg.Flags(cmd.Flags())
	return cmd
}

func (c encryptionCommands) print(keys []node.DataKey) error {
	out := c.Listing("id", "master", "opens", "needed", "made", "node")
	for _, k := range keys {
		if err := out.Add(dataKeyView(k), k.ID, k.Master, fmt.Sprint(k.Opens), neededWord(k), k.Made.Format(time.RFC3339), k.Node); err != nil {
			return err
		}
	}
	return out.End(nil, "the store is not encrypted")
}

// neededWord says whether a data key is needed.
func neededWord(k node.DataKey) string {
	switch {
	case !k.Needed:
		return "no"
	case k.Retired:
		return "until all is reencrypted"
	}
	return "in use"
}

func (c encryptionCommands) reencrypt() *cobra.Command {
	var rate int
	var background bool
	cmd := &cobra.Command{
		Use:   "reencrypt",
		Short: "Encrypt anew what the store has, so that the data keys of before are not needed",
		Long: `Have a node encrypt anew, with the newest data keys, what the store has encrypted with other ones, or not at all:
tasks, results, journals, schedules, recipients and workflows, of all namespaces. Every node makes a data key of its
own for that. One that was stopped, or whose node died, goes on where it was. At its end 'ddq encryption status' shows
that the data keys of before are not needed.`,
		Example: "  ddq encryption reencrypt --rate 5000",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			o, err := s.StartOperation(cmd.Context(), "", operations.Change{Reencrypt: true, Rate: rate})
			if err != nil {
				return err
			}
			if background {
				return operation.Started(c.Session, &o)
			}
			return operation.Await(cmd.Context(), c.Session, s, "", o.ID)
		},
	}
	cmd.Flags().IntVar(&rate, "rate", 0, "values a second at most that are encrypted anew (default as many as it goes)")
	cmd.Flags().BoolVar(&background, "background", false, "do not wait for the end; see ddq operation watch")
	return cmd
}

func (c encryptionCommands) rotate() *cobra.Command {
	cfg := &node.Config{}
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Wrap the data keys with the first master key, so that the others can be given up",
		Long: `Wrap every data key of a store with the first of the keys of --encryption-key. What is encrypted stays as it is.
First give every node the new key as the second line, then make it the first one everywhere; rotate, and
remove the former line. Takes the settings of ddq server and opens the store itself; an embedded store must not be in use.`,
		Example: "  ddq encryption rotate --store redis://10.0.0.9:6379 --encryption-key file:/etc/ddq/master",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.Check(); err != nil {
				return err
			}
			n, err := cfg.RotateEncryption(cmd.Context())
			if err != nil {
				return err
			}
			master := cfg.MasterKeys()[0]
			return c.Say(rotatedView{n, master}, "%d data keys wrapped with master key %s", n, master)
		},
	}
	cfg.Flags(cmd.Flags())
	return cmd
}
