package schedules

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// audienceCommands are those of ddq audience.
type audienceCommands struct{ *session.Session }

// AudienceCommand is ddq audience.
func AudienceCommand(parent *session.Session) *cobra.Command {
	a := audienceCommands{parent}
	return session.Group("audience", "Keep recipients, each of whom gets a task of a schedule",
		a.create(), a.importFile(), a.put(), a.get(), a.remove(), a.recipients(), a.describe(), a.list(), a.preview(), a.runs(), a.cancelRun(), a.delete())
}

// audienceView is an audience in JSON.
type audienceView struct {
	Name         string     `json:"name"`
	Shards       int        `json:"shards"`
	FallbackZone string     `json:"fallback_zone"`
	Kinds        []kindView `json:"kinds"`
	CreateTime   string     `json:"create_time"`
}

type kindView struct {
	Name string `json:"name"`
	Off  bool   `json:"off"`
}

func viewAudience(a *client.Audience) audienceView {
	v := audienceView{Name: a.Name, Shards: a.Shards, FallbackZone: a.FallbackZone, CreateTime: terminal.Clock(a.CreatedAt), Kinds: []kindView{}}
	for _, k := range a.Kinds {
		v.Kinds = append(v.Kinds, kindView(k))
	}
	return v
}

// kindsText is the kinds on one line; those that are off by default have a sign.
func (v *audienceView) kindsText() string {
	names := make([]string, len(v.Kinds))
	for i, k := range v.Kinds {
		if names[i] = k.Name; k.Off {
			names[i] += " (off)"
		}
	}
	return strings.Join(names, ", ")
}

func (a audienceCommands) create() *cobra.Command {
	var asked client.Audience
	var kinds, offKinds []string
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create an audience; the same again changes nothing",
		Example: "  ddq audience create users --kind digest --kind-off newsletter --fallback-zone Europe/Berlin",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked.Name = args[0]
			for _, name := range kinds {
				asked.Kinds = append(asked.Kinds, client.AudienceKind{Name: name})
			}
			for _, name := range offKinds {
				asked.Kinds = append(asked.Kinds, client.AudienceKind{Name: name, Off: true})
			}
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				made, err := s.CreateAudience(ctx, asked)
				if err != nil {
					return err
				}
				return a.Say(viewAudience(&made), "audience %s: %d shards, recipients without a zone are in %s", made.Name, made.Shards, made.FallbackZone)
			})
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&asked.Shards, "shards", 0, "a power of two up to 1024, which does not change (default 64)")
	fs.StringVar(&asked.FallbackZone, "fallback-zone", "", "time zone of recipients that have none (default UTC)")
	fs.StringArrayVar(&kinds, "kind", nil, "what tasks can be about: recipients get it unless they do not want it; may be repeated")
	fs.StringArrayVar(&offKinds, "kind-off", nil, "the same, and only recipients get it who want it; may be repeated")
	return cmd
}

func (a audienceCommands) put() *cobra.Command {
	var r client.Recipient
	var quiet, data string
	cmd := &cobra.Command{
		Use:     "put NAME ID",
		Short:   "Make a recipient what it is to be",
		Example: "  ddq audience put users ada --zone Europe/London --quiet 22:00-07:00 --off digest",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.ID, r.Data = args[1], []byte(data)
			var ok bool
			if r.QuietFrom, r.QuietTo, ok = strings.Cut(quiet, "-"); quiet != "" && !ok {
				return session.Usagef("--quiet is two local times such as 22:00-07:00, not %q", quiet)
			}
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				results, err := s.PutRecipients(ctx, args[0], 0, []client.Recipient{r})
				return a.sayOne(args, results, err)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&r.Zone, "zone", "", "time zone, such as Europe/Berlin (default the audience's)")
	fs.StringVar(&quiet, "quiet", "", "local hours in which it wants no task, such as 22:00-07:00")
	fs.BoolVar(&r.Disabled, "disabled", false, "it gets no task")
	fs.StringArrayVar(&r.On, "on", nil, "kind that it wants; may be repeated")
	fs.StringArrayVar(&r.Off, "off", nil, "kind that it does not want; may be repeated")
	fs.StringVar(&data, "data", "", "what its tasks have for the worker: at most 256 bytes")
	return cmd
}

// recipientView is what became of a recipient.
type recipientView struct {
	Audience string `json:"audience"`
	ID       string `json:"id"`
	Outcome  string `json:"outcome"`
}

