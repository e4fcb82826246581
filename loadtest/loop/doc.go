// Package loop measures what the events of an agent's loop cost: one query whose
// model calls four tools and then answers, run by the loop of the Go client with
// hooks at every event, against as many bare request-replies that carry the same events. Model and tools take no time, so
// that nothing else is in the figures. The figures are ratios, each to the bare
// ones of the same repetition, asked in the same shape: tools one after the
// other, or at once. The order of the rows is new in each repetition. They have no
// budgets: single calls have (loadtest/bench), and in a query the loop does work, too.
//
// What is judged is the messages to workers per query: a hook whose `when` is false
// must cost none.
//
// rows.go holds what is measured, session.go the processes, run.go the
// repetitions and report.go the judgement and the table.
package loop
