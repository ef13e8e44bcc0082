package actors

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
)

// dispatch sends the settlements of a call to the shards that their tokens name.
func (r *Topic) dispatch(call *shard.SettleCall) {
	var valid []int
	for i, a := range call.Asked {
		err := a.Refused
		if _, token, ok := subscription.DecodeToken(a.Token); ok {
			call.Tokens[i] = token
		} else if err == nil {
			err = problem.BadToken()
		}
		if err != nil {
			call.Refuse(i, err)
			continue
		}
		valid = append(valid, i)
	}
	if rest := r.toShards(call, valid); len(rest) > 0 {
		r.rt.Pool.Run(func() { // the tokens may be of shards that this node does not know yet
			r.lookAgain()
			for _, i := range r.toShards(call, rest) {
				call.Refuse(i, problem.BadToken())
			}
		})
	}
}

// toShards sends settlements of a call on, and returns those of shards that this
// node has not.
func (r *Topic) toShards(call *shard.SettleCall, items []int) (rest []int) {
	shards := *r.layout.Load()
	byShard := make([][]int, len(shards))
	for _, i := range items {
		if n, _, _ := subscription.DecodeToken(call.Asked[i].Token); shards.at(n).pid != nil {
			byShard[n] = append(byShard[n], i)
		} else {
			rest = append(rest, i)
		}
	}
	for n, items := range byShard {
		if len(items) > 0 {
			r.rt.Send(shards[n].pid, &shard.SettleHolds{Call: call, Items: items})
		}
	}
	return rest
}
