package pebblestore

import "github.com/ddq-io/ddq/store/pebblestore/datadir"

// Config says where the store lies and what memory it may use. Only Dir is required.
type Config = datadir.Config
