package schedules

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

func (a audienceCommands) preview() *cobra.Command {
	var flags targetFlags
	var at instantAhead
	var local bool
	cmd := &cobra.Command{
		Use:     "preview NAME",
		Short:   "Show what a run would do: how many tasks are due when, who is left out and why",
		Example: "  ddq audience preview users --kind digest --spread 30m --grain 10s --at 2030-01-07T09:00:00Z",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.asked.Name = args[0]
			target, err := flags.target(cmd.Flags())
			if err != nil {
				return err
			}
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				p, err := s.PreviewAudience(ctx, *target, client.AudiencePreviewAt{Time: at.at, RecipientZone: local})
				if err != nil {
					return err
				}
				if a.Output == terminal.FormatJSON {
					return a.WriteJSON(p)
				}
				return a.printPreview(&p)
			})
		},
	}
	flags.spreadFlags(cmd.Flags())
	cmd.Flags().Var(&at, "at", "when the run begins: RFC 3339, or how far ahead (default now)")
	cmd.Flags().BoolVar(&local, "recipient-zone", false, "at the time of each recipient, and --at is when the first clock on earth (UTC+14) is there")
	return cmd
}

// printPreview shows a preview to people.
func (a audienceCommands) printPreview(p *client.AudiencePreview) error {
	about := ""
	if !p.Exact {
		about = "about "
	}
	zones := make([]string, 0, 5)
	for i, z := range p.Zones {
		if i == 5 {
			zones = append(zones, fmt.Sprintf("and %d more", len(p.Zones)-5))
			break
		}
		zones = append(zones, fmt.Sprintf("%s %d", z.Zone, z.Recipients))
	}
	err := a.Record(p,
		table.Row{"begins", terminal.Clock(p.Begin)}, table.Row{"recipients", p.Recipients},
		table.Row{"tasks", fmt.Sprintf("%s%d, %d of them after quiet hours", about, p.Tasks, p.Deferred)},
		table.Row{"skipped", skipsText(&p.Skipped)}, table.Row{"zones", cmp.Or(strings.Join(zones, ", "), "none")})
	if err != nil {
		return err
	}
	due := a.Listing("due from", "tasks", "")
	most := int64(1)
	for _, b := range p.Buckets {
		most = max(most, b.Tasks)
	}
	for _, b := range p.Buckets {
		if err := due.Add(b, terminal.Clock(b.At), b.Tasks, strings.Repeat("#", int(b.Tasks*40/most))); err != nil {
			return err
		}
	}
	if err := due.End(nil, "No task would be due."); err != nil || len(p.Examples) == 0 {
		return err
	}
	some := a.Listing("such as", "zone", "outcome", "due")
	for _, e := range p.Examples {
		if err := some.Add(e, e.Recipient, e.Zone, strings.ReplaceAll(e.Verdict.String(), "_", " "), terminal.Clock(e.Due)); err != nil {
			return err
		}
	}
	return some.End(nil, "")
}
