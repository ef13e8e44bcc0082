package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/store/redisstore"
)

// StoreLook is what a look at a store found.
type StoreLook struct {
	Name       string
	Durability string   // fast, synced, replicated or none
	Warnings   []string // what is wrong with it
	Encryption string   // how it is encrypted; empty: not at all
	Exposures  []redisstore.Exposure

	Asked   time.Time     // when its clock was read, by this machine's
	Took    time.Duration // reading it
	Clock   time.Time
	NoClock error // why it could not be read
}

// LookAtStore opens the store of a configuration as a node would, and closes it again.
func (cfg *Config) LookAtStore(ctx context.Context) (look StoreLook, err error) {
	st, err := openStore(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return StoreLook{}, err
	}
	defer st.Close()
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	info, err := st.Info(ctx)
	if err != nil {
		return StoreLook{}, err
	}
	look = StoreLook{Name: info.Name, Durability: info.Durability, Warnings: info.Warnings}
	found, wrong := cfg.encryptionFound(ctx, st)
	if look.Encryption = found; wrong {
		look.Encryption, look.Warnings = "", append(look.Warnings, found)
	}
	if servers, ok := st.(*redisstore.Store); ok {
		if look.Exposures, err = servers.Exposures(ctx); err != nil {
			return StoreLook{}, err
		}
	}
	look.Asked = time.Now()
	look.Clock, look.NoClock = st.Clock(ctx)
	look.Took = time.Since(look.Asked)
	return look, nil
}
