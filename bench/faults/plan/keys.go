package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// orderingKeys is how many ordering keys the tasks share that have one.
const orderingKeys = 3

// Keyed is an enqueue with an idempotency key. All producers enqueue the same keys.
type Keyed struct {
	Key      string
	Order    string // its ordering key; empty: none
	At       time.Duration
	Due      time.Duration
	Conflict client.OnConflict
	Payload  []byte
}

// Keys plans the enqueues with idempotency keys of a producer.
func Keys(c *Config) []Keyed {
	r := rand.New(rand.NewPCG(c.Seed, Draw(c.Seed, c.Name, "keys")))
	n := int(c.Rate * c.For.Seconds() * float64(c.Mix.Key) / 1000)
	var all []Keyed
	for i := range n {
		k := Keyed{Key: fmt.Sprintf("order-%d", i)}
		switch Draw(c.Seed, k.Key, "conflict") % 4 {
		case 0:
			k.Conflict = client.ConflictReject
		case 1, 2:
			k.Conflict = client.ConflictReplace
		default:
			k.Conflict = client.ConflictReturn
		}
		if k.Conflict != client.ConflictReplace {
			k.Order = fmt.Sprint("account ", Draw(c.Seed, k.Key, "account")%orderingKeys)
		}
		k.At = c.For * time.Duration(i) / time.Duration(n)
		for range 1 + r.IntN(3) {
			k.At += time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			k.Due = k.At + 500*time.Millisecond
			k.Payload = payload(r, 32)
			all = append(all, k)
		}
	}
	return all
}
