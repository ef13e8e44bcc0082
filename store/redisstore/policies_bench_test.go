package redisstore_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// BenchmarkPolicies is BenchmarkCycle, step by step, for tasks that use every policy, and for
// those of a shard that is watched: what each step takes of Redis, in microseconds a task. A
// hundred thousand other tasks are in the shard, a thousand of which use policies, too.
func BenchmarkPolicies(b *testing.B) {
	for _, policies := range []string{"none", "watch", "all"} {
		b.Run(policies, func(b *testing.B) {
			server := redistest.Start(b)
			s := claim(b, open(b, server.URL()))
			c := policyCycle{shardOf: s, client: server.Client(b), all: policies == "all"}
			c.fill(b)
			if policies == "watch" {
				if err := s.Watch(context.Background(), s.shard, store.Watching{Retention: time.Hour, Max: 100_000}); err != nil {
					b.Fatal(err)
				}
			}
			for _, n := range batchSizes[1:] {
				b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
					c.spent = make(map[string]float64)
					for b.Loop() {
						c.run(b, n)
					}
					for what, cpu := range c.spent {
						b.ReportMetric(cpu/float64(b.N*n), what+"-us")
					}
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// policyCycle takes batches through a shard, and notes the processor time of Redis by step.
type policyCycle struct {
	shardOf
	client *redis.Client
	all    bool
	made   int
	spent  map[string]float64
}

// fill adds a hundred thousand tasks that are not due, a few of which use what the others do.
func (c *policyCycle) fill(b *testing.B) {
	c.shardOf.fill(b, 100_000)
	c.shard.Life = 7 // as nodes add
	if !c.all {
		return
	}
	tasks := differing(1000, store.Millis(time.Now().Add(time.Hour).UnixMilli()))
	holds, _ := holdsFor(tasks)
	c.policies(tasks, holds)
	if _, _, err := c.Add(context.Background(), c.shard, tasks); err != nil {
		b.Fatal(err)
	}
}

func (c *policyCycle) run(b *testing.B, n int) {
	ctx := context.Background()
	tasks := differing(n, 1)
	holds, acks := holdsFor(tasks)
	var permits []store.Permit
	if c.all {
		permits = c.policies(tasks, holds)
	}
	c.step(b, "add", func() error {
		_, _, err := c.Add(ctx, c.shard, tasks)
		return err
	})
	if c.all {
		c.step(b, "reserve", func() error {
			_, err := c.Reserve(ctx, reservationsFor(tasks))
			return err
		})
		c.step(b, "acquire", func() error {
			_, err := c.Acquire(ctx, acquiresFor(permits))
			return err
		})
	}
	c.step(b, "hold", func() error {
		_, results, err := c.Hold(ctx, c.shard, c.fence, holds)
		if err == nil && results[n-1].Status != store.OK {
			err = fmt.Errorf("hold is %v", results[n-1].Status)
		}
		return err
	})
	c.step(b, "ack", func() error {
		_, results, err := c.Ack(ctx, c.shard, acks, 0)
		if err == nil && results[n-1] != store.OK {
			err = fmt.Errorf("ack is %v", results[n-1])
		}
		return err
	})
	if c.all {
		c.step(b, "free", func() error {
			_, err := c.Free(ctx, permits)
			return err
		})
		return
	}
	tasks = differing(n, 1)
	holds, acks = holdsFor(tasks)
	c.step(b, "hold-new", func() error {
		_, _, err := c.HoldNew(ctx, c.shard, c.fence, tasks, holds)
		return err
	})
	c.step(b, "ack-new", func() error {
		_, _, err := c.Ack(ctx, c.shard, acks, 0)
		return err
	})
}

// differing is newTasks with payloads that differ: Lua finds strings by a few of their bytes.
func differing(n int, due store.Millis) []*store.Task {
	tasks := newTasks(n, due)
	for _, t := range tasks {
		t.Payload = make([]byte, payloadSize)
		rand.Read(t.Payload)
		t.Fingerprint = binary.BigEndian.Uint64(t.Payload)
	}
	return tasks
}

// step runs one call, and adds what it took of Redis.
func (c *policyCycle) step(b *testing.B, what string, do func() error) {
	before := c.cpu(b)
	idle := c.cpu(b) // what it takes to ask
	if err := do(); err != nil {
		b.Fatal(what, err)
	}
	took := c.cpu(b) - idle - (idle - before)
	c.spent[what] += took
	c.spent["all"] += took
}

// cpu is the processor time that Redis has used, in microseconds.
func (c *policyCycle) cpu(b *testing.B) (us float64) {
	info, err := c.client.Info(context.Background(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		_, after, _ := strings.Cut(info, "\n"+name+":")
		value, _, _ := strings.Cut(after, "\r")
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatalf("info %s: %v", name, err)
		}
		us += seconds * 1e6
	}
	return us
}

// policies gives tasks and holds of one batch all that there is, as ddq bench does: a hundred
// keys, and ten thousand ordering keys. It returns the permits of the holds.
func (c *policyCycle) policies(tasks []*store.Task, holds []store.Hold) (permits []store.Permit) {
	until := store.Millis(time.Now().Add(time.Minute).UnixMilli())
	for i, t := range tasks {
		key := strconv.Itoa(c.made % 100)
		t.Traits = &store.Traits{
			Priority: c.made % 10, FairnessKey: key, RateKey: key, ConcurrencyKey: key,
			OrderingKey: strconv.Itoa(c.made % 10_000),
		}
		holds[i].Before, holds[i].Until = until, until
		for _, of := range []string{key, ""} {
			permits = append(permits, store.Permit{Key: store.LimitKey{Topic: c.shard.Topic, Key: of}, Holder: holds[i].Token, Until: until})
		}
		c.made++
	}
	return permits
}

// reservationsFor asks for a token of its key, and one of the topic, for each task.
func reservationsFor(tasks []*store.Task) (asked []store.Reservation) {
	rate := store.Rate{Count: 1_000_000, Period: time.Second, Burst: 100_000}
	at := make(map[string]int)
	for _, t := range tasks {
		for _, key := range []string{t.Traits.RateKey, ""} {
			if _, known := at[key]; !known {
				at[key] = len(asked)
				asked = append(asked, store.Reservation{Key: store.LimitKey{Topic: "mail", Key: key}, Rate: rate, Ahead: time.Second})
			}
			asked[at[key]].N++
		}
	}
	return asked
}

func acquiresFor(permits []store.Permit) (asked []store.Acquire) {
	at := make(map[store.LimitKey]int)
	for _, p := range permits {
		if _, known := at[p.Key]; !known {
			at[p.Key] = len(asked)
			asked = append(asked, store.Acquire{Key: p.Key, Max: 100_000, Node: "node-1", Until: p.Until})
		}
		q := &asked[at[p.Key]]
		q.Holders = append(q.Holders, p.Holder)
	}
	return asked
}
