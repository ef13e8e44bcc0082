package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is put together from its file and those that it includes. What Go and Lua
// both know has its names from here:
//
//	-- KEYS  owner, log              the keys, which the script knows as OWNER and LOG
//	-- KEYS  those of a shard        the same for those of shardNouns that the script uses
//	-- KEYS  all of a shard          the same for shardNouns
//
// and values, which are those of luaValues. A script gets the keys that it
// uses as locals, and the values as numbers.
var (
	includeLine = regexp.MustCompile(`(?m)^\s*-- include (\w+\.lua)$`)
	keysLine    = regexp.MustCompile(`(?m)^-- KEYS  (those of a shard|all of a shard|\w+(?:, \w+)*)$`)
	upperName   = regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)
	luaToken    = regexp.MustCompile(`'(?:\\.|[^'\\])*'|--.*|\b[A-Z][A-Z_0-9]+\b`) // strings, comments, names in capital letters
	luaComment  = regexp.MustCompile(`--.*`)
)

// luaValue is a number that scripts know by a name.
type luaValue struct {
	name string
	n    int64
}

// luaValues are the outcomes of the contract and the kinds of changes as scripts spell them
// (NOT_DUE, CHANGE_HELD), numbers of records and requests, and bounds.
func luaValues() []luaValue {
	values := []luaValue{
		{"PLACE_NONE", placeNone}, {"PLACE_PENDING", placePending}, {"PLACE_RUNNING", placeRunning}, {"PLACE_DEAD", placeDead}, {"PLACE_DONE", placeDone},
		{"KEPT_DUE", keptDue}, {"KEPT_TRACE", keptTrace}, {"MARK_HELD", markHeld}, {"MARK_CANCELLED", markCancelled}, {"SLIDING_WINDOW", int64(store.SlidingWindow)},
		{"KEY_RETURN", int64(store.KeyReturn)}, {"KEY_REJECT", int64(store.KeyReject)}, {"KEY_REPLACE", int64(store.KeyReplace)}, {"KEPT_REQUESTS", store.KeptRequests},
		{"CELL_SCHEDULE", store.CellSchedule}, {"CELL_WORKFLOW", store.CellWorkflow}, {"CELL_TALLY", store.CellTally},
		{"MAX_RECEIVE", store.MaxReceive}, {"KEPT_REFUSED", store.KeptRefused}, {"RECEIPT_FORMAT", store.ReceiptFormat},
		{"JOURNAL_NAMES", store.MaxJournalNames}, {"MOST_NAMES", mostNames}, {"JOURNAL_BYTES", store.MaxJournalBytes}, {"ENCRYPTED_BYTES", store.EncryptedBytes},
		{"MAX_WANTED", store.MaxWanted}, {"DROPPED_LIFE", droppedLife.Milliseconds()}, {"MAX_BODIES", store.MaxBodies}, {"MAX_AHEAD", store.MaxAhead.Microseconds()},
		{"WAIT_LIFE", store.WaitLife.Microseconds()}, {"CALL_LIFE", store.CallLife.Microseconds()}, {"LATE_CALLS", store.LateCalls}, {"NOTICE_WAIT", store.NoticeWait.Microseconds()},
		{"LINE_TURN", store.LineTurn.Microseconds()}, {"SHARE_PERIOD", store.SharePeriod.Microseconds()},
		{"TOKEN_HORIZON", store.TokenHorizon.Microseconds()}, {"TOKEN_LIFE", store.Rate{}.Before(time.UnixMicro(0)).UnixMicro()},
		{"GRANTED", int64(store.Granted)}, {"NO_TOKEN", int64(store.NoToken)}, {"NO_PERMIT", int64(store.NoPermit)}, {"OVER_RATE", int64(store.OverRate)},
		{"REASON_EXPIRED", int64(store.ReasonExpired)}, {"REASON_CORRUPT", int64(store.ReasonCorrupt)}, {"REASON_CANCELLED", int64(store.ReasonCancelled)},
		{"OUTCOME_ACKED", int64(store.OutcomeAcked)}, {"OUTCOME_CANCELLED", int64(store.OutcomeCancelled)},
	}
	for _, s := range store.Statuses() {
		values = append(values, luaValue{upperCase(s.String()), int64(s)})
	}
	for k := store.ChangeEnqueued; k <= store.ChangeCancelRequested; k++ {
		values = append(values, luaValue{"CHANGE_" + strings.ToUpper(k.String()), int64(k)})
	}
	return values
}

