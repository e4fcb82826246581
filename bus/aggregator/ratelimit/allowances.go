package ratelimit

import (
	"errors"
	"fmt"
)

// Allowances are what one agent may store. A zero field means the default.
type Allowances struct {
	// Answers is how many of the agent's answers may wait, accepted by any broker, and AnswerBytes
	// how many bytes they take.
	Answers     int
	AnswerBytes int64
	// HistoryBytes is how much of its conversations one broker stores in an hour.
	HistoryBytes int64
	// UnjudgedBytes is how much of the record of calls that nothing judged one broker takes
	// from it in a day.
	UnjudgedBytes int64
	// Reserve is how many percent of the queue, of the object store and of the names of
	// sessions agents leave to operators, orchestrators and rounds.
	Reserve int
}

// Usual returns the default allowances.
func Usual() Allowances {
	return Allowances{Answers: 1000, AnswerBytes: 64 << 20, HistoryBytes: 128 << 20, UnjudgedBytes: 2 << 20, Reserve: 25}
}

// Complete returns a with defaults in place of zero fields.
func (a Allowances) Complete() Allowances {
	u := Usual()
	for _, m := range []struct{ at, usual *int }{{&a.Answers, &u.Answers}, {&a.Reserve, &u.Reserve}} {
		if *m.at == 0 {
			*m.at = *m.usual
		}
	}
	for _, m := range []struct{ at, usual *int64 }{{&a.AnswerBytes, &u.AnswerBytes}, {&a.HistoryBytes, &u.HistoryBytes}, {&a.UnjudgedBytes, &u.UnjudgedBytes}} {
		if *m.at == 0 {
			*m.at = *m.usual
		}
	}
	return a
}

// mostReserve is the largest reserve: agents need some room, too.
const mostReserve = 90

// Check returns an error that names the invalid allowances by their flags.
func (a Allowances) Check() error {
	var errs []error
	for _, m := range []struct {
		flag  string
		value int64
	}{{"--agent-answers", int64(a.Answers)}, {"--agent-answer-bytes", a.AnswerBytes}, {"--agent-history-bytes", a.HistoryBytes}, {"--agent-unjudged-bytes", a.UnjudgedBytes}} {
		if m.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d; use 1 or more, or 0 for the default", m.flag, m.value))
		}
	}
	if a.Reserve < 0 || a.Reserve > mostReserve {
		errs = append(errs, fmt.Errorf("--reserve is %d percent; use 1 to %d, or 0 for the default", a.Reserve, mostReserve))
	}
	return errors.Join(errs...)
}
