package fleet

import "time"

// AuditOutcome says what a record of an audit log tells of a call.
type AuditOutcome uint8

// The outcomes of calls. The last two are of no call: the server began to write, or took out a line
// that was not whole.
const (
	AuditAsked AuditOutcome = iota + 1
	AuditDone
	AuditFailed
	AuditRefused
	AuditStarted
	AuditCut
)

// AuditFilter says which records are meant: those that match all that is set.
type AuditFilter struct {
	Caller   string // kind and name, the name alone, or the id of a token
	Method   string // with its service or without
	Resource string // what a call is about, or a text that is a value of its request
	Outcome  AuditOutcome
	From     time.Time
	Before   time.Time
}

// AuditQuery asks a node for lines of its log, the newest first.
type AuditQuery struct {
	AuditFilter
	Until int64 // only lines before this byte of the log; 0: all
	Most  int   // lines
	Bytes int   // of all lines; one comes in any case
}

// AuditLine is a record as it is written.
type AuditLine struct {
	Text    []byte
	At      int64 // where in the log it begins
	Time    time.Time
	Altered bool // it is not as it was written
}

// AuditPage is what a node found.
type AuditPage struct {
	None  bool // it keeps no log
	Lines []AuditLine

	End     int64     // where in the log reading began
	Next    int64     // and where that of the next lines does; 0: there are none
	Reached time.Time // of the last line that was looked at
}

// AuditState is what is known of the chain of hashes of a log.
type AuditState uint8

// The states of chains.
const (
	AuditWhole    AuditState = iota + 1 // it is as it was written
	AuditBroken                         // it is not
	AuditChecking                       // the check goes on
	AuditNone                           // the node keeps no log
	AuditUnknown                        // the node is silent, or cannot read it
)

// AuditChain is the chain of hashes of a node's log.
type AuditChain struct {
	State   AuditState
	Records int64     // of one that is whole
	Head    string    // hash of its last record
	Checked time.Time // when the check ended
	Fault   string    // why it is broken or unknown
}
