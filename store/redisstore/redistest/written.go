package redistest

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// AwaitWritten waits until no sync of the append-only file of the server at addr is
// under way. While one is, appendfsync everysec holds writes back for up to two seconds
// and answers all the same, so that a kill takes what was answered.
func AwaitWritten(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	for {
		info, err := client.Info(ctx, "persistence").Result()
		if err != nil || strings.Contains(info, "aof_pending_bio_fsync:0") {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
