package redisstore

import (
	"fmt"
	"sync"

	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// scripts are all of them, by the role that runs them. Nobody changes them once they are
// assembled.
type scripts struct {
	sharedScripts
	writerScripts
	ownerScripts
	sweeperScripts
	readerScripts
	retentionScripts
	limitScripts
	logScripts
	indexScripts
	catalogScripts
	cellScripts
	registryScripts
	rewriterScripts
}

type (
	sharedScripts    struct{ stamp, raise, scan, nack, journals *conn.Script }
	writerScripts    struct{ add, addKeyed, ack, extend, checkpoint, cancel, remove, move, update, requeue, removeDead *conn.Script }
	ownerScripts     struct{ hold, holdNew, claim, release, renew, session, want *conn.Script }
	sweeperScripts   struct{ sweep, sweepIndex, sweepAttrs, sweepLanes, sweepOrder, sweepCells, sweepLists, records *conn.Script }
	readerScripts    struct{ get, history, window, laneWindow, lanes, stats, inOrder, histogram *conn.Script }
	retentionScripts struct{ trim, trimDead, trimKeys, trimLog, seal, drop, open *conn.Script }
	limitScripts     struct{ reserve, acquire, movePermits, free, take *conn.Script }
	logScripts       struct{ watch, changes, changesWaited *conn.Script }
	indexScripts     struct{ lookup, reindex *conn.Script }
	registryScripts  struct{ putRecord, deleteRecord, readRecords *conn.Script }
	rewriterScripts  struct{ rewrite *conn.Script }
	catalogScripts   struct{ putTopic, deleteTopic *conn.Script }
	cellScripts      struct{ commit, commitOn, cells, listed, wakes, parcelsOf, messages, queueHeads *conn.Script }
)

// loadScripts returns the scripts, which are the same for every store of the process: putting
// them together costs more than the rest of Open.
var loadScripts = sync.OnceValues(assembleScripts)

func assembleScripts() (*scripts, error) {
	l := new(scripts)
	for name, target := range map[string]**conn.Script{
		"stamp": &l.stamp, "raise": &l.raise, "scan": &l.scan, "nack": &l.nack, "journals": &l.journals,
		"add": &l.add, "add_keyed": &l.addKeyed, "ack": &l.ack, "extend": &l.extend, "checkpoint": &l.checkpoint, "cancel": &l.cancel,
		"remove": &l.remove, "move": &l.move, "update": &l.update, "requeue": &l.requeue, "remove_dead": &l.removeDead,
		"hold": &l.hold, "hold_new": &l.holdNew, "claim": &l.claim, "release": &l.release, "renew": &l.renew, "session": &l.session, "want": &l.want,
		"sweep": &l.sweep, "sweep_index": &l.sweepIndex, "sweep_attrs": &l.sweepAttrs, "sweep_lanes": &l.sweepLanes, "sweep_order": &l.sweepOrder,
		"sweep_cells": &l.sweepCells, "sweep_lists": &l.sweepLists, "records": &l.records,
		"get": &l.get, "history": &l.history, "window": &l.window, "lane_window": &l.laneWindow, "lanes": &l.lanes, "stats": &l.stats, "in_order": &l.inOrder, "histogram": &l.histogram,
		"trim": &l.trim, "trim_dead": &l.trimDead, "trim_keys": &l.trimKeys, "trim_log": &l.trimLog, "seal": &l.seal, "drop": &l.drop, "open": &l.open,
		"reserve": &l.reserve, "acquire": &l.acquire, "move_permits": &l.movePermits, "free": &l.free, "take": &l.take,
		"watch": &l.watch, "changes": &l.changes, "changes_waited": &l.changesWaited,
		"lookup": &l.lookup, "reindex": &l.reindex,
		"commit": &l.commit, "commit_on": &l.commitOn, "cells": &l.cells, "listed": &l.listed, "wakes": &l.wakes, "parcels_of": &l.parcelsOf, "messages": &l.messages, "queue_heads": &l.queueHeads,
		"put_topic": &l.putTopic, "delete_topic": &l.deleteTopic,
		"put_record": &l.putRecord, "delete_record": &l.deleteRecord, "read_records": &l.readRecords, "rewrite": &l.rewrite,
	} {
		s, err := loadScript(name)
		if err != nil {
			return nil, fmt.Errorf("load script: %w", err)
		}
		*target = s
	}
	return l, nil
}
