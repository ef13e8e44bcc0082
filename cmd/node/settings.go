package node

import "github.com/spf13/pflag"

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
