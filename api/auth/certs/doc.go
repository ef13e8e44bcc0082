// Package certs follows the files of a certificate, so that one that is renewed counts for
// the next connection and nothing has to be restarted, and makes certificates for those who
// have no authority of their own.
package certs
