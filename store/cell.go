package store

// CellID names a cell in its shard: a byte that says its kind, and a key of 1 to 255 bytes.
type CellID string

// The kinds of cells.
const (
	CellSchedule = 's'
	CellWorkflow = 'w'
	CellWalk     = 'f'
	CellTally    = 't'
	CellCalendar = 'c'
	CellTask     = 'e' // no cell: a parcel with a task has its id for an address
	CellRefused  = 'u' // a task that could not be delivered
	CellHome     = 'h' // no cell: the task of a step tells a workflow of another topic
	CellAsk      = 'k' // no cell: a parcel asks the task of that id to end
	CellBegin    = 'b' // no cell: a parcel begins the workflow of that id, which is a child
	CellOrder    = 'o' // no cell: a parcel asks something of that child
	CellClaim    = 'n' // a schedule that is being put, and names what may be deleted meanwhile
)

// MaxCellKey is how long the key of a cell may be.
const MaxCellKey = 255

// MaxCell is how many bytes a cell may have.
const MaxCell = 1 << 20

// Kind says whose a cell is. Cells of upper-case kinds are parts of others, and never wake.
func (id CellID) Kind() byte { return id[0] }

// Key tells the cells of a kind apart.
func (id CellID) Key() string { return string(id[1:]) }

// Cell is a named value of a shard with a version and a time to wake.
type Cell struct {
	ID      CellID
	Version int64  // one more with each put, from Put.First on. 0: there is none
	Wake    Millis // owners find it by that; 0: never
	List    string // a list that shows it, in order of Listed; empty: none
	Listed  Millis
	Body    []byte
}

// Wake is a position among the cells of a shard that wake, or of a list.
type Wake struct {
	At Millis
	ID CellID
}

// WakeQuery says which wakes to return.
type WakeQuery struct {
	After Wake // the zero Wake starts at the earliest
	To    Millis
	Limit int // > 0
}
