package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/outbox"
)

// statusView is what is printed of an outbox.
type statusView struct {
	Version  int    `json:"version"`
	Rows     int64  `json:"rows"`
	OldestMS int64  `json:"oldest_ms"`
	Bad      int64  `json:"bad"`
	Reader   string `json:"reader"`
}

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show how many tasks wait to be handed on, since when, how many were refused, and who reads",
		Example: "  ddq-outbox status -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.open(cmd.Context(), func(db outbox.Database) error { return p.status(cmd.Context(), db) })
		},
	}
}

func (p *program) status(ctx context.Context, db outbox.Database) error {
	s, err := outbox.Inspect(ctx, db)
	if err != nil {
		return err
	}
	if p.output == "json" {
		return json.NewEncoder(p.out).Encode(statusView{s.Version, s.Rows, s.Oldest.Milliseconds(), s.Bad, s.Reader})
	}
	if s.Version == 0 {
		_, err := fmt.Fprintln(p.out, "not installed")
		return err
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "tables\tversion %d\n", s.Version)
	fmt.Fprintf(w, "to be handed on\t%d, the first for %v\n", s.Rows, s.Oldest.Round(time.Millisecond))
	fmt.Fprintf(w, "refused\t%d\n", s.Bad)
	reader := s.Reader
	if reader == "" {
		reader = "nobody"
	}
	fmt.Fprintf(w, "read by\t%s\n", reader)
	return w.Flush()
}

// badView is what is printed of a task that was refused.
type badView struct {
	Seq     int64     `json:"seq"`
	ID      string    `json:"id"`
	Topic   string    `json:"topic"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Written time.Time `json:"written"`
	Refused time.Time `json:"refused"`
}

func (p *program) badCommand() *cobra.Command {
	limit := 100
	cmd := &cobra.Command{
		Use:     "bad",
		Short:   "List tasks that ddq refused for good, and why",
		Example: "  ddq-outbox bad --limit 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.open(cmd.Context(), func(db outbox.Database) error {
				bad, err := outbox.Bad(cmd.Context(), db, limit)
				if err != nil {
					return err
				}
				return p.list(bad)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}

func (p *program) list(bad []outbox.BadRow) error {
	if p.output == "json" {
		lines := json.NewEncoder(p.out)
		for _, b := range bad {
			if err := lines.Encode(badView(b)); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SEQ\tTOPIC\tID\tREFUSED\tWHY")
	for _, b := range bad {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s (%s)\n", b.Seq, b.Topic, b.ID, b.Refused.UTC().Format(time.RFC3339), b.Message, b.Reason)
	}
	return w.Flush()
}

func (p *program) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "retry SEQ...",
		Short:   "Put tasks that were refused back into the outbox, behind all others",
		Example: "  ddq-outbox retry 17 18",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seqs := make([]int64, len(args))
			for i, arg := range args {
				var err error
				if seqs[i], err = strconv.ParseInt(arg, 10, 64); err != nil {
					return usagef("%q is not the number of a task: ddq-outbox bad shows them", arg)
				}
			}
			return p.open(cmd.Context(), func(db outbox.Database) error {
				n, err := outbox.Retry(cmd.Context(), db, seqs...)
				if err != nil {
					return err
				}
				if p.output == "json" {
					return json.NewEncoder(p.out).Encode(map[string]int{"retried": n})
				}
				_, err = fmt.Fprintf(p.out, "%d of %d put back\n", n, len(seqs))
				return err
			})
		},
	}
}
