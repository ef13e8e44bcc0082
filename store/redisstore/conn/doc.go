// Package conn carries commands and scripts to the Redis servers of a store, and says
// what became of them. It knows servers and keys, and nothing of tasks or of what a
// script means.
//
// It may be one server, a primary that sentinels watch, or a cluster: see Config.URL.
// Nothing is sent twice, except what certainly did not run. An error that says that
// nothing was done is true; where that cannot be known it is store.ErrUnknown. With
// Config.WaitReplicas a change is answered once so many replicas have it.
package conn
