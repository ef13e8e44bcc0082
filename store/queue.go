package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Class says what the messages of a queue are.
type Class uint8

const (
	ClassWork       Class = iota + 1 // tasks, and children of workflows. They wait while their topic is paused or has no room
	ClassCompletion                  // ends of steps and children, for the inbox of a workflow. They never wait for a policy
	ClassAsk                         // "end", "pause", "go on", for a task or a child
	ClassMove                        // entities and their notifications, for the next generation of shards. No node sends any, see docs/adr/096
	ClassInbox                       // the inbox of the source, whose messages the source itself receives and sends on. No message is sent to it, and no node receives any
)

// Queue names an outbox queue: the messages of a class that a shard sends to a topic. The source's
// Life is the incarnation of its topic, so the queue of a topic that was made anew is another one.
type Queue struct {
	Source Shard
	Class  Class
	To     string // the topic that they go to
}

// Compare orders the queues of a source: by class, incarnation and topic.
func (q Queue) Compare(other Queue) int {
	return cmp.Or(cmp.Compare(q.Class, other.Class), cmp.Compare(q.Source.Life, other.Source.Life), strings.Compare(q.To, other.To))
}

// receiptPrefix begins the ids of receipts. The other entities of kind t are tallies.
const receiptPrefix = string(CellTally) + "q/"

// ReceiptID is the entity in which a shard of the queue's topic keeps the receipt of the queue. Only the
// store writes it. Whoever knows that the source is gone for good deletes it, by a Put without a body.
func (q Queue) ReceiptID() CellID {
	return CellID(fmt.Sprintf("%s%d/%s/%x/%d", receiptPrefix, q.Class, FlatName(q.Source.Topic), q.Source.Life, q.Source.N))
}

// ReceiptOf returns the queue whose receipt an entity of a topic is; false for another entity.
func ReceiptOf(id CellID, topic string) (Queue, bool) {
	rest, is := strings.CutPrefix(string(id), receiptPrefix)
	part := strings.Split(rest, "/")
	if !is || len(part) != 4 {
		return Queue{}, false
	}
	class, err := strconv.ParseUint(part[0], 10, 8)
	life, lifeErr := strconv.ParseUint(part[2], 16, 64)
	n, nErr := strconv.Atoi(part[3])
	q := Queue{Source: Shard{Topic: UnflatName(part[1]), N: n, Life: life}, Class: Class(class), To: topic}
	return q, err == nil && lifeErr == nil && nErr == nil
}

// IsReceipt reports whether an entity is a receipt.
func IsReceipt(id CellID) bool { return strings.HasPrefix(string(id), receiptPrefix) }

// Message is what lies in a box or in a queue.
type Message = Parcel

// QueueHead is a queue that has messages, and its first one.
type QueueHead struct {
	Queue  Queue
	Number int64
	At     Millis
}

// MessagePage is a part of a queue.
type MessagePage struct {
	// Head is the number of the first message that is in the queue, readable or not; 0: it is empty. It is
	// what Receive.Head must be: a relay that said the first number of its own page in its place would
	// lose what is before that.
	Head     int64
	Messages []Message // in order of their numbers
	// Unreadable are the numbers of messages of the page that cannot be read. They stay until they are
	// finished.
	Unreadable []int64
	Next       int64 // the number behind which the next page begins; 0: there is nothing behind this one
}

// Receive settles messages of a queue in a shard of their topic: it says that this commit makes or
// refuses them. The commit is made only if none of them was settled before by the receipt that the
// shard has of the queue; see Commit.Receive.
type Receive struct {
	Queue Queue
	Head  int64 // MessagePage.Head of the page that they were read with

	// Numbers are made by this commit, MaxReceive at most. If the commit has tasks, Numbers[i] is that of Adds[i],
	// and those behind are of what else it makes. They need not rise.
	Numbers []int64
	// Refused are refused for good: nothing of them is made here now or later. MaxReceive at most together
	// with Numbers, and none of them.
	Refused []int64
}

// Finish forgets messages of a queue of the shard that their destination answered as settled.
type Finish struct {
	Queue   Queue
	Numbers []int64 // MaxReceive at most. Those that are not there do not matter
}

// MaxReceive is how many messages one Receive or Finish may be about, and how many numbers above its
// floor a receipt has at most.
const MaxReceive = 1024

