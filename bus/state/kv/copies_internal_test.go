package kv

import (
	"testing"
	"time"
)

func TestCopies(t *testing.T) {
	t.Parallel()
	here := replica{Active: int64(500 * time.Millisecond)}
	for name, c := range map[string]struct {
		of     int
		leader string
		others []replica
		want   Copies
	}{
		"a single server":                 {of: 1, want: Copies{Whole: 1}},
		"there is no leader":              {of: 3, others: []replica{here, here, here}, want: Copies{Unheard: 3}},
		"all are complete":                {of: 3, leader: "a", others: []replica{here, here}, want: Copies{Whole: 3}},
		"a few entries are in transit":    {of: 3, leader: "a", others: []replica{here, {Active: here.Active, Lag: 40}}, want: Copies{Whole: 3}},
		"one catches up":                  {of: 3, leader: "a", others: []replica{here, {Active: here.Active, Lag: 2508}}, want: Copies{Whole: 2, Behind: 1}},
		"one is offline":                  {of: 3, leader: "a", others: []replica{here, {Active: here.Active, Offline: true}}, want: Copies{Whole: 2, Unheard: 1}},
		"one never had contact":           {of: 3, leader: "a", others: []replica{here, {}}, want: Copies{Whole: 2, Unheard: 1}},
		"one is silent and far behind":    {of: 3, leader: "a", others: []replica{here, {Active: int64(12 * time.Second), Lag: 9000}}, want: Copies{Whole: 2, Unheard: 1}},
		"the leader is cut off":           {of: 3, leader: "a", others: []replica{{Active: int64(12 * time.Second)}, {Active: int64(11 * time.Second)}}, want: Copies{Whole: 1, Unheard: 2}},
		"a single server names no leader": {of: 0, want: Copies{Whole: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a infoAnswer
			a.Config.Replicas, a.Cluster.Leader, a.Cluster.Replicas = c.of, c.leader, c.others
			if got := a.copies(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
