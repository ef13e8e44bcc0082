package session

import (
	"slices"
	"strings"
)

const (
	EnvPrefix     = "DDQ_"
	TokenVariable = "token" // of the environment alone: it is no setting, and in no file
)

// VariableOf turns grpc-addr into DDQ_GRPC_ADDR.
func VariableOf(setting string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// LookupEnv returns the value of a setting in the environment, or "".
func (c *Session) LookupEnv(name string) string {
	return c.lookup(VariableOf(name))
}

// User is who calls, as the environment says; empty where it does not.
func (c *Session) User() string { return c.lookup("USER") }

func (c *Session) lookup(variable string) string {
	for _, e := range slices.Backward(c.Environ) {
		if v, ok := strings.CutPrefix(e, variable+"="); ok {
			return v
		}
	}
	return ""
}
