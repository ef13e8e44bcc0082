/*
 * One shard that goes from node to node, and one task of it. README.md says what
 * is modelled, what is left out, and what is checked.
 *
 * An atomic or d_step block is one script of the store, or what an actor does with
 * one message. Between two of them anything else may happen, for as long as it
 * likes: that is what pauses, slow networks and wrong clocks are here. Faults are
 * counted, so that every run comes to an end.
 *
 * -D takes a rule away: NO_EPOCH, NO_NONCE, NO_STATE, NO_TOKEN, NO_RECOVER,
 * NO_RETURN.
 */

#define NODES 2
#define NONE  NODES /* no node */
#ifndef TRIES
#define TRIES 2 /* attempts before the task is dead-lettered */
#endif
#define CALLS 2     /* Hold and Recover on their way */
#define HANDS 2     /* workers that believe to hold the task */

#ifndef EXPIRIES
#define EXPIRIES 1 /* sessions that end under a node that lives */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef FLIPS
#define FLIPS 1 /* changes of one node's view that the others do not share */
#endif
#ifndef LOSSES
#define LOSSES 1 /* calls that do not arrive, and answers */
#endif
#ifndef EXTENDS
#define EXTENDS 1
#endif
#ifndef GUESSES
#define GUESSES 0 /* Holds of a task that is held already */
#endif
#ifndef REWINDS
#define REWINDS 0 /* failovers to a replica that is behind */
#endif

mtype = { pending, running, done, dead };             /* the task */
mtype = { idle, hold, recover };                      /* a call */
mtype = { sent, granted, fenced, useless, unknown };  /* and what came of it */

/* The store. */
byte owner = NONE, epoch, nonce;
bool live[NODES] = true; /* the node's session */
mtype state = pending;
byte attempt, token;
bool over; /* the deadline of the hold has passed */

/* The nodes. */
bool up[NODES] = true;
bool gone[NODES];   /* down for good */
bool wanted[NODES]; /* the node's own view says that the shard is for it */
bool owned[NODES];  /* it believes so */
bool giving[NODES]; /* it hands over, and waits for its calls */
byte myEpoch[NODES], myNonce[NODES];

/* Calls on their way, with the fence that they carry. */
mtype kind[CALLS] = idle, came[CALLS];
byte by[CALLS], withEpoch[CALLS], withNonce[CALLS], withToken[CALLS];

byte hand[HANDS]; /* tokens that workers have; 0 is none */

byte expiries = EXPIRIES, crashes = CRASHES, flips = FLIPS, losses = LOSSES, extends = EXTENDS, guesses = GUESSES;

/* Only the checks look at these. */
byte lawful;           /* nonce of the last claim, 0 once it is released */
byte valid;            /* holds that were granted and have not ended */
bool begun[TRIES + 1]; /* by attempt: a hold was granted for it */

#if REWINDS
byte rewinds = REWINDS;
bool kept; /* the replica has what follows */
byte oldOwner, oldEpoch, oldNonce, oldAttempt, oldToken, oldLawful, oldValid;
mtype oldState;
bool oldOver, oldBegun[TRIES + 1];
#define ofReplica(t, n) (oldToken == t || oldNonce == n)
#else
#define ofReplica(t, n) false
#endif

/* Tokens and nonces are random, so a fresh one is one that nobody knows. */
#define knownToken(t) (token == t || hand[0] == t || hand[1] == t || withToken[0] == t || withToken[1] == t || ofReplica(t, 255))
#define knownNonce(n) (nonce == n || myNonce[0] == n || myNonce[1] == n || withNonce[0] == n || withNonce[1] == n || ofReplica(255, n))

inline freshToken(t) {
	t = 1;
	do
	:: knownToken(t) -> t++
	:: else -> break
	od
}

inline freshNonce(n) {
	n = 1;
	do
	:: knownNonce(n) -> n++
	:: else -> break
	od
}

/* What Hold, Recover and Release are checked for. */
#if defined(NO_EPOCH)
#define current(e, n) true
#elif defined(NO_NONCE)
#define current(e, n) (owner != NONE && epoch == e)
#else
#define current(e, n) (owner != NONE && epoch == e && nonce == n)
#endif

#ifdef NO_STATE
#define holdable (state == pending || state == running)
#else
#define holdable (state == pending)
#endif

/* What settlements are checked for. */
#ifdef NO_TOKEN
#define holds(t) (state == running)
#else
#define holds(t) (state == running && token == t)
#endif

inline grant(c) {
	assert(withNonce[c] == lawful); /* the last claim's, and of no other */
	valid++;
	assert(valid == 1);
	attempt++;
	assert(!begun[attempt]);
	begun[attempt] = true;
	state = running;
	token = withToken[c];
	over = false
}

