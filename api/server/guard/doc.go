// Package guard stands before every call: it asks who calls, and checks that the rule of
// the method lets them. It also tells whether a caller is a node of the fleet. It looks
// nothing up for a caller who may not know.
package guard
