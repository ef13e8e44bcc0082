// Package delivery serves Subscribe streams: deliveries go out, settlements come in.
//
//	session: receive ─▶ Subscription.Grant, Settle
//	         send    ◀─ outbox ◀─ the subscription's actor
//
// A session has two goroutines, one that receives and one that sends; the server that
// they run in waits for them. Calls that deliver and settle without a stream use the
// same conversions.
package delivery
