package relaymodel

import "fmt"

const (
	M = 4 // messages
	D = 3 // destination shards; 2 is that of topic 0 behind a reshard
	S = 2 // sources
	P = 2 // messages of a page
)

// message m of a case: its source, topic, and shard in either generation.
type message struct{ src, topic, old, new uint8 }

type config struct {
	name                                string
	msgs                                []message
	pauses, fulls, moves, crashes, lost uint8 // how often each fault may come
	refusals                            uint8 // messages that a relay finds undeliverable
	backS, backD                        bool  // a source, a destination may lose its last writes
	reshard, windowed                   bool
	mutant                              string
	finds                               finding
	states                              int // about how many it has, of a large one
}

type source struct {
	box  uint8    // messages that are there
	num  [M]uint8 // their numbers
	last uint8
	dead uint8 // kept as undeliverable
	srv  uint8 // which server this is
}

type dest struct {
	floor   [2 * S]uint8  // by queue: every number up to it was settled
	taken   [2 * S]uint16 // those above it that were
	refused [2 * S]uint16 // those that were not made
	made    [M]uint8      // how often each message was made
	sealed  bool
	srv     uint8 // which server this is
}

type relay struct {
	pc, view, topic, at, srv uint8
	after                    uint8
	page, arrived, refused   uint8 // bit masks of messages
	order                    [P]uint8
	n                        uint8
	asked                    bool // the former shard
	floor                    uint8
	dsrv                     [D]uint8 // which servers the destinations were at the beginning
}

type state struct {
	src            [S]source
	dst            [D]dest
	rel            [S][2]relay
	owner          [S]uint8
	sent, excused  uint8 // messages that acks have enqueued; that a store lost
	clock          uint8
	paused, full   bool // topic 0; destination 0
	gen            uint8
	pauses, fulls  uint8
	moves, crashes uint8
	lost, refusals uint8
	sSnap, dSnap   uint8 // 0: not yet, 1: kept, 2: gone back to
	oldS           source
	oldD           dest
	bad            finding
}

type model struct {
	config
	out []state
	lab []string
}

func (m *model) emit(label string, s state) {
	m.check(&s)
	m.out, m.lab = append(m.out, s), append(m.lab, label)
}

// check is the safety property.
func (m *model) check(s *state) {
	for i := range m.msgs {
		n := uint8(0)
		for d := range s.dst {
			n += s.dst[d].made[i]
		}
		n += s.src[m.msgs[i].src].dead >> i & 1
		if n > 1 {
			s.bad = twice
		}
		if bit := uint8(1) << i; s.sent&bit != 0 && s.excused&bit == 0 && s.src[m.msgs[i].src].box&bit == 0 && n == 0 {
			s.bad = lost
		}
	}
}

func (m *model) destOf(i int, view uint8) int {
	if view == 1 {
		return int(m.msgs[i].new)
	}
	return int(m.msgs[i].old)
}

// next collects what may happen in a state.
func (m *model) next(s state) {
	m.out, m.lab = m.out[:0], m.lab[:0]
	for i, msg := range m.msgs { // acks, in order for each source
		if s.sent&(1<<i) == 0 {
			first := true
			for k := range i {
				first = first && (m.msgs[k].src != msg.src || s.sent&(1<<k) != 0)
			}
			if first {
				n := s
				m.send(&n, i)
				m.emit(fmt.Sprintf("ack enqueues message %d", i), n)
			}
		}
	}
	m.faults(s)
	for k := range S {
		for r := range 2 {
			m.turn(s, k, r)
		}
	}
}

func (m *model) send(s *state, i int) {
	src := &s.src[m.msgs[i].src]
	s.sent |= 1 << i
	s.clock++
	src.last = max(src.last+1, s.clock) // by the clock: none is given twice
	if m.mutant == "numbers are given twice" {
		for src.last = 1; ; src.last++ {
			free := true
			for k := range m.msgs {
				free = free && (src.box&(1<<k) == 0 || src.num[k] < src.last)
			}
			if free {
				break
			}
		}
	}
	src.num[i] = src.last
	src.box |= 1 << i
}

