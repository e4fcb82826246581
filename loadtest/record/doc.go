// Package record measures what calls cost where verdicts are written down: the same
// calls, of brokers that keep no record, the facts, and the content, in turns; at a rate
// that leaves processors idle, and as many as the machine bears. Then it reads the
// records, and counts them against the calls.
package record
