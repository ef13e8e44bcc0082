package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

func TestURLs(t *testing.T) {
	for url, says := range map[string]string{
		"redis://host": "",
		"redis://user:s3cret@host:1/2?wait_replicas=1":                           "",
		"rediss://:s3cret@host:1":                                                "",
		"unix:///run/redis.sock?db=1&wait_timeout=50ms":                          "",
		"unix://user:s3cret@/run/a@b.sock":                                       "",
		"redis-sentinel://a:1/main":                                              "",
		"redis-sentinel://u:s3cret@a:1,b:2,[::1]:3/main/4":                       "",
		"redis-sentinel://a:1/main?sentinel_username=u&sentinel_password=s3cret": "",
		"rediss-sentinel://a:1,b:2/main":                                         "",
		"redis-cluster://a:1":                                                    "",
		"rediss-cluster://:s3cret@a:1,b:2?wait_replicas=2&pool_timeout=3s":       "",
		"":                                                     "starts with none of",
		"http://user:s3cret@host":                              "starts with none of",
		"host:6379":                                            "starts with none of",
		"redis://user:s3cret/x@host:1":                         "percent-encoded",
		"redis://user:s3cret#x@host:1":                         "percent-encoded",
		"redis://user:s3cret?x@host:1":                         "percent-encoded",
		"redis://user:s3cret%zz@host:1":                        "percent-encoded",
		"redis://user:s3cret@host:x":                           "port",
		"redis://user:s3cret@host:1/x":                         "database number",
		"redis://user:s3cret@host:1?nosuch=1":                  "nosuch",
		"redis://user:s3cret@host:1?wait_replicas=-1":          "wait_replicas",
		"redis://user:s3cret@host:1?wait_replicas=many":        "wait_replicas",
		"redis://user:s3cret@host:1?wait_timeout=5":            "wait_timeout",
		"redis://user:s3cret@host:1?wait_timeout=0s":           "wait_timeout",
		"redis://user:s3cret@a:1,b:2":                          "redis-cluster://",
		"redis-sentinel://user:s3cret@a:1,b:2":                 "name of the primary",
		"redis-sentinel://user:s3cret@a:1,b:2/main/x":          "database number",
		"redis-sentinel://user:s3cret@a,b:2/main":              `"a" is no host:port`,
		"redis-sentinel://user:s3cret@a:1,/main":               `"" is no host:port`,
		"redis-sentinel://user:s3cret@a:1/main?replica_only=1": "replica_only",
		"redis-cluster://user:s3cret@a:70000":                  `"a:70000" is no host:port`,
		"redis-cluster://user:s3cret@a:1/2":                    "takes no path",
		"redis-cluster://user:s3cret@a:1?read_only=true":       "read_only",
		"redis-cluster://user:s3cret@a:1?nosuch=1":             "nosuch",
		"redis-cluster://user:s3cret@":                         `"" is no host:port`,
	} {
		err := redisstore.CheckURL(url)
		if says == "" && err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if says == "" {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error is %v, want one about %q", url, err, says)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error shows the password or has two lines: %v", url, err)
		}
	}
}

func TestRedactURL(t *testing.T) {
	for url, want := range map[string]string{
		"redis://host:1/2":                                   "redis://host:1/2",
		"redis://user:s3cret@host:1":                         "redis://user:xxxxx@host:1",
		"redis://:s3cret@host:1":                             "redis://:xxxxx@host:1",
		"unix:///run/redis.sock?db=1":                        "unix:///run/redis.sock?db=1",
		"redis-cluster://u:s3cret@a:1,b:2":                   "redis-cluster://u:xxxxx@a:1,b:2",
		"redis-sentinel://u:s3cret@a:1/main":                 "redis-sentinel://u:xxxxx@a:1/main",
		"redis-sentinel://a:1/main?sentinel_password=s3cret": "redis-sentinel://a:1/main?sentinel_password=xxxxx",
		"redis://user:s3cret/x@host:1":                       "redis://…",
		"s3cret":                                             "…",
	} {
		if got := redisstore.RedactURL(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	set := redistest.StartSentinel(t)
	plain := redistest.StartTCP(t)
	cluster.Masters(t)[1].Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	for _, c := range []struct {
		what string
		cfg  redisstore.Config
		is   error
		says string
	}{
		{"a cluster with one unsafe master", redisstore.Config{URL: cluster.URL()}, store.ErrUnsafe, cluster.Masters(t)[1].Addr() + ": redis may evict"},
		{"a node of a cluster", redisstore.Config{URL: "redis://" + cluster.Masters(t)[0].Addr()}, store.ErrUnsafe, "use redis-cluster://"},
		{"no cluster", redisstore.Config{URL: "redis-cluster://" + plain.Addr()}, nil, "cluster support disabled"},
		{"no cluster at all", redisstore.Config{URL: "redis-cluster://127.0.0.1:1", Timeout: time.Second, WaitTimeout: time.Millisecond}, store.ErrUnavailable, "127.0.0.1:1"},
		{"no sentinel", redisstore.Config{URL: "redis-sentinel://127.0.0.1:1,127.0.0.1:2/main"}, store.ErrUnavailable, "127.0.0.1:1"},
		{"an unknown primary", redisstore.Config{URL: strings.Replace(set.URL(), "/main", "/other", 1)}, store.ErrUnavailable, "no sentinel knows"},
		{"a wait longer than a call", redisstore.Config{URL: "redis://" + plain.Addr(), WaitReplicas: 1, WaitTimeout: time.Minute}, nil, "wait timeout"},
		{"a negative wait", redisstore.Config{URL: "redis://" + plain.Addr(), WaitReplicas: -1}, nil, "-1 replicas"},
	} {
		s, err := redisstore.Open(t.Context(), c.cfg, quiet())
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", c.what)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %q, want one line of %v that says %q", c.what, err, c.is, c.says)
		}
	}
}
