package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// A setting is a flag that may also be given in the environment or in the
// configuration file, under the same name: --grpc-addr, DDQ_GRPC_ADDR and
// grpc-addr. A flag wins over the environment, that over the file, and that over
// the default. What says what to do, such as --topic, is no setting: it must not
// come from a file that somebody forgot about.
const (
	settingMark = "ddq_setting"
	envPrefix   = "DDQ_"
)

// markSettings makes all flags of fs settings.
func markSettings(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{settingMark: {}}
	})
}

func isSetting(f *pflag.Flag) bool {
	_, ok := f.Annotations[settingMark]
	return ok
}

// knownSettings returns the names of all settings of all commands: one file may
// serve several.
func knownSettings() []string {
	var c cli
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.commonFlags(fs)
	new(serverConfig).flags(fs)
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// resolve gives the settings among fs that the command line left alone their
// values from the environment and the file.
func (c *cli) resolve(fs *pflag.FlagSet) error {
	known := knownSettings()
	if f := fs.Lookup("config"); f == nil || !f.Changed {
		c.config = c.lookupEnv("config")
	}
	values := koanf.New("\x00") // names are flat
	origin := map[string]string{}
	if err := c.loadFile(values, known, origin); err != nil {
		return err
	}
	if err := c.loadEnv(values, known, origin); err != nil {
		return err
	}
	return apply(fs, values, origin)
}

func (c *cli) loadFile(into *koanf.Koanf, known []string, origin map[string]string) error {
	if c.config == "" {
		return nil
	}
	k := koanf.New("\x00")
	if err := k.Load(file.Provider(c.config), yaml.Parser()); err != nil {
		return usagef("configuration file %s: %v", c.config, oneLine(err))
	}
	for _, key := range k.Keys() {
		name, _, _ := strings.Cut(key, "\x00")
		if !slices.Contains(known, name) || name == "config" {
			return usagef("configuration file %s: no setting is called %q%s", c.config, name, nearest(name, known))
		}
		origin[name] = c.config + ": " + name
	}
	return into.Merge(k)
}

func (c *cli) loadEnv(into *koanf.Koanf, known []string, origin map[string]string) error {
	return into.Load(env.Provider("\x00", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return c.environ },
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

// apply parses values as the flags would, so that every source has one syntax.
func apply(fs *pflag.FlagSet, values *koanf.Koanf, origin map[string]string) error {
	var problem error
	fs.VisitAll(func(f *pflag.Flag) {
		v := values.Get(f.Name)
		if problem != nil || f.Changed || !isSetting(f) || v == nil {
			return
		}
		text, err := settingText(v)
		if err == nil {
			err = f.Value.Set(text)
		}
		if err != nil {
			problem = usagef("%s: %q is no good value: %v", origin[f.Name], text, err)
		}
	})
	return problem
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
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(envKey, envPrefix)), "_", "-")
}

// lookupEnv returns the value of a setting in the environment, or "".
func (c *cli) lookupEnv(name string) string {
	key := envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "="
	for _, e := range slices.Backward(c.environ) {
		if v, ok := strings.CutPrefix(e, key); ok {
			return v
		}
	}
	return ""
}

// nearest names the setting that was probably meant.
func nearest(name string, known []string) string {
	flat := func(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s)) }
	for _, k := range known {
		if flat(k) == flat(name) {
			return fmt.Sprintf("; did you mean %q?", k)
		}
	}
	return ""
}
