package ledger

// Kind is what an event is about.
type Kind string

// The kinds of events.
const (
	Opened    Kind = "opened"    // first event of a file; Client names who writes it
	Topic     Kind = "topic"     // a topic was made: HoldMS is its visibility timeout
	Call      Kind = "call"      // a request is about to be sent
	Answer    Kind = "answer"    // what came of the call with the same number
	Delivered Kind = "delivered" // a task came in
	Fault     Kind = "fault"     // something is about to be broken; Fault names it
	Healed    Kind = "healed"    // it is whole again
	Clock     Kind = "clock"     // the store's clock was read: StoreNow, between Mono-Took and Mono
	Found     Kind = "found"     // a task lay in the store at the end, in State
	Audited   Kind = "audited"   // every task in the store has been told
	Ran       Kind = "ran"       // a handler does what Name names, for once

	// Ordered says that a backlog of the topic waited as a whole at one node, in memory, and
	// that this node had it until it was gone. Cap is how many tasks may have been on their
	// way to workers at a time.
	Ordered Kind = "ordered"

	// Works says that a worker is about to take tasks of the topic, and that it handles Cap of them at a time.
	Works Kind = "works"

	// Of watches; Watch names the one that it is of.
	Watching Kind = "watching" // it begins, behind Cursor, or with the oldest change
	Told     Kind = "told"     // of Change, which Cursor is behind
	Expired  Kind = "expired"  // it was told that it has missed something, and begins anew
	Failed   Kind = "failed"   // it ended with Reason, which it should not
	Logged   Kind = "logged"   // Change was in the log of its topic at the end
)

// Op is what a call asks for.
type Op string

// The operations.
const (
	Enqueue    Op = "enqueue"
	Delete     Op = "delete"
	Reschedule Op = "reschedule"
	Update     Op = "update"  // Sum and Due are those that it asks for, if any
	Promote    Op = "promote" // due now
	Wait       Op = "wait"    // until it is settled; the answer has State, and Output of one that is done
	Cancel     Op = "cancel"  // Final: or delete it; the answer has Outcome

	// Of a topic, without a Task. Settings is what was set, in words.
	Pause     Op = "pause"
	Resume    Op = "resume"
	Configure Op = "configure"
	Drop      Op = "drop" // with all its tasks
	// Acquire takes Tokens of its rate, or of that of Key; the answer is OK when they
	// were granted, for DelayMS later, and Refused when there were none.
	Acquire Op = "acquire"

	// Of a schedule, without a Task; Schedule names it.
	PutSchedule    Op = "put_schedule" // with Timetable, and Sum of the payload of its runs
	PauseSchedule  Op = "pause_schedule"
	ResumeSchedule Op = "resume_schedule"
	Trigger        Op = "trigger" // the answer has ID of the run, if it was made at once

	// Of an audience, without a Task; Recipient names who it is about, and Topic is that of the
	// schedule whose runs go through it.
	Join    Op = "join"     // or begin as the one who is to join, opt out or move later
	OptOut  Op = "opt_out"  // of the kind of the runs
	MoveOn  Op = "move_on"  // to another time zone
	DropOut Op = "drop_out" // is no recipient any more

	// Of a workflow, without a Task; Flow names it.
	Submit         Op = "submit" // with Workflow
	Signal         Op = "signal" // Signal names it, and Sum is of its payload
	CancelWorkflow Op = "cancel_workflow"
	PauseWorkflow  Op = "pause_workflow"
	ResumeWorkflow Op = "resume_workflow"
	RetryWorkflow  Op = "retry_workflow"
	SkipStep       Op = "skip_step" // Step names it, and Output is of the result it is given

	Ack     Op = "ack"
	Nack    Op = "nack"
	Release Op = "release"
	Extend  Op = "extend"

	Checkpoint Op = "checkpoint" // Name is remembered
)

// Result is how a call ended.
type Result string

// The results. A call without an answer ended Unknown.
const (
	OK      Result = "ok"
	Already Result = "already" // OK, and it had been done before
	Refused Result = "refused" // the server said that it changed nothing; Reason says why
	Unknown Result = "unknown" // deadline, lost connection, or the server could not tell
)

