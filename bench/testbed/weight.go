package testbed

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/bench/box"
)

// Weight is what a store has, and what its server occupies, in bytes.
type Weight struct {
	Store  int64 // 0 where it cannot be told
	Server int64 // with the garbage of what it did, and the store's caches
	Fresh  int64 // once it has been started again; 0 on a store that forgets everything then
}

// Weigh weighs both, each time once the server has rested for as long as settle says. A store that
// keeps everything over a restart is weighed behind one, when its logs are what they are in any case.
func (s *Server) Weigh(ctx context.Context, settle time.Duration) (w Weight, err error) {
	if err := Pause(ctx, settle); err != nil {
		return w, err
	}
	w.Server = box.RSS([]*box.Process{s.Process})
	if s.Store == "memory" {
		return w, nil
	}
	if _, err := s.Restart(ctx, func() {}); err != nil {
		return w, err
	}
	if err := s.WaitReady(ctx); err != nil {
		return w, err
	}
	if err := Pause(ctx, settle); err != nil {
		return w, err
	}
	w.Fresh = box.RSS([]*box.Process{s.Process})
	if bytes := s.StoreBytes(); bytes != nil {
		w.Store, err = bytes(ctx)
	}
	return w, err
}
