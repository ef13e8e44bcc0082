// Package session is what the commands of ddq share in one run: common flags, the way to
// a server, questions before something is destroyed, and what wrong usage is.
package session
