// Package datadir is a directory of this machine with a Pebble database in it: how it
// is opened, read, written and synced, and how it fails. It knows keys and values, and
// nothing of tasks.
//
// # What goes wrong
//
// The first write or sync that fails freezes the directory: nothing is written to it
// after that, every call is answered with store.ErrUnavailable or store.ErrUnknown, and
// the next process recovers it as it would after a crash. Only a table that finds no
// room is written again later, because the log still has all of it; until then
// there is no Room, and once changes fill the memory as well, it is Brimming. A file for
// which the process has no descriptor is opened again for half a minute before that.
//
// A directory whose manifest is damaged is not opened: Pebble would delete the tables
// that it has not heard of. Nor is one with a log that cannot be read as far as it was synced, which the file
// SYNCED says: Pebble would take the damage for the end of the log.
package datadir