func (m *model) faults(s state) {
	if s.pauses < m.pauses && !s.paused {
		n := s
		n.paused, n.pauses = true, n.pauses+1
		m.emit("topic 0 is paused", n)
	}
	if s.paused {
		n := s
		n.paused = false
		m.emit("topic 0 is resumed", n)
	}
	if s.fulls < m.fulls && !s.full {
		n := s
		n.full, n.fulls = true, n.fulls+1
		m.emit("shard 0 is full", n)
	}
	if s.full {
		n := s
		n.full = false
		m.emit("shard 0 has room", n)
	}
	for k := range S {
		if s.moves < m.moves && m.uses(k) {
			n := s
			n.owner[k], n.moves = 1-n.owner[k], n.moves+1
			m.emit(fmt.Sprintf("source %d has another owner", k), n)
		}
		for r := range 2 {
			if s.crashes < m.crashes && s.rel[k][r] != (relay{}) {
				n := s
				n.rel[k][r], n.crashes = relay{}, n.crashes+1
				m.emit(fmt.Sprintf("relay %d of source %d dies and starts", r, k), n)
			}
		}
	}
	if m.reshard {
		switch {
		case s.gen == 0:
			n := s
			n.gen = 1
			m.emit("topic 0 is to have other shards", n)
		case !s.dst[0].sealed:
			n := s
			n.dst[0].sealed = true
			if n.dSnap == 1 && m.mutant != "the seal is not waited for" {
				n.oldD = n.dst[0] // a replica has it, and all before it
			}
			m.emit("shard 0 is sealed", n)
		}
	}
	if m.backS {
		switch s.sSnap {
		case 0:
			n := s
			n.oldS, n.sSnap = s.src[0], 1
			m.emit("a replica of source 0 falls behind", n)
		case 1:
			n := s
			for i := range m.msgs {
				if bit := uint8(1) << i; m.msgs[i].src == 0 && s.sent&bit != 0 && s.oldS.num[i] == 0 {
					n.excused |= bit // the ack is lost, too
				}
			}
			srv := n.src[0].srv
			n.src[0], n.oldS, n.sSnap = s.oldS, source{}, 2
			n.src[0].srv = srv + 1
			m.emit("source 0 fails over", n)
		}
	}
	if m.backD {
		switch s.dSnap {
		case 0:
			n := s
			n.oldD, n.dSnap = s.dst[0], 1
			m.emit("a replica of shard 0 falls behind", n)
		case 1:
			n := s
			for i := range m.msgs {
				bit, k := uint8(1)<<i, m.msgs[i].src // it answered that it has it, and then lost it
				heard := s.rel[k][0].arrived | s.rel[k][0].refused | s.rel[k][1].arrived | s.rel[k][1].refused
				z, num := m.queue(int(k), m.msgs[i].topic), s.src[k].num[i]
				lost := s.dst[0].made[i] > s.oldD.made[i] || (s.dst[0].refused[z]&^s.oldD.refused[z])>>num&1 != 0
				if lost && (s.src[k].box&bit == 0 || heard&bit != 0) {
					n.excused |= bit
				}
			}
			srv := n.dst[0].srv
			n.dst[0], n.oldD, n.dSnap = s.oldD, dest{}, 2
			n.dst[0].srv = srv + 1
			m.emit("shard 0 fails over", n)
		}
	}
}

func (m *model) uses(k int) bool {
	for _, msg := range m.msgs {
		if int(msg.src) == k {
			return true
		}
	}
	return false
}

// page are the first messages of a source behind a number, of one topic or of any.
func (m *model) page(s *state, k int, after uint8, topic int) (order [P]uint8, n, mask uint8) {
	for int(n) < P {
		best := -1
		for i, msg := range m.msgs {
			bit := uint8(1) << i
			if int(msg.src) != k || s.src[k].box&bit == 0 || mask&bit != 0 || s.src[k].num[i] <= after || topic >= 0 && int(msg.topic) != topic {
				continue
			}
			if best < 0 || s.src[k].num[i] < s.src[k].num[best] {
				best = i
			}
		}
		if best < 0 {
			break
		}
		order[n], mask, n = uint8(best), mask|1<<best, n+1
	}
	return order, n, mask
}

// view is what a node sees of topic 0: other shards once the former ones are sealed.
func view(s *state) uint8 {
	if s.gen == 1 && s.dst[0].sealed {
		return 1
	}
	return 0
}

// drop forgets what has arrived. It is the owner's, and only on the server that was read.
func (m *model) drop(s *state, k, r int) bool {
	p := &s.rel[k][r]
	if int(s.owner[k]) != r || p.srv != s.src[k].srv && m.mutant != "drops at another server" {
		return false
	}
	s.src[k].dead |= p.refused & s.src[k].box
	p.arrived |= p.refused
	for i := range m.msgs { // by number, as the store does
		if bit := uint8(1) << i; s.src[k].box&bit != 0 && int(m.msgs[i].src) == k {
			for j := range m.msgs {
				if p.arrived&(1<<j) != 0 && s.src[k].num[j] == s.src[k].num[i] {
					s.src[k].box &^= bit
				}
			}
		}
	}
	return true
}

