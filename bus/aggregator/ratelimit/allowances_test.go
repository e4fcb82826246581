package ratelimit_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
)

func TestAllowancesThatAreNotGivenAreTheUsualOnes(t *testing.T) {
	if got := (ratelimit.Allowances{}).Complete(); got != ratelimit.Usual() {
		t.Errorf("%+v", got)
	}
	given := ratelimit.Allowances{Answers: 1, AnswerBytes: 2, HistoryBytes: 3, UnjudgedBytes: 4, Reserve: 5}
	if got := given.Complete(); got != given {
		t.Errorf("%+v", got)
	}
}

func TestAllowancesThatMakeNoSenseAreRefusedByTheirFlags(t *testing.T) {
	for flag, a := range map[string]ratelimit.Allowances{
		"--agent-answers is -1":        {Answers: -1},
		"--agent-answer-bytes is -1":   {AnswerBytes: -1},
		"--agent-history-bytes is -1":  {HistoryBytes: -1},
		"--agent-unjudged-bytes is -1": {UnjudgedBytes: -1},
		"--reserve is 91 percent":      {Reserve: 91},
		"--reserve is -1 percent":      {Reserve: -1},
	} {
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if err := ratelimit.Usual().Check(); err != nil {
		t.Error(err)
	}
}
