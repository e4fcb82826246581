// Package ratelimit limits what one agent may use of a broker: events per second, events at
// once before that rate applies, calls under way, and stored data. An agent in a loop
// therefore leaves the other agents their share.
//
// The broker asks it at every event, so it does not allocate, and agents rarely share a
// lock. A [Table] uses the same memory for any number of agents. When it is full, it
// removes the agents that are furthest below their limits. A client that invents names
// therefore cannot make it forget an agent that is over a limit, unless the
// client is over more limits itself.
//
// All methods are safe for concurrent use.
//
// Only this module imports it.
package ratelimit
