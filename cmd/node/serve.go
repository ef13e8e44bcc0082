package node

import (
	"context"
	"fmt"
	"log/slog"
)

// Serve runs a node until ctx ends or one of its ports breaks.
func Serve(ctx context.Context, cfg *Config, log *slog.Logger) error {
	n, err := Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	var broken error
	select {
	case <-ctx.Done():
		log.Info("stopping", "grace", cfg.ShutdownGrace)
	case broken = <-n.failed:
	}
	if err := n.Stop(); err != nil && broken == nil {
		return fmt.Errorf("stopping: %w", err)
	}
	log.Info("stopped")
	return broken
}
