// Package record measures the cost of recording verdicts. Brokers with no record, with
// facts, and with content take the same calls in turns, first at a rate that leaves CPUs
// idle, then at full speed. It then reads the records and compares them with the calls.
package record
