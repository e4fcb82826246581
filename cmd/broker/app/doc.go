// Package app is the broker as a value: [New] wires an embedded or external
// bus, the configuration, a worker and an aggregator, and [Main] is the command
// around it. Programs that want a whole fabric in their own process, such as
// tests and the load test, use it too.
package app
