// Package record measures what calls cost where verdicts are written down: the same
// calls, at the same rate, of brokers that keep no record, the facts, and the content,
// in turns. Then it reads the records, and counts them against the calls.
package record