// Event is one line of a ledger. Fields that do not apply are left out.
type Event struct {
	Kind Kind `json:"kind"`
	// Mono is the monotonic clock of the machine in nanoseconds, the same for all
	// its processes; Wall the time of day in Unix nanoseconds.
	Mono int64 `json:"mono"`
	Wall int64 `json:"wall"`

	Client string `json:"client,omitempty"` // in Opened only; in what Read returns, in all
	Call   uint64 `json:"call,omitempty"`   // pairs calls and answers within a file
	Op     Op     `json:"op,omitempty"`
	Topic  string `json:"topic,omitempty"`
	Task   string `json:"task,omitempty"`
	Result Result `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"` // of a refusal or an unknown outcome, or why a task is dead

	// Due in Unix milliseconds: asked for in a call, resolved in an answer, as the
	// server told it in a delivery, as stored in Found.
	Due int64 `json:"due_ms,omitempty"`
	// Latest is until when the server may choose Due, in an enqueue that lets it.
	Latest int64 `json:"latest_ms,omitempty"`
	// DelayMS is when a nacked or released task may come again, if the worker said so, and
	// when tokens may be used.
	DelayMS int64 `json:"delay_ms,omitempty"`
	Final   bool  `json:"final,omitempty"` // of a nack: straight to the dead letters; of a cancel: or delete it
	// Sum is a checksum of the payload, in calls, deliveries and Found.
	Sum string `json:"sum,omitempty"`

	Attempt int    `json:"attempt,omitempty"`
	Token   string `json:"token,omitempty"` // of the hold, in hex
	// HoldMS is how long a hold lasts: from when a delivery was sent, from the answer
	// to an extend; in Topic the length of every hold; in Found from Mono, while
	// running.
	HoldMS int64 `json:"hold_ms,omitempty"`

	Fault string `json:"fault,omitempty"`

	StoreNow int64 `json:"store_now_ms,omitempty"`
	Took     int64 `json:"took,omitempty"` // nanoseconds

	// Version of the task: in answers to edits, in refusals because of it, in
	// deliveries and in Found. IfVersion is the one that an edit asks for.
	Version   int64 `json:"version,omitempty"`
	IfVersion int64 `json:"if_version,omitempty"`
	// Group names a call about many tasks, which each of them has; Changed in the
	// answers is how many of them it says it changed.
	Group   string `json:"group,omitempty"`
	Changed int64  `json:"changed,omitempty"`

	// ID is that of a task with an idempotency key, in answers, deliveries and Found.
	// Task is the key then: see KeyTask.
	ID string `json:"id,omitempty"`
	// Conflict is what an enqueue with an idempotency key does when it is taken.
	Conflict string `json:"conflict,omitempty"`
	// Key is what a task counts for under the limits of its topic, in enqueues, and whose
	// tokens are acquired.
	Key    string `json:"key,omitempty"`
	Tokens int    `json:"tokens,omitempty"`
	// Priority, Lane and Weight are its priority, fairness key and weight, in enqueues of a
	// backlog; Ageing is that of the Topic.
	Priority int    `json:"priority,omitempty"`
	Lane     string `json:"lane,omitempty"`
	Weight   int    `json:"weight,omitempty"`
	Ageing   int    `json:"ageing,omitempty"`
	// Order is the ordering key of a task, in enqueues.
	Order string `json:"order,omitempty"`
	// Of Topic: how many of its tasks, and of those of one key, may be held at a time,
	// and how fast they may be delivered. 0 and nil are no limit.
	Cap     int   `json:"cap,omitempty"`
	Shared  int   `json:"shared,omitempty"` // of the tasks of all topics of its namespace
	KeyCap  int   `json:"key_cap,omitempty"`
	Rate    *Rate `json:"rate,omitempty"`
	KeyRate *Rate `json:"key_rate,omitempty"`
	// KeepMS is how long it keeps done tasks, and their history.
	KeepMS int64 `json:"keep_ms,omitempty"`
	// MaxDead is how many dead letters it keeps; 0: all. Then it has a log, too.
	MaxDead  int    `json:"max_dead,omitempty"`
	Settings string `json:"settings,omitempty"` // in Configure, and in Found without a Task

	Outcome string `json:"outcome,omitempty"` // of a cancel

	Watch  string  `json:"watch,omitempty"`
	Cursor string  `json:"cursor,omitempty"` // in base64
	Change *Change `json:"change,omitempty"`
	// Tag is an attribute of a task, in enqueues; in Watching the one that tasks must have.
	Tag string `json:"tag,omitempty"`

	// Output is a checksum of a result: in acks, waits and Found.
	Output  string    `json:"output,omitempty"`
	History []Attempt `json:"history,omitempty"` // what the store says of the attempts, in Found

	// Attempts is how many a task has at most, in enqueues; 0: not told.
	Attempts int `json:"attempts,omitempty"`
	// Replaced is what the task was in whose place it came, in answers to enqueues.
	Replaced string `json:"replaced,omitempty"`

	// Schedule is that of a call or of Found without a Task, and the one that made a task, in
	// deliveries and Found. Occurrence is the instant of such a task, Unix ms.
	Schedule   string     `json:"schedule,omitempty"`
	Occurrence int64      `json:"occurrence_ms,omitempty"`
	Timetable  *Timetable `json:"timetable,omitempty"`
	Standing   *Standing  `json:"standing,omitempty"` // in Found, of a schedule
	// Spread is that of a schedule with an audience, in PutSchedule. Recipient is whom a task of its
	// runs is for, and Created when the store says that it was made, Unix ms, in deliveries and
	// Found. Walk is how a run stands, in Found without a Task.
	Spread    *Spread `json:"spread,omitempty"`
	Recipient string  `json:"recipient,omitempty"`
	Created   int64   `json:"created_ms,omitempty"`
	Walk      *Walk   `json:"walk,omitempty"`

	// Flow is the id of the workflow of a call or of Found without a Task.
	Flow     string         `json:"flow,omitempty"`
	Workflow *Workflow      `json:"workflow,omitempty"`
	Signal   string         `json:"signal,omitempty"`
	Step     string         `json:"step,omitempty"`
	Steps    []StepStanding `json:"steps,omitempty"`  // in Found, of a workflow
	Making   *Making        `json:"making,omitempty"` // in deliveries and Found
	// Next are the sums of the payloads of tasks that an ack enqueues, and Grow the steps that
	// it adds, for which the task's own step waits if it Suspends it. Cause is the task whose ack
	// enqueued one, in deliveries and Found.
	Next     []string `json:"next,omitempty"`
	Grow     []Step   `json:"grow,omitempty"`
	Suspends bool     `json:"suspends,omitempty"`
	Cause    string   `json:"cause,omitempty"`

	Name string `json:"name,omitempty"` // of what a handler does once, in checkpoints and Ran

	State      string `json:"state,omitempty"`
	Retries    int    `json:"retries,omitempty"`
	MaxRetries int    `json:"max_retries,omitempty"`
}