func (a audienceCommands) sayOne(args []string, results []client.RecipientResult, err error) error {
	if err != nil {
		return err
	}
	if results[0].Err != nil {
		return results[0].Err
	}
	v := recipientView{args[0], args[1], results[0].Outcome.String()}
	return a.Say(v, "recipient %s of %s: %s", v.ID, v.Audience, v.Outcome)
}

func (a audienceCommands) get() *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME ID",
		Short: "Show a recipient",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				r, err := s.GetRecipient(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return a.Record(r,
					table.Row{"id", r.ID}, table.Row{"zone", r.Zone}, table.Row{"disabled", r.Disabled}, table.Row{"quiet", quietText(&r)},
					table.Row{"on", strings.Join(r.On, ", ")}, table.Row{"off", strings.Join(r.Off, ", ")}, table.Row{"data", string(r.Data)})
			})
		},
	}
}

func quietText(r *client.Recipient) string {
	if r.QuietFrom == "" {
		return ""
	}
	return r.QuietFrom + "-" + r.QuietTo
}

func (a audienceCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME ID",
		Short: "Remove a recipient",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				results, err := s.DeleteRecipients(ctx, args[0], args[1:])
				if err == nil && results[0].Err == nil && results[0].Outcome == client.RecipientSame {
					return a.Say(recipientView{args[0], args[1], "same"}, "there is no recipient %s of %s", args[1], args[0])
				}
				return a.sayOne(args, results, err)
			})
		},
	}
}

func (a audienceCommands) recipients() *cobra.Command {
	var zone string
	var limit int
	cmd := &cobra.Command{
		Use:     "recipients NAME",
		Short:   "List the recipients of an audience; with -o json an import takes what it prints",
		Example: "  ddq audience recipients users -o json > users.ndjson",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := a.Listing("id", "zone", "disabled", "quiet", "on", "off")
			err := a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.ListRecipients(ctx, args[0], zone), limit, func(r client.Recipient) error {
					return out.Add(r, r.ID, r.Zone, r.Disabled, quietText(&r), strings.Join(r.On, ", "), strings.Join(r.Off, ", "))
				})
			})
			return out.End(err, "No recipients.")
		},
	}
	cmd.Flags().StringVar(&zone, "zone", "", "only those of this time zone")
	cmd.Flags().IntVar(&limit, "limit", 0, "most recipients to list (default all)")
	return cmd
}

// audienceStatusView is an audience and what is in it, in JSON.
type audienceStatusView struct {
	audienceView
	Recipients int64            `json:"recipients"`
	Zones      map[string]int64 `json:"zones"`
	Runs       []string         `json:"runs"`
	Replacing  bool             `json:"replacing"`
}

func (a audienceCommands) describe() *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show an audience, and count its recipients by time zone",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				status, err := s.DescribeAudience(ctx, args[0])
				if err != nil {
					return err
				}
				v := audienceStatusView{viewAudience(&status.Audience), status.Recipients, make(map[string]int64), append([]string{}, status.Runs...), status.Replacing}
				rows := []table.Row{
					{"name", v.Name}, {"created", v.CreateTime}, {"shards", v.Shards}, {"fallback zone", v.FallbackZone},
					{"kinds", v.kindsText()}, {"recipients", v.Recipients}, {"open runs", len(v.Runs)},
				}
				if v.Replacing {
					rows = append(rows, table.Row{"replacing", "recipients are being replaced"})
				}
				for _, z := range status.Zones {
					v.Zones[z.Zone] = z.Recipients
					rows = append(rows, table.Row{"in " + z.Zone, z.Recipients})
				}
				return a.Record(v, rows...)
			})
		},
	}
}

func (a audienceCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List audiences",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := a.Listing("name", "kinds", "fallback zone", "created")
			err := a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.ListAudiences(ctx), 0, func(found client.Audience) error {
					v := viewAudience(&found)
					return out.Add(v, v.Name, v.kindsText(), v.FallbackZone, v.CreateTime)
				})
			})
			return out.End(err, "No audiences.")
		},
	}
}

func (a audienceCommands) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete an audience and its recipients",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Confirm(yes, "delete audience "+args[0]+" with all its recipients"); err != nil {
				return err
			}
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if err := s.DeleteAudience(ctx, args[0]); err != nil {
					return err
				}
				return a.Say(map[string]string{"name": args[0]}, "audience %s deleted", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// perSecond is a rate for people.
func perSecond(n int64, took time.Duration) string {
	return strconv.FormatInt(int64(float64(n)/max(took.Seconds(), 0.001)), 10) + "/s"
}
