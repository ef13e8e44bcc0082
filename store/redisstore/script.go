package redisstore

import (
	"fmt"
	"sync"

	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// scripts are all of them. Nobody changes them once they are assembled.
type scripts struct {
	add, hold, holdNew, ack, nack, extend, cancel,
	remove, move, update, requeue, removeDead, trim, trimDead, addKeyed, trimKeys,
	claim, release, renew, session,
	stamp, raise, get, history, window, scan, records, lookup, reindex, sweepIndex, sweepAttrs, laneWindow, lanes, stats, sweep, sweepLanes, sweepOrder, inOrder, putTopic, deleteTopic,
	histogram, reserve, acquire, movePermits, free,
	watch, changes, changesWaited, trimLog,
	seal, drop, open *conn.Script
}

// loadScripts returns the scripts, which are the same for every store of the process: putting
// them together costs more than the rest of Open.
var loadScripts = sync.OnceValues(assembleScripts)

func assembleScripts() (*scripts, error) {
	l := new(scripts)
	for name, target := range map[string]**conn.Script{
		"remove": &l.remove, "move": &l.move, "update": &l.update, "requeue": &l.requeue, "remove_dead": &l.removeDead, "trim": &l.trim,
		"trim_dead": &l.trimDead, "add_keyed": &l.addKeyed, "trim_keys": &l.trimKeys,
		"add": &l.add, "hold": &l.hold, "hold_new": &l.holdNew, "ack": &l.ack, "nack": &l.nack, "extend": &l.extend, "cancel": &l.cancel,
		"claim": &l.claim, "release": &l.release, "renew": &l.renew, "session": &l.session,
		"stamp": &l.stamp, "raise": &l.raise, "get": &l.get, "history": &l.history, "window": &l.window, "scan": &l.scan, "records": &l.records, "lane_window": &l.laneWindow, "lookup": &l.lookup, "reindex": &l.reindex, "sweep_index": &l.sweepIndex, "sweep_attrs": &l.sweepAttrs, "lanes": &l.lanes, "stats": &l.stats, "sweep": &l.sweep, "sweep_lanes": &l.sweepLanes, "sweep_order": &l.sweepOrder, "in_order": &l.inOrder, "put_topic": &l.putTopic, "delete_topic": &l.deleteTopic, "histogram": &l.histogram,
		"reserve": &l.reserve, "acquire": &l.acquire, "move_permits": &l.movePermits, "free": &l.free,
		"watch": &l.watch, "changes": &l.changes, "changes_waited": &l.changesWaited, "trim_log": &l.trimLog,
		"seal": &l.seal, "drop": &l.drop, "open": &l.open,
	} {
		s, err := loadScript(name)
		if err != nil {
			return nil, fmt.Errorf("load script: %w", err)
		}
		*target = s
	}
	return l, nil
}