// KeptRefused is how many refused numbers a receipt keeps in any case.
const KeptRefused = 100

// MaxNumber is an upper bound of numbers of messages. They are microseconds.
const MaxNumber = 1 << 52

// nextNumber is the number behind one that was given, at a moment in microseconds by the server's clock
// and by the estimate of the sender.
func nextNumber(last, us, estimate int64) int64 { return max(last+1, us, estimate) }

// Number is the number of the next message of a shard whose last one has the given one, at a moment by
// the store's clock in microseconds. See Commit.Clock.
func (c *Commit) Number(last, us int64) int64 { return nextNumber(last, us, c.Clock) }

// SentTo adds to some queues those of the shard of the commit that it sends to.
func (c *Commit) SentTo(queues []Queue, at Shard) []Queue {
	for i := range c.Send {
		m := &c.Send[i]
		if m.Class == 0 {
			continue
		}
		if q := (Queue{Source: at, Class: m.Class, To: m.Topic}); !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	return queues
}

// CheckQueues returns what is malformed about the queues of a commit in a shard, if something is. A store
// makes nothing of a call with such a commit.
func (c *Commit) CheckQueues(s Shard, f *Fence) error {
	for i := range c.Puts {
		if p := &c.Puts[i]; IsReceipt(p.ID) && len(p.Body) > 0 {
			return fmt.Errorf("receipt %q is put: only the store writes it", p.ID)
		}
	}
	for i := range c.Send {
		p := &c.Send[i]
		if p.Class > ClassMove || p.Class != 0 && (p.Topic == "" || strings.Contains(p.Topic, "\x00") || p.Ended != nil) {
			return fmt.Errorf("message for %q of class %d to topic %q cannot be sent to a queue", p.To, p.Class, p.Topic)
		}
	}
	if c.Clock >= MaxNumber {
		return fmt.Errorf("estimate %d of the clock is out of range", c.Clock)
	}
	if r := c.Receive; r != nil {
		if err := r.check(c, s); err != nil {
			return fmt.Errorf("receive of class %d from %s/%d: %w", r.Queue.Class, r.Queue.Source.Topic, r.Queue.Source.N, err)
		}
	}
	if d := c.Finish; d != nil {
		switch {
		case f == nil:
			return fmt.Errorf("finish without a fence")
		case d.Queue.Source.Name() != s.Name() || !d.Queue.Class.sent():
			return fmt.Errorf("finish of class %d of %s/%d, which is no queue of the shard", d.Queue.Class, d.Queue.Source.Topic, d.Queue.Source.N)
		case len(d.Numbers) > MaxReceive:
			return fmt.Errorf("finish of %d messages, at most %d", len(d.Numbers), MaxReceive)
		}
	}
	return nil
}

// sent reports whether messages are sent to queues of the class.
func (c Class) sent() bool { return c >= ClassWork && c <= ClassMove }

func (r *Receive) check(c *Commit, s Shard) error {
	switch {
	case r.Queue.To != s.Topic:
		return fmt.Errorf("its messages go to topic %q", r.Queue.To)
	case r.Queue.Class < ClassWork || r.Queue.Class > ClassInbox:
		return fmt.Errorf("unknown class")
	case r.Head <= 0:
		return fmt.Errorf("without the head of the queue")
	case len(r.Numbers)+len(r.Refused) > MaxReceive:
		return fmt.Errorf("%d messages, at most %d", len(r.Numbers)+len(r.Refused), MaxReceive)
	case slices.ContainsFunc(c.Puts, func(p Put) bool { return p.ID == r.Queue.ReceiptID() }):
		return fmt.Errorf("its receipt is deleted")
	case len(r.Numbers) < len(c.Adds):
		return fmt.Errorf("%d tasks of %d messages", len(c.Adds), len(r.Numbers))
	}
	seen := make(map[int64]bool, len(r.Numbers)+len(r.Refused))
	for _, all := range [...][]int64{r.Numbers, r.Refused} {
		for _, n := range all {
			if n < r.Head || n >= MaxNumber || seen[n] {
				return fmt.Errorf("number %d is before the head %d, out of range, or comes twice", n, r.Head)
			}
			seen[n] = true
		}
	}
	return nil
}