inline endHold(next) {
	state = next;
	token = 0;
	over = false;
	valid--
}

inline fail() {
	if
	:: attempt < TRIES -> endHold(pending)
	:: else -> endHold(dead)
	fi
}

inline execute(c) {
	if
	:: !current(withEpoch[c], withNonce[c]) -> came[c] = fenced
	:: else ->
		if
		:: kind[c] == hold && state == running && token == withToken[c] -> came[c] = granted /* the same again */
		:: kind[c] == hold && holdable && !(state == running && token == withToken[c]) -> grant(c); came[c] = granted
		:: kind[c] == recover && state == running && token == withToken[c] && over ->
			assert(withNonce[c] == lawful);
			fail();
			came[c] = useless
		:: else -> came[c] = useless
		fi
	fi
}

inline forget(c) {
	kind[c] = idle;
	came[c] = 0;
	by[c] = 0;
	withEpoch[c] = 0;
	withNonce[c] = 0;
	withToken[c] = 0
}

/* Faults after the end of the task would show nothing new. */
#define unsettled (state == pending || state == running)

inline lose() {
	owned[me] = false;
	myEpoch[me] = 0;
	myNonce[me] = 0
}

#define mine(c)    (kind[c] != idle && by[c] == me)
#define calling(k) (mine(0) && kind[0] == k || mine(1) && kind[1] == k)
#define room       (kind[0] == idle || kind[1] == idle)

/* call sends a Hold or a Recover with the node's fence. */
inline call(k, t) {
	if
	:: kind[0] == idle -> c = 0
	:: else -> c = 1
	fi;
	kind[c] = k;
	came[c] = sent;
	by[c] = me;
	withEpoch[c] = myEpoch[me];
	withNonce[c] = myNonce[me];
	withToken[c] = t
}

/* answer is what the node does with what came of a call. */
inline answer(c) {
	if
	:: came[c] == unknown -> came[c] = sent /* repeated, with the same token */
	:: came[c] == unknown -> forget(c)
	:: came[c] == granted ->
		if
		:: hand[0] == 0 -> hand[0] = withToken[c]
		:: hand[0] != 0 && hand[1] == 0 -> hand[1] = withToken[c]
		:: else /* nobody takes it: the hold runs out */
		fi;
		forget(c)
	:: came[c] == fenced && !giving[me] -> lose(); forget(c)
	:: came[c] == fenced && giving[me] -> forget(c)
	:: came[c] == useless -> forget(c)
	fi
}

#ifdef NO_RETURN
#define returns false
#else
#define returns (owner == me && !giving[me]) /* of a claim that it does not know of any more */
#endif

active [NODES] proctype Node() {
	byte me = _pid, c, t;
	bool lost; /* it noticed that its session ran out */
	bool reading, judged; /* a claim that is under way, and how far */
	byte sawOwner, sawEpoch, sawNonce;
end:
	do
	/* The session. A node may also not notice that it had run out. */
	:: atomic { up[me] && !live[me] -> live[me] = true; lost = false }
	:: atomic { owned[me] && !live[me] -> lose(); lost = true }

	/* Claim: the record is read, then the owner's session, and then the record is
	   replaced if it is as it was. */
	:: atomic {
		up[me] && !lost && !owned[me] && !giving[me] && !reading && (wanted[me] || returns) &&
		(owner == NONE || owner == me || !live[owner]) ->
		reading = true;
		sawOwner = owner; sawEpoch = epoch; sawNonce = nonce
	}
	:: atomic {
		reading && !judged ->
		if
		:: sawOwner == NONE || sawOwner == me || !live[sawOwner] -> judged = true
		:: else -> reading = false
		fi
	}
	:: atomic {
		judged ->
		if
		:: losses > 0 -> losses-- /* never arrives */
		:: owner == sawOwner && epoch == sawEpoch && nonce == sawNonce ->
			freshNonce(t);
			owner = me; epoch++; nonce = t; lawful = t;
			if
			:: losses > 0 -> losses-- /* the node does not hear of it */
			:: owned[me] = true; myEpoch[me] = epoch; myNonce[me] = nonce
			fi
		:: !(owner == sawOwner && epoch == sawEpoch && nonce == sawNonce)
		fi;
		reading = false; judged = false; sawOwner = 0; sawEpoch = 0; sawNonce = 0; t = 0
	}

	/* Hand over: first nothing new, then Release once the calls have landed. */
	:: atomic { owned[me] && !wanted[me] -> owned[me] = false; giving[me] = true }
	:: atomic {
		giving[me] && !mine(0) && !mine(1) ->
		if
		:: losses > 0 -> losses--
		:: current(myEpoch[me], myNonce[me]) -> owner = NONE; nonce = 0; lawful = 0
		:: !current(myEpoch[me], myNonce[me])
		fi;
		giving[me] = false;
		lose()
	}

	/* The owner's work. */
	:: atomic { owned[me] && state == pending && room && !calling(hold) -> freshToken(t); call(hold, t); t = 0; c = 0 }
	:: atomic { owned[me] && state == running && guesses > 0 && room && !calling(hold) -> guesses--; freshToken(t); call(hold, t); t = 0; c = 0 }
#ifndef NO_RECOVER
	:: atomic { owned[me] && state == running && over && room && !calling(recover) -> call(recover, token); c = 0 }
#endif
	:: atomic { owned[me] && !current(myEpoch[me], myNonce[me]) -> lose() } /* Sweep is refused */
	:: atomic { up[me] && mine(0) && came[0] != sent -> answer(0) }
	:: atomic { up[me] && mine(1) && came[1] != sent -> answer(1) }

	/* Crash: calls that were sent arrive all the same. */
	:: atomic {
		up[me] && crashes > 0 && unsettled ->
		crashes--; up[me] = false;
		lose(); giving[me] = false;
		lost = false; reading = false; judged = false; sawOwner = 0; sawEpoch = 0; sawNonce = 0;
		if
		:: gone[me] = true; wanted[me] = false
		:: skip
		fi
	}
	:: atomic { !up[me] && !gone[me] && !mine(0) && !mine(1) -> up[me] = true; live[me] = true }
	od
}

