package cli

import (
	"cmp"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/cmd/node"
)

// settingView is a setting as JSON output has it.
type settingView struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`             // as a flag has it
	Default string `json:"default,omitempty"` // what it is when it has no value
	From    string `json:"from"`
}

// printConfig prints the settings of a server: what each is, and whether a flag, a variable or a
// file says so. It refuses what the server would.
func (c *cli) printConfig(cfg *node.Config, cmd *cobra.Command) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	out := c.Listing("setting", "value", "from")
	var err error
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if err == nil && node.IsSetting(f) {
			s := c.viewOf(f)
			err = out.Add(s, s.Setting, cmp.Or(s.Default, s.Value), s.From)
		}
	})
	return out.End(err, "")
}

// defaultInHelp is how the help of a setting says what having no value means.
var defaultInHelp = regexp.MustCompile(`\(default (.+)\)$`)

func (c *cli) viewOf(f *pflag.Flag) settingView {
	s := settingView{Setting: f.Name, Value: node.ShownSetting(f), From: "default"}
	switch said, ok := c.origin[f.Name]; {
	case f.Changed:
		s.From = "--" + f.Name
	case ok:
		s.From = said
	default:
		if text := defaultInHelp.FindStringSubmatch(f.Usage); text != nil && (s.Value == "" || s.Value == "0") {
			s.Default = text[1]
		}
	}
	return s
}
