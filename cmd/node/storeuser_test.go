package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// storeUser is the user of Redis that docs/operating.md has.
func storeUser(t *testing.T) (rules []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(text), "\nACL SETUSER ")
	line, _, _ = strings.Cut(line, "\n")
	if !ok {
		t.Fatal("docs/operating.md has no user of Redis")
	}
	return strings.Fields(strings.Replace(line, ">PASSWORD", ">secret", 1))
}

// TestTheFileOfUsersIsThatOfTheDocumentation: whoever takes it puts a password in the place of one word.
func TestTheFileOfUsersIsThatOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), ">PASSWORD", ">secret", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := redistest.StartTCP(t, "--aclfile", file).Addr()
	if want := "user " + strings.Join(storeUser(t), " "); !strings.Contains(strings.Replace(string(text), ">PASSWORD", ">secret", 1), want+"\n") {
		t.Errorf("the file has %q, the documentation %q", text, want)
	}
	for url, works := range map[string]bool{"redis://" + addr: false, "redis://ddq:secret@" + addr: true} {
		cfg := configOf(t, "--store", url)
		if _, err := cfg.LookAtStore(t.Context()); (err == nil) != works {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestServersNeedLittleOfRedis: ddq serves as the user of the documentation, who may neither
// empty the server, nor look at or change what is not of ddq.
func TestServersNeedLittleOfRedis(t *testing.T) {
	addr := redistest.StartTCP(t, append([]string{"--user"}, storeUser(t)...)...).Addr()
	n, err := Start(t.Context(), configOf(t, "--store", "redis://ddq:secret@"+addr, "--auth", "token", "--root-token", "file:"+t.TempDir()+"/root"), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	token, err := os.ReadFile(strings.TrimPrefix(n.cfg.Auth.RootToken, "file:"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(n.GRPCAddr(), client.Config{Token: strings.TrimSpace(string(token)), MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CreateTopic(t.Context(), "mail", client.Policy{DoneRetention: new(time.Hour), WatchRetention: new(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- worker.New(c.Conn(), worker.Config{Topic: "mail"}, worker.HandlerFunc(func(context.Context, worker.Task) error { return nil })).Run(ctx)
	}()
	if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail", ID: "a", Attributes: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	if done, err := c.Wait(t.Context(), "mail", "a", time.Minute); err != nil || done.State != client.StateDone {
		t.Errorf("%+v, %v", done, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := c.PutSchedule(t.Context(), client.Schedule{Topic: "mail", Name: "s", Every: time.Hour}); err != nil {
		t.Error(err)
	}
	if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail", ID: "b", Delay: time.Hour}); err != nil {
		t.Error(err)
	}
	if err := c.DeleteTopic(t.Context(), "mail", true); err != nil {
		t.Error(err)
	}

	user := redis.NewClient(&redis.Options{Addr: addr, Username: "ddq", Password: "secret"})
	defer user.Close()
	for _, command := range []string{
		"FLUSHALL", "FLUSHDB", "CONFIG SET maxmemory 1", "CONFIG REWRITE", "KEYS *", "SHUTDOWN", "DEBUG SLEEP 0", "ACL LIST", "ACL SETUSER x on", "MONITOR", "SAVE", "REPLICAOF NO ONE", "MODULE LIST", "CLIENT KILL ID 1",
		"GET other", "SET other 1", "DEL other", "EVAL return(redis.call('GET','other')) 0", "EVAL return(redis.call('GET',KEYS[1])) 1 other", "RENAME ddq:a other", "COPY ddq:a other",
	} {
		args := make([]any, 0, 8)
		for _, arg := range strings.Fields(command) {
			args = append(args, arg)
		}
		if err := user.Do(t.Context(), args...).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "can't access") && !strings.Contains(err.Error(), "ACL failure") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
