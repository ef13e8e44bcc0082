package security

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// encryptionCommands are those of ddq encryption. They open the store themselves: master keys go to no
// server.
type encryptionCommands struct{ *session.Session }

// dataKeyView is what is printed of a data key.
type dataKeyView struct {
	ID     string    `json:"id"`
	Master string    `json:"master"`
	Made   time.Time `json:"made_at"`
	Node   string    `json:"node"`
	Opens  bool      `json:"opens"`
}

// rotatedView is what ddq encryption rotate prints.
type rotatedView struct {
	Rotated int    `json:"rotated"`
	Master  string `json:"master"`
}

// EncryptionCommand is ddq encryption.
func EncryptionCommand(parent *session.Session) *cobra.Command {
	c := encryptionCommands{parent}
	return session.Group("encryption", "Look at the keys that a store is encrypted with, and exchange the master key", c.status(), c.rotate())
}

func (c encryptionCommands) status() *cobra.Command {
	cfg := &node.Config{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the data keys of a store, and which master key opens each",
		Long: `List the data keys of a store: the master key that wraps each, and whether it is among those of
--encryption-key. Takes the settings of ddq server and opens the store itself; an embedded store must not be in use.`,
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
	out := c.Listing("id", "master", "opens", "made", "node")
	for _, k := range keys {
		if err := out.Add(dataKeyView(k), k.ID, k.Master, fmt.Sprint(k.Opens), k.Made.Format(time.RFC3339), k.Node); err != nil {
			return err
		}
	}
	return out.End(nil, "the store is not encrypted")
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
