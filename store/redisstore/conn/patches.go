package conn

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// release is a version of a server: major, minor, patch.
type release [3]int

// patched are the first releases of each line in which CVE-2025-49844 is mended, of 2025-10-03: with it
// whoever may call scripts may run code of his own on the server's machine. Later lines never had it. The
// older CVE-2024-46981 is mended in all of them.
var patched = map[string][]release{
	"redis":  {{6, 2, 20}, {7, 2, 11}, {7, 4, 6}, {8, 0, 4}, {8, 2, 2}},
	"valkey": {{7, 2, 11}, {8, 0, 6}, {8, 1, 4}},
}

// patchesOf is about a server that is of a release without the patches of its scripts.
func patchesOf(ctx context.Context, node *redis.Client) (Exposure, error) {
	info, err := node.Info(ctx, "server").Result()
	if err != nil {
		return Exposure{}, ctx.Err()
	}
	name, version := "redis", inInfo(info, "redis_version")
	if valkey := inInfo(info, "valkey_version"); valkey != "" { // which says 7.2.4 of redis, for clients
		name, version = "valkey", valkey
	}
	first, ok := lacksPatch(name, version)
	if !ok {
		return Exposure{}, nil
	}
	return Exposure{fmt.Sprintf("%s %s is of before the patch of CVE-2025-49844, by which scripts may run any code on its machine: use %s or later, unless whoever packed it has patched it", name, version, first), false}, nil
}

// lacksPatch reports whether a version lacks the patch, and which one has it. Of versions that cannot be
// read nothing is said.
func lacksPatch(name, version string) (first string, lacks bool) {
	var v release
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n != len(v) {
		return "", false
	}
	for _, p := range patched[name] {
		if v[0] < p[0] || v[0] == p[0] && v[1] <= p[1] { // the line, or the next one that has it
			return fmt.Sprintf("%d.%d.%d", p[0], p[1], p[2]), v[0] != p[0] || v[1] != p[1] || v[2] < p[2]
		}
	}
	return "", false
}
