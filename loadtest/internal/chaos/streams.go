package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

const (
	// queueStream is the stream of the messages for agents.
	queueStream = "KV_hook_injections"
	// settleIn is how long it may take until all brokers have the complete state. A server that
	// led a stream while it was cut off has entries of its own, and takes them back one by one,
	// 2 s each, until its leader makes a snapshot, every 2 minutes.
	settleIn = 5 * time.Minute
	// lookAgain is the interval between checks of that, and lookIn limits the time of one
	// check.
	lookAgain = 250 * time.Millisecond
	lookIn    = 2 * time.Second
)

// leaders returns how many streams each broker leads, and which one leads the queue.
func (r *cluster) leaders(ctx context.Context) (by map[string]int, leader string, err error) {
	by = map[string]int{}
	err = r.streams(ctx, func(info *jetstream.StreamInfo) {
		by[info.Cluster.Leader]++
		if info.Config.Name == queueStream {
			leader = info.Cluster.Leader
		}
	})
	if err == nil && leader == "" {
		err = fmt.Errorf("the stream %s has no leader", queueStream)
	}
	return by, leader, err
}

// settle waits until all brokers have the complete state after a step, also if the load ends
// before that.
func (r *cluster) settle(ctx context.Context, s *step) {
	why := r.settled(ctx)
	switch {
	case why == nil:
		s.whole = time.Since(s.Until)
	case ctx.Err() == nil:
		s.lacking = true
		fmt.Fprintf(r.stage.Live, "not all brokers have the complete state %v after it: %v\n", time.Since(s.Until).Round(time.Second), why)
	}
}

// settled waits until all brokers have all streams, and know that. If not, it returns the reason.
func (r *cluster) settled(ctx context.Context) (why error) {
	ctx, cancel := context.WithTimeout(ctx, settleIn)
	defer cancel()
	for {
		now := r.unsettled(ctx)
		if now == nil {
			return nil
		}
		if why == nil || ctx.Err() == nil {
			why = now
		}
		if !load.Pause(ctx, lookAgain) {
			return why
		}
	}
}

// unsettled returns which streams are incomplete on a broker; nil: none.
func (r *cluster) unsettled(ctx context.Context) error {
	n, behind := 0, []string(nil)
	err := r.streams(ctx, func(info *jetstream.StreamInfo) {
		n++
		if why := roles.Lacking(info, r.scenario.Fabric.Brokers-1); why != "" {
			behind = append(behind, info.Config.Name+" "+why)
		}
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.New("there are no streams")
	case len(behind) > 0:
		return errors.New(strings.Join(behind, "; "))
	}
	return nil
}

// streams calls look with each stream.
func (r *cluster) streams(ctx context.Context, look func(*jetstream.StreamInfo)) error {
	ctx, cancel := context.WithTimeout(ctx, lookIn)
	defer cancel()
	js, err := jetstream.New(r.nc)
	if err != nil {
		return err
	}
	all := js.ListStreams(ctx)
	for info := range all.Info() {
		if info.Cluster == nil {
			return fmt.Errorf("%s is not in a cluster", info.Config.Name)
		}
		look(info)
	}
	return all.Err()
}

// number returns the number in a broker's name.
func number(broker string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(broker, field.Broker+"-"))
	if err != nil {
		return 0
	}
	return n
}
