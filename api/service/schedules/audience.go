package schedules

import (
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
)

// maxSpreadFrom is from how many recipients on they are spread at most.
const maxSpreadFrom = 1_000_000

// checkAudience checks the bounds of what a schedule says of its audience.
func (n *Definition) checkAudience() *problem.Error {
	a := n.Audience
	if a == nil {
		return nil
	}
	switch {
	case a.Window > audience.MaxWindow:
		return outOfRange("audience.window_ms", 0, audience.MaxWindow.Milliseconds())
	case a.Grain > a.Window:
		return outOfRange("audience.grain_ms", 0, a.Window.Milliseconds())
	case a.SpreadFrom < 0 || a.SpreadFrom > maxSpreadFrom:
		return outOfRange("audience.spread_from", 0, maxSpreadFrom)
	case n.Template.Slack > 0:
		return problem.BadField("task.slack", "BAD_POLICY", "task.slack is not for audiences: audience.window_ms spreads their tasks")
	}
	return nil
}
