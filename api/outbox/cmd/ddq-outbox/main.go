// Command ddq-outbox installs the outbox of a PostgreSQL database, hands its tasks on to ddq,
// and shows how it is. `ddq outbox` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/outbox"
)

// As the commands of ddq end.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, streams{os.Stdout, os.Stderr, os.Environ()}, os.Args[1:])
	stop()
	os.Exit(code)
}

type streams struct {
	out, err io.Writer
	environ  []string
}

// program is what the commands share in one run.
type program struct {
	streams
	dsn    string
	output string
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run carries out one command line and returns its exit code.
func run(ctx context.Context, s streams, args []string) int {
	p := &program{streams: s}
	begun := false
	root := p.command(&begun)
	root.SetArgs(append([]string{}, args...)) // not nil, which stands for those of the process
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if begun && !errors.As(err, new(usageError)) {
		fmt.Fprintf(s.err, "%s: %v\n", cmd.CommandPath(), err)
		return exitFailed
	}
	fmt.Fprintf(s.err, "%s: %v\nTry '%s --help'.\n", cmd.CommandPath(), err, cmd.CommandPath())
	return exitUsage
}

func (p *program) command(begun *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "ddq-outbox",
		Short: "Tasks that are enqueued in transactions of a PostgreSQL database",
		Long: `Tasks that are enqueued in transactions of a PostgreSQL database: the tables, the
relay that hands them on to ddq, and how they are. Flags may be given in the
environment, too: --token-file as DDQ_TOKEN_FILE.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return usagef("a command is required") },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			*begun = true
			if p.output != "table" && p.output != "json" {
				return usagef("--output is table or json, not %q", p.output)
			}
			return nil
		},
	}
	root.SetOut(p.out)
	root.SetErr(p.err)
	flags := root.PersistentFlags()
	flags.StringVar(&p.dsn, "dsn", "", "the database, such as postgres://user@host/base, or what the variables of libpq do not say (PGHOST, PGPASSWORD, PGPASSFILE)")
	flags.StringVarP(&p.output, "output", "o", "table", "form of results on stdout: table, or json with one object a line")
	root.AddCommand(p.installCommand(), p.relayCommand(), p.statusCommand(), p.badCommand(), p.retryCommand())
	return root
}

// fromEnvironment sets the flags that are not given from variables such as DDQ_TOKEN_FILE.
func (p *program) fromEnvironment(flags *pflag.FlagSet) error {
	var wrong error
	flags.VisitAll(func(f *pflag.Flag) {
		value := p.lookup("DDQ_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")))
		if value == "" || f.Changed || wrong != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			wrong = usagef("in the environment: %v", err)
		}
	})
	return wrong
}

func (p *program) lookup(variable string) string {
	for _, e := range p.environ {
		if value, ok := strings.CutPrefix(e, variable+"="); ok {
			return value
		}
	}
	return ""
}

// open calls do with the outbox of --dsn.
func (p *program) open(ctx context.Context, do func(outbox.Database) error) error {
	cfg, err := pgxpool.ParseConfig(p.dsn)
	if err != nil {
		return usagef("--dsn: %v", err)
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = "ddq-outbox"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(outbox.Postgres(pool))
}

func (p *program) installCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Make the tables, in the schema ddq_outbox, or bring them up to date",
		Long: `Make the tables, in the schema ddq_outbox, or bring those of an older version up to
date. It may be run again, and by several processes at a time.`,
		Example: "  ddq-outbox install --dsn postgres://user@host/base\n  ddq-outbox install --print | psql",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if show {
				schema, err := outbox.Schema("postgres")
				if err == nil {
					_, err = io.WriteString(p.out, schema)
				}
				return err
			}
			return p.open(cmd.Context(), func(db outbox.Database) error {
				if err := outbox.Install(cmd.Context(), db); err != nil {
					return err
				}
				return p.status(cmd.Context(), db)
			})
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the SQL that makes the tables from nothing, and do nothing")
	return cmd
}
