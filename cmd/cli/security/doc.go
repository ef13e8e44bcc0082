// Package security has the commands of ddq for tokens, certificates and the audit log.
package security