// upperCase spells a name of Go like a constant: NotDue is NOT_DUE.
func upperCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

func loadScript(name string) (*conn.Script, error) {
	source, err := included(name + ".lua")
	if err != nil {
		return nil, err
	}
	keys := shardKeysOf(source)
	source = named(source)
	sum := sha1.Sum([]byte(source))
	shebang, _, _ := strings.Cut(source, "\n")
	return &conn.Script{Source: source, SHA: hex.EncodeToString(sum[:]), Reads: strings.Contains(shebang, "no-writes"), Keys: keys}, nil
}

// included returns a file with those that it includes, which may include more, in place.
func included(file string) (string, error) {
	text, err := luaFiles.ReadFile("lua/" + file)
	if err != nil {
		return "", err
	}
	source := includeLine.ReplaceAllStringFunc(string(text), func(line string) string {
		part, partErr := included(includeLine.FindStringSubmatch(line)[1])
		if partErr != nil {
			err = partErr
		}
		return strings.TrimSuffix(part, "\n")
	})
	return source, err
}

// named gives a script the names that it uses, in place of the comment on its keys, and
// in front of everything where it has none.
func named(source string) string {
	used := upperNames(source)
	var names, values []string
	add := func(name, value string) {
		if slices.Contains(used, name) {
			names, values = append(names, name), append(values, value)
		}
	}
	for i, key := range keysOf(source) {
		add(strings.ToUpper(key), fmt.Sprintf("KEYS[%d]", i+1))
	}
	source = withValues(source)
	if len(names) == 0 {
		return source
	}
	local := "local " + strings.Join(names, ", ") + " = " + strings.Join(values, ", ")
	if keysLine.MatchString(source) {
		return keysLine.ReplaceAllLiteralString(source, local)
	}
	shebang, rest, _ := strings.Cut(source, "\n")
	return shebang + "\n" + local + "\n" + rest
}

// withValues puts the values of luaValues in the place of their names. They are no locals, as a function of Lua
// has 200 of these at most.
func withValues(source string) string {
	values := make(map[string]string)
	for _, v := range luaValues() {
		values[v.name] = fmt.Sprint(v.n)
	}
	return luaToken.ReplaceAllStringFunc(source, func(token string) string {
		if value, is := values[token]; is {
			return value
		}
		return token
	})
}

// keysOf returns the keys that a script says it takes.
func keysOf(source string) []string {
	line := keysLine.FindStringSubmatch(source)
	switch {
	case line == nil:
		return nil
	case strings.HasSuffix(line[1], "of a shard"):
		return shardNounsOf(source)
	}
	return strings.Split(line[1], ", ")
}

// upperNames are the names in capital letters that a script uses.
func upperNames(source string) []string {
	return upperName.FindAllString(luaComment.ReplaceAllString(source, ""), -1)
}

// shardKeysOf returns which of shardNouns a script takes; nil for one that takes other keys.
func shardKeysOf(source string) (which []int) {
	line := keysLine.FindStringSubmatch(source)
	if line == nil || !strings.HasSuffix(line[1], "of a shard") {
		return nil
	}
	all, used := line[1] == "all of a shard", upperNames(source)
	for i, noun := range shardNouns {
		if all || slices.Contains(used, strings.ToUpper(noun)) {
			which = append(which, i)
		}
	}
	return which
}

func shardNounsOf(source string) (nouns []string) {
	for _, i := range shardKeysOf(source) {
		nouns = append(nouns, shardNouns[i])
	}
	return nouns
}
