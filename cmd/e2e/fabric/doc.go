// Package fabric tests all parts of a fabric together, in one process: events go from a
// client through a NATS server and the aggregator to workers, and verdicts come back.
package fabric
