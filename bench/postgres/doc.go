// Package postgres runs real PostgreSQL servers, each with its files in a directory of its own, on a
// port of loopback. It has no driver: who asks them in Go brings one, others run psql.
package postgres
