package store

import "strings"

// DefaultNamespace is the namespace whose topics have no prefix: that of all data from before there
// were others.
const DefaultNamespace = "default"

// MaxNamespaceBytes is how long the name of a namespace may be.
const MaxNamespaceBytes = 63

// IsNamespace reports whether a namespace can have a name: [a-z0-9][a-z0-9-]{0,62}.
func IsNamespace(name string) bool {
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return name != "" && len(name) <= MaxNamespaceBytes && name[0] != '-' && strings.Trim(name, chars) == ""
}

// FullName is the name under which a topic or an audience of a namespace is stored: "acme/mail". A
// namespace has no slash in its name and a topic has none in its own, so no two of them share one.
func FullName(namespace, name string) string {
	if namespace == DefaultNamespace {
		return name
	}
	return namespace + "/" + name
}

// SplitName returns the namespace and the name that a full name is of.
func SplitName(full string) (namespace, name string) {
	if namespace, name, prefixed := strings.Cut(full, "/"); prefixed {
		return namespace, name
	}
	return DefaultNamespace, full
}

// flatSlash stands for the slash of a full name in keys whose parts are separated by slashes. No name has one.
const flatSlash = ":"

// FlatName is a full name without a slash, for keys that have one behind the name.
func FlatName(full string) string { return strings.Replace(full, "/", flatSlash, 1) }

// UnflatName is the full name that FlatName made flat.
func UnflatName(flat string) string { return strings.Replace(flat, flatSlash, "/", 1) }
