package schedules

import "github.com/ddq-io/ddq/actors/schedule"

// Definition asks for a schedule to be as it says.
type Definition struct {
	Topic, Name string
	schedule.Spec
	Paused bool   // one that is new
	Note   string // why
}
