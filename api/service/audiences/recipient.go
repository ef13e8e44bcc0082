package audiences

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Recipient is one of an audience, as callers say it.
type Recipient struct {
	ID       string
	Zone     string // in the IANA database; empty: the audience's fallback
	Disabled bool
	Quiet    QuietHours
	On, Off  []string // kinds
	Data     []byte
}

// QuietHours are local times of day such as 22:00; empty, or the same, for none.
type QuietHours struct{ From, To string }

// stored is the recipient as it is kept in an audience.
func (s *Audiences) stored(a *audience.Audience, r *Recipient) (*audience.Recipient, *problem.Error) {
	out := &audience.Recipient{ID: r.ID, Zone: r.Zone, Data: r.Data}
	if out.Zone == "" {
		out.Zone = a.FallbackZone
	}
	var err *problem.Error
	out.Disabled = r.Disabled
	if out.Quiet, err = minutes(r.Quiet); err != nil {
		return nil, err
	}
	if out.On, err = kinds(a, "on", r.On); err != nil {
		return nil, err
	}
	if out.Off, err = kinds(a, "off", r.Off); err != nil {
		return nil, err
	}
	var bad *audience.BadRecipient
	if errors.As(out.Check(), &bad) {
		return nil, badRecipient(bad.Field, bad.Reason)
	}
	if timetable.CheckZone(out.Zone) != nil {
		return nil, badRecipient("zone", zoneHint(out.Zone))
	}
	return out, nil
}

func zoneHint(name string) string {
	text := fmt.Sprintf("%q is none of the IANA database", name)
	if near := timetable.NearestZones(name); len(near) > 0 {
		text += "; perhaps " + strings.Join(near, ", ")
	}
	return text
}

// kinds are the bits of kinds by name.
func kinds(a *audience.Audience, field string, names []string) (bits uint64, err *problem.Error) {
	for _, name := range names {
		k, there := a.Kind(name)
		if !there {
			return 0, noKind(field, name)
		}
		bits |= 1 << k.Number
	}
	return bits, nil
}

func minutes(q QuietHours) (out audience.Quiet, err *problem.Error) {
	if q == (QuietHours{}) {
		return out, nil
	}
	var fromOK, toOK bool
	out.From, fromOK = minuteOf(q.From)
	if out.To, toOK = minuteOf(q.To); !fromOK || !toOK {
		return out, badRecipient("quiet", fmt.Sprintf("hours are two times of day such as 22:00 and 07:00, not %q and %q", q.From, q.To))
	}
	return out, nil
}

// minuteOf reads a time of day such as 07:30.
func minuteOf(s string) (uint16, bool) {
	if len(s) != len("07:30") || s[2] != ':' {
		return 0, false
	}
	h, errH := strconv.ParseUint(s[:2], 10, 8)
	m, errM := strconv.ParseUint(s[3:], 10, 8)
	return uint16(h*60 + m), errH == nil && errM == nil && h < 24 && m < 60
}

// shown is a stored recipient as callers say it.
func shown(a *audience.Audience, r *audience.Recipient) Recipient {
	out := Recipient{ID: r.ID, Zone: r.Zone, Disabled: r.Disabled, Data: r.Data}
	if q := r.Quiet; q.From != q.To {
		out.Quiet = QuietHours{timeOfDay(q.From), timeOfDay(q.To)}
	}
	for i, k := range a.Kinds {
		if r.On&(1<<i) != 0 {
			out.On = append(out.On, k.Name)
		}
		if r.Off&(1<<i) != 0 {
			out.Off = append(out.Off, k.Name)
		}
	}
	return out
}

func timeOfDay(minute uint16) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }
