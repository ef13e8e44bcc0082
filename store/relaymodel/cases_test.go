package relaymodel

// large is how many states a case has that only `make model` visits.
const large = 150_000

// cases are those of the rules as they are. Topic 0 has the shards 0 and 1, and shard 2 in the place of shard 0 behind
// a reshard; topic 1 has shard 1.
func cases() []config {
	a := func(src uint8) message { return message{src, 0, 0, 2} }
	o := func(src uint8) message { return message{src, 0, 1, 1} } // the other shard of topic 0
	b := func(src uint8) message { return message{src, 1, 1, 1} }
	three := []message{a(0), b(0), a(0)}
	four := []message{a(0), a(0), a(0), b(0)}
	mixed := []message{a(0), o(0), a(0)}
	both := []message{a(0), o(0), b(0), a(1)}
	return []config{
		{name: "a pause", msgs: four, pauses: 1},
		{name: "a full shard", msgs: four, fulls: 1},
		{name: "two owners, crash, lost answer", msgs: three, moves: 2, crashes: 1, lost: 1},
		{name: "reshard with two owners", msgs: three, moves: 1, reshard: true},
		{name: "an undeliverable message with two owners", msgs: three, moves: 1, refusals: 1},
		{name: "the destination loses its last writes", msgs: four, backD: true},
		{name: "the source loses its last writes", msgs: three, moves: 1, backS: true},
		{name: "out of order, with a cursor: pauses, full, owners", msgs: mixed, windowed: true, pauses: 1, fulls: 1, moves: 1, lost: 1},
		{name: "out of order, with a cursor: reshard, stores go back", msgs: mixed, windowed: true, fulls: 1, backS: true, backD: true, reshard: true},
		{name: "four messages, pause, full, owners, lost answer", msgs: four, pauses: 1, fulls: 1, moves: 2, lost: 1},
		{name: "pauses, full, owners, crash, lost answer", msgs: mixed, pauses: 2, fulls: 1, moves: 2, crashes: 1, lost: 1, refusals: 1, states: 333_200},
		{name: "two sources, pause, full, owners, lost answer", msgs: both, pauses: 1, fulls: 1, moves: 1, lost: 1, states: 402_738},
		{name: "reshard, pause, full, owners, lost answer, refusal", msgs: mixed, pauses: 1, fulls: 1, moves: 2, lost: 1, refusals: 1, reshard: true, states: 494_112},
	}
}

// mutants are rules that are taken away, and what is found then.
func mutants() []config {
	all := []config{
		{mutant: "receipts are not looked at", finds: twice},
		{mutant: "the floor is the page's last", finds: lost},
		{mutant: "what waits is dropped", finds: lost},
		{mutant: "a cursor is kept", finds: lost},
		{mutant: "a sealed shard receives", reshard: true, finds: twice},
		{mutant: "former shards are not asked", reshard: true, finds: twice},
		{mutant: "numbers are given twice", backS: true, finds: lost},
		{mutant: "refused without a receipt", refusals: 1, finds: twice},
		{mutant: "refused are pruned", refusals: 1, backS: true, finds: lost, states: 173_512},
		{mutant: "receives from before a failover", backS: true, backD: true, finds: lost, states: 962_305},
		{mutant: "the seal is not waited for", reshard: true, backD: true, finds: twice},
		{mutant: "queues share receipts", finds: lost},
		{mutant: "drops at another server", backS: true, states: 253_875}, // does no harm where no number is given twice
	}
	for i := range all {
		c := &all[i]
		c.name, c.msgs = c.mutant, []message{{0, 0, 0, 2}, {0, 0, 1, 1}, {0, 0, 0, 2}}
		c.pauses, c.fulls, c.moves, c.lost = 1, 1, 1, 1
		if c.mutant == "queues share receipts" {
			c.msgs[2] = message{0, 1, 1, 1}
		}
	}
	return all
}
