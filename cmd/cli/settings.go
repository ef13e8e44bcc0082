package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

const attributePrefix = session.EnvPrefix + "ATTR_" // what a command of `ddq work` gets

// knownSettings returns the names of all settings of all commands: one file may
// serve several.
func knownSettings() []string {
	c := newCLI(Streams{})
	fs, server := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.commonFlags(fs)
	new(node.Config).Flags(server)
	fs.AddFlagSet(server) // some have one name: a certificate is that of whoever runs
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// resolve gives the settings among fs that the command line left alone their
// values from the environment and the file.
func (c *cli) resolve(fs *pflag.FlagSet) error {
	known := knownSettings()
	if f := fs.Lookup("config"); f == nil || !f.Changed {
		c.config = c.LookupEnv("config")
	}
	values := koanf.New("\x00") // names are flat
	origin := map[string]string{}
	if err := c.loadFile(values, known, origin); err != nil {
		return err
	}
	if err := c.loadEnv(values, known, origin); err != nil {
		return err
	}
	c.origin = origin
	return apply(fs, values, origin)
}

func (c *cli) loadFile(into *koanf.Koanf, known []string, origin map[string]string) error {
	if c.config == "" {
		return nil
	}
	k := koanf.New("\x00")
	if err := k.Load(file.Provider(c.config), yaml.Parser()); err != nil {
		return session.Usagef("configuration file %s: %v", c.config, oneLine(err))
	}
	for _, key := range k.Keys() {
		name, _, _ := strings.Cut(key, "\x00")
		if !slices.Contains(known, name) || name == "config" {
			return session.Usagef("configuration file %s: no setting is called %q%s", c.config, name, nearest(name, known))
		}
		origin[name] = c.config + ": " + name
	}
	return into.Merge(k)
}

func (c *cli) loadEnv(into *koanf.Koanf, known []string, origin map[string]string) error {
	if err := checkEnv(c.Environ, known); err != nil {
		return err
	}
	return into.Load(env.Provider("\x00", env.Opt{
		Prefix:      session.EnvPrefix,
		EnvironFunc: func() []string { return c.Environ },
		TransformFunc: func(key, value string) (string, any) {
			name := settingName(key)
			if value == "" || !slices.Contains(known, name) {
				return "", nil // a shell may well carry DDQ_ variables of its own
			}
			origin[name] = key
			return name, value
		},
	}), nil)
}

// checkEnv refuses a variable whose name is a setting with a typo. Others that no
// setting is called after are let through: `ddq work --exec` sets some.
func checkEnv(environ, known []string) error {
	for _, key := range unknownVariables(environ, known) {
		if k := terminal.Meant(settingName(key), known); k != "" {
			return session.Usagef("environment variable %s is no setting of ddq; did you mean %s?", key, session.VariableOf(k))
		}
	}
	return nil
}

// unknownVariables are the DDQ_ variables with a value that no setting is called
// after, but for attributes of tasks, which may have any name.
func unknownVariables(environ, known []string) []string {
	var unknown []string
	for _, e := range environ {
		key, value, _ := strings.Cut(e, "=")
		ours := strings.HasPrefix(key, session.EnvPrefix) && !strings.HasPrefix(key, attributePrefix)
		if ours && value != "" && settingName(key) != session.TokenVariable && !slices.Contains(known, settingName(key)) {
			unknown = append(unknown, key)
		}
	}
	return unknown
}

// apply parses values as the flags would, so that every source has one syntax.
func apply(fs *pflag.FlagSet, values *koanf.Koanf, origin map[string]string) error {
	var problem error
	fs.VisitAll(func(f *pflag.Flag) {
		v := values.Get(f.Name)
		if problem != nil || f.Changed || !node.IsSetting(f) || v == nil {
			return
		}
		text, err := settingText(v)
		if err == nil {
			err = f.Value.Set(text)
		}
		if err != nil {
			problem = badValue(origin[f.Name], f, text, err)
		}
	})
	return problem
}

// badValue says that a setting cannot have a value. It shows what has no room for a secret only.
func badValue(origin string, f *pflag.Flag, text string, err error) error {
	switch f.Value.Type() {
	case "bool", "int", "float64", "duration":
		return session.Usagef("%s: %q is no good value: %v", origin, text, err)
	}
	return session.Usagef("%s: no good value: %v", origin, err)
}

// settingText writes a value of a YAML file as a flag would take it.
func settingText(v any) (string, error) {
	switch v := v.(type) {
	case map[string]any:
		return fmt.Sprint(v), fmt.Errorf("want one value, not a map")
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = fmt.Sprint(item)
		}
		return strings.Join(items, ","), nil
	}
	return fmt.Sprint(v), nil
}

// settingName turns DDQ_GRPC_ADDR into grpc-addr.
func settingName(envKey string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(envKey, session.EnvPrefix)), "_", "-")
}

// nearest suggests the setting that was probably meant.
func nearest(name string, known []string) string {
	if k := terminal.Meant(name, known); k != "" {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return ""
}
