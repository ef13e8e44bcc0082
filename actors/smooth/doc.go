// Package smooth spreads tasks over the times that they leave open: those of calls, and those
// of schedules. It is plain arithmetic under a lock, and never asks anybody.
package smooth
