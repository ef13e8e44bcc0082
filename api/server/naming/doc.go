// Package naming adds the namespace of a caller to the names of topics and audiences in its requests, and
// takes it off those in answers. What is behind it knows full names only, and what is before it those that
// callers use. Nodes among themselves use full names, and are left alone.
package naming
