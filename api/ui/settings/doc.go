// Package settings shows who looks, and the tokens that they may change.
package settings
