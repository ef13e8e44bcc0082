// Package zones has the time zones of the IANA database by name, each as it was when it was first asked
// for: to load one takes a read of a file and an allocation for each of its changes, which is more than all
// else that becomes of an occurrence. A digest of their rules tells whether two nodes have the same.
package zones
