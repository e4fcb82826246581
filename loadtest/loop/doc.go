// Package loop measures the events of an agent's loop: one query whose model calls four
// tools and then answers. The loop of the Go client runs it with hooks at every event. Its
// time is divided by the time of as many bare request-replies with the same events, of the same
// repetition and in the same shape: tools in sequence or in parallel. Model and tools take no
// time. Each repetition measures the rows in random order. The figures have no budgets,
// because single calls have (loadtest/bench), and the loop itself does work too.
//
// The check counts the messages to workers per query: a hook whose `when` is false must
// cost none.
//
// rows.go defines the rows, session.go the processes, run.go the repetitions and report.go
// the check and the table.
package loop
