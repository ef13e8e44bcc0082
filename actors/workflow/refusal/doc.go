// Package refusal is why a request to workflows is refused: a reason that is a part of the
// protocol, the field that it is about, and a message.
package refusal