// KeyTask is what a ledger calls the tasks of an idempotency key.
func KeyTask(key string) string { return "key:" + key }

// Change is what a watch or a log tells of a task. Times are of the store's clock.
type Change struct {
	Shard    int    `json:"shard"`
	Position int64  `json:"position"`
	At       int64  `json:"at_us"` // Unix microseconds
	What     string `json:"what"`  // such as held
	Attempt  int    `json:"attempt,omitempty"`
	Due      int64  `json:"due_ms,omitempty"`
	Version  int64  `json:"version,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Worker   string `json:"worker,omitempty"`
	Tag      string `json:"tag,omitempty"`
}

// Marker begins the ids of tasks that are no part of what is checked: those by which
// watchers know that they have come to the end.
const Marker = "end-"

// Attempt is what the store says of one attempt. Times are of its clock, in Unix
// milliseconds, and 0 when they are not known.
type Attempt struct {
	Number  int    `json:"number"`
	Worker  string `json:"worker"`
	Started int64  `json:"started_ms"`
	Ended   int64  `json:"ended_ms,omitempty"`
	Outcome string `json:"outcome"`
}

// What an enqueue with an idempotency key does when it is taken.
const (
	Return  = "return"  // with a window, within a ledger
	Reject  = "reject"  // so, too
	Replace = "replace" // while its task is live
)

// KeyTaken is the reason of a refusal.
const KeyTaken = "KEY_TAKEN"

// Reasons of refusals that the rules know, in Event.Reason.
const (
	HoldLost = "HOLD_LOST"
	NoTask   = "NO_TASK"
	Running  = "TASK_RUNNING"
	Finished = "TASK_FINISHED"
	Mismatch = "VERSION_MISMATCH"
)

// Limited reports whether a topic has limits.
func (e *Event) Limited() bool {
	return e.Cap > 0 || e.Shared > 0 || e.KeyCap > 0 || e.Rate != nil || e.KeyRate != nil
}

// Special reports whether a topic is one that makes its tasks wait.
func (e *Event) Special() bool { return e.Limited() || e.KeepMS != 0 }