// turn is a step of a turn of one queue.
func (m *model) turn(s state, k, r int) {
	who := fmt.Sprintf("relay %d of source %d ", r, k)
	switch s.rel[k][r].pc {
	case 0: // the gate of a topic, then the head of its queue
		if int(s.owner[k]) != r || !m.uses(k) {
			return
		}
		for topic := range 2 {
			if topic == 0 && s.paused {
				continue
			}
			n := s
			p := &n.rel[k][r]
			after := uint8(0)
			if m.mutant == "a cursor is kept" || m.windowed && s.rel[k][r].at == uint8(topic) {
				after = s.rel[k][r].after
			}
			*p = relay{pc: 1, topic: uint8(topic), view: view(&s), srv: s.src[k].srv}
			if p.order, p.n, p.page = m.page(&s, k, after, topic); p.n == 0 {
				if *p = (relay{}); m.windowed && after > 0 {
					m.emit(who+"begins at the head again", n)
				}
				continue
			}
			for d := range D {
				p.dsrv[d] = s.dst[d].srv
			}
			p.floor = s.src[k].num[p.order[0]] - 1
			if m.windowed { // the store says where the queue begins
				head, _, _ := m.page(&s, k, 0, topic)
				p.floor = s.src[k].num[head[0]] - 1
			}
			if m.mutant == "the floor is the page's last" {
				p.floor = s.src[k].num[p.order[p.n-1]]
			}
			m.emit(who+fmt.Sprintf("reads the head of queue %d: %v", topic, p.order[:p.n]), n)
		}
	case 1: // by shards, each in one commit
		p := s.rel[k][r]
		z := m.queue(k, p.topic)
		for d := range D {
			var some, former uint8
			for _, i := range p.order[:p.n] {
				if bit := uint8(1) << i; p.page&bit != 0 && p.arrived&bit == 0 && m.destOf(int(i), p.view) == d {
					some |= bit
					if p.view == 1 && d != m.destOf(int(i), 0) {
						former |= bit
					}
				}
			}
			if some == 0 {
				continue
			}
			if former != 0 && !p.asked && m.mutant != "former shards are not asked" {
				n := s
				n.rel[k][r].asked = true
				q := &n.rel[k][r]
				there, refused := m.received(&s, k, z, 0, former)
				q.arrived, q.refused, q.page = q.arrived|there, q.refused|refused, q.page&^refused
				m.emit(who+"asks the former shard", n)
				return
			}
			n := s
			q := &n.rel[k][r]
			to := &n.dst[d]
			there, refused := m.received(&s, k, z, d, some)
			switch {
			case p.dsrv[d] != to.srv && m.mutant != "receives from before a failover", d == 0 && s.full, to.sealed && m.mutant != "a sealed shard receives":
				q.page &^= some // they wait for another turn
				if m.mutant == "what waits is dropped" {
					q.arrived |= some
				}
				m.emit(who+fmt.Sprintf("is refused by shard %d", d), n)
			case there|refused != 0 && m.mutant != "receipts are not looked at":
				q.arrived, q.refused, q.page = q.arrived|there, q.refused|refused, q.page&^refused
				m.emit(who+fmt.Sprintf("hears that shard %d has %04b", d, there), n)
			default:
				to.floor[z] = max(to.floor[z], p.floor)
				if s.refusals < m.refusals { // the first is refused for good: the shard notes that, and makes none of it
					f := n
					first := some & -some
					f.refusals++
					f.rel[k][r].refused |= first
					f.rel[k][r].page &^= first
					if m.mutant != "refused without a receipt" {
						for i := range m.msgs {
							if first&(1<<i) != 0 {
								f.dst[d].taken[z] |= 1 << s.src[k].num[i]
								f.dst[d].refused[z] |= 1 << s.src[k].num[i]
							}
						}
						m.prune(&f.dst[d], z)
					}
					m.emit(who+fmt.Sprintf("has shard %d refuse %04b", d, first), f)
				}
				if first := some & -some; first != some { // there is room for one only
					f := n
					for i := range m.msgs {
						if first&(1<<i) != 0 {
							f.dst[d].made[i]++
							f.dst[d].taken[z] |= 1 << s.src[k].num[i]
						}
					}
					m.prune(&f.dst[d], z)
					f.rel[k][r].arrived |= first
					f.rel[k][r].page &^= some &^ first
					m.emit(who+fmt.Sprintf("makes %04b of %04b in shard %d", first, some, d), f)
				}
				for i := range m.msgs {
					if some&(1<<i) != 0 {
						to.made[i]++
						to.taken[z] |= 1 << s.src[k].num[i]
					}
				}
				m.prune(to, z)
				if s.lost < m.lost {
					again := n
					again.rel[k][r], again.lost = s.rel[k][r], s.lost+1
					m.emit(who+fmt.Sprintf("makes %04b in shard %d, the answer is lost", some, d), again)
				}
				q.arrived |= some
				m.emit(who+fmt.Sprintf("makes %04b in shard %d", some, d), n)
			}
			return
		}
		n := s
		q := &n.rel[k][r]
		ok := m.drop(&n, k, r)
		last := s.src[k].num[p.order[p.n-1]]
		*q = relay{}
		if (m.mutant == "a cursor is kept" || m.windowed) && ok {
			q.after, q.at = last, p.topic
		}
		m.emit(who+"drops what arrived", n)
	}
}