/* Workers settle under the token that they have, at any time, at any node. */
active [HANDS] proctype Worker() {
	byte me = _pid - NODES;
end:
	do
	:: atomic {
		hand[me] != 0 ->
		if
		:: holds(hand[me]) -> assert(token == hand[me]); endHold(done)
		:: holds(hand[me]) -> assert(token == hand[me]); fail()
		:: holds(hand[me]) && extends > 0 -> extends--; over = false
		:: !holds(hand[me])
		:: skip /* it crashes, or hangs */
		fi;
		if
		:: losses > 0 -> losses-- /* the answer is lost: again */
		:: hand[me] = 0
		fi
	}
	od
}

/* The store's side of the calls: each runs at any time after it was sent. */
active [CALLS] proctype Line() {
	byte me = _pid - NODES - HANDS;
end:
	do
	:: atomic {
		came[me] == sent ->
		if
		:: losses > 0 -> losses--; came[me] = unknown
		:: execute(me)
		:: losses > 0 -> losses--; execute(me); came[me] = unknown
		fi
	}
	:: atomic { kind[me] != idle && came[me] != sent && !up[by[me]] -> forget(me) }
	od
}

/* Time, gossip, and failovers. */
active proctype World() {
	d_step { wanted[0] = !gone[0]; wanted[1] = gone[0] };
end:
	do
	:: atomic { state == running && !over -> over = true }
	:: atomic { live[0] && !up[0] -> live[0] = false }
	:: atomic { live[1] && !up[1] -> live[1] = false }
	:: atomic { live[0] && up[0] && expiries > 0 && unsettled -> expiries--; live[0] = false }
	:: atomic { live[1] && up[1] && expiries > 0 && unsettled -> expiries--; live[1] = false }
	:: atomic { flips > 0 && unsettled && !gone[0] -> flips--; wanted[0] = !wanted[0] }
	:: atomic { flips > 0 && unsettled && !gone[1] -> flips--; wanted[1] = !wanted[1] }
	:: atomic { wanted[0] == wanted[1] && !gone[0] -> wanted[0] = true; wanted[1] = false }
	:: atomic { wanted[0] == wanted[1] && !gone[1] -> wanted[0] = false; wanted[1] = true }
#if REWINDS
	:: d_step {
		!kept ->
		kept = true;
		oldOwner = owner; oldEpoch = epoch; oldNonce = nonce; oldLawful = lawful;
		oldState = state; oldAttempt = attempt; oldToken = token; oldOver = over; oldValid = valid;
		oldBegun[1] = begun[1]; oldBegun[TRIES] = begun[TRIES]
	}
	:: d_step {
		kept && rewinds > 0 ->
		rewinds--;
		owner = oldOwner; epoch = oldEpoch; nonce = oldNonce; lawful = oldLawful;
		state = oldState; attempt = oldAttempt; token = oldToken; over = oldOver; valid = oldValid;
		begun[1] = oldBegun[1]; begun[TRIES] = oldBegun[TRIES]
	}
#endif
	od
}

/* When nothing can happen any more, everything has come to its end. */
active proctype End() {
	timeout;
	assert(state == done || state == dead);
	assert(owner != NONE && wanted[owner] && owned[owner] && myNonce[owner] == nonce)
}
