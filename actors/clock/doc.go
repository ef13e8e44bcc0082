// Package clock follows the clocks of a store by the stamps of its answers. Due times and
// deadlines are on a store's clock, and no machine of ddq has it: what is known are bounds,
// which every answer narrows and time widens. Now is a moment that the store's clock has
// reached for certain; Latest is one that it has not passed.
package clock