// queue is the number of the receipts of a queue.
func (m *model) queue(k int, topic uint8) int {
	if m.mutant == "queues share receipts" {
		topic = 0
	}
	return 2*k + int(topic)
}

// prune forgets the numbers up to the floor. Those that were refused are kept: few are.
func (m *model) prune(to *dest, z int) {
	for x := range to.floor[z] + 1 {
		to.taken[z] &^= 1 << x
	}
	if m.mutant == "refused are pruned" {
		to.refused[z] &= to.taken[z]
	}
}

// received are those of some messages that a shard has made, and those that it has refused.
func (m *model) received(s *state, k, z, d int, some uint8) (there, refused uint8) {
	for i := range m.msgs {
		num := s.src[k].num[i]
		switch to := &s.dst[d]; {
		case some&(1<<i) == 0:
		case to.refused[z]&(1<<num) != 0:
			refused |= 1 << i
		case num <= to.floor[z] || to.taken[z]&(1<<num) != 0:
			there |= 1 << i
		}
	}
	return there, refused
}

type edge struct{ from, to int32 }

// finding is what a search finds.
type finding uint8

const (
	nothing finding = iota
	lost            // a message left its queue and was not made
	twice           // one was made twice, or is a dead letter as well
	stuck           // from some state the queues cannot become empty
	tooMany         // states
)

func (f finding) String() string {
	return [...]string{"nothing", "a message lost", "a message twice", "queues stuck", "too many states"}[f]
}

// run visits every state of a case, and returns what it finds, how many states it saw, and a way to that.
func run(c config, limit int) (found finding, states int, way []string) {
	m := &model{config: c}
	var begin state
	ids := map[state]int32{begin: 0}
	list := []state{begin}
	from, by := []int32{-1}, []string{""}
	var edges []edge
	trace := func(i int32) (way []string) {
		for ; from[i] >= 0; i = from[i] {
			way = append([]string{by[i]}, way...)
		}
		return way
	}
	for at := 0; at < len(list); at++ {
		m.next(list[at])
		for k, n := range m.out {
			id, seen := ids[n]
			if !seen {
				id = int32(len(list))
				ids[n] = id
				list, from, by = append(list, n), append(from, int32(at)), append(by, m.lab[k])
				if n.bad != nothing {
					return n.bad, len(list), trace(id)
				}
			}
			edges = append(edges, edge{int32(at), id})
		}
		if len(list) > limit {
			return tooMany, len(list), nil
		}
	}
	// liveness: backwards from the states in which all was sent and has arrived
	before := make([][]int32, len(list))
	for _, e := range edges {
		before[e.to] = append(before[e.to], e.from)
	}
	ends, work := make([]bool, len(list)), []int32(nil)
	for i := range list {
		if list[i].src[0].box|list[i].src[1].box == 0 && list[i].sent == 1<<len(c.msgs)-1 {
			ends[i], work = true, append(work, int32(i))
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, b := range before[i] {
			if !ends[b] {
				ends[b], work = true, append(work, b)
			}
		}
	}
	for i := range list {
		if !ends[i] {
			return stuck, len(list), trace(int32(i))
		}
	}
	return nothing, len(list), nil
}
