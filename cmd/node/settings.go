package node

import (
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/auth"
)

// A setting is a flag that may also be given in the environment or in the
// configuration file, under the same name: --grpc-addr, DDQ_GRPC_ADDR and
// grpc-addr. A flag wins over the environment, that over the file, and that over
// the default. What says what to do, such as --topic, is no setting: it must not
// come from a file that somebody forgot about.
const settingMark = "ddq_setting"

// MarkSettings makes all flags of fs settings.
func MarkSettings(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{settingMark: {}}
	})
}

// IsSetting reports whether a flag is a setting.
func IsSetting(f *pflag.Flag) bool {
	_, ok := f.Annotations[settingMark]
	return ok
}

// ShownSetting is the value of a setting of a server for people: without the secrets that
// it is or has, and with the names of files and variables where secrets are.
func ShownSetting(f *pflag.Flag) string {
	list, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return shownValue(f.Name, f.Value.String())
	}
	var values []string
	for _, value := range list.GetSlice() {
		values = append(values, shownValue(f.Name, value))
	}
	return strings.Join(values, ",")
}

func shownValue(setting, value string) string {
	switch {
	case value == "":
		return ""
	case setting == "store":
		return (&Config{Store: value}).StoreName()
	case setting == "gossip-key", setting == "root-token", setting == "encryption-key":
		if namesSecret(value) {
			return value
		}
		return auth.NewSecret(value).String()
	case strings.Contains(value, "@"): // a URL with a password, or something close to it
		u, err := url.Parse(value)
		if err != nil || u.Host == "" {
			return auth.NewSecret(value).String()
		}
		if shown, err := url.PathUnescape(u.Redacted()); err == nil { // {trace_id} stays as it is
			return shown
		}
		return u.Redacted()
	}
	return value
}
